"""Recorded runs need their source at hand, where the user says."""

import pytest

from kdx.attention.kernels import KERNELS
from kdx.errors import KdxError
from kdx.own_parts.needed import bring
from kdx.own_parts.read import find

WORD = "my_kernels.py:Cauchy"


def missing(folder) -> dict[tuple[str, str], str]:
    return {("kernel", WORD): find("kernel", WORD, folder).sha256}


def test_the_same_source_is_taken_whatever_its_comments(own_kernel):
    wanted = missing(own_kernel)
    file = own_kernel / "my_kernels.py"
    file.write_text("# later\n" + file.read_text())
    bring(wanted, own_kernel, "sweep x")
    assert WORD in KERNELS


def test_another_source_is_refused(own_kernel):
    wanted = missing(own_kernel)
    file = own_kernel / "my_kernels.py"
    file.write_text(file.read_text().replace("1 +", "2 +"))
    with pytest.raises(KdxError, match="not the one that its cells were made with") as caught:
        bring(wanted, own_kernel, "sweep x")
    assert caught.value.place == "my_kernels.py" and "kdx export --parts" in str(caught.value.hint)
    assert WORD not in KERNELS


def test_a_database_is_never_where_code_comes_from(own_kernel, monkeypatch):
    wanted = missing(own_kernel)
    monkeypatch.chdir(own_kernel)  # not even where the file lies
    with pytest.raises(KdxError, match="whose code this command would run") as caught:
        bring(wanted, None, "sweep x")
    assert "--parts FOLDER" in str(caught.value.hint)


def test_a_package_that_is_gone_is_told(own_parts):
    with pytest.raises(KdxError, match="kernel `cauchy`, which no installed package brings"):
        bring({("kernel", "cauchy"): "0" * 64}, None, "sweep x")


def test_nothing_missing_needs_nothing():
    bring({}, None, "sweep x")
