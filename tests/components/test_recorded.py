"""Recorded runs need their source at hand, where the user stands or says; a database names no code to run."""

from pathlib import Path

import pytest

from kdx.attention.kernels import KERNELS
from kdx.components.component import Component
from kdx.components.find import find
from kdx.components.recorded import bring, folders_of, is_found, laid_out
from kdx.errors import KdxError

WORD = "my_kernels.py:Cauchy"


def missing(folder: Path) -> dict[tuple[str, str], str]:
    return {("kernel", WORD): find("kernel", WORD, folder).sha256}


def test_the_same_source_is_taken_whatever_its_comments(own_kernel):
    wanted = missing(own_kernel)
    file = own_kernel / "my_kernels.py"
    file.write_text("# later\n" + file.read_text())
    bring(wanted, [own_kernel], "sweep x")
    assert WORD in KERNELS


def test_another_source_is_refused(own_kernel):
    wanted = missing(own_kernel)
    file = own_kernel / "my_kernels.py"
    file.write_text(file.read_text().replace("1 +", "2 +"))
    with pytest.raises(KdxError, match="not the one that its cells were made with") as caught:
        bring(wanted, [own_kernel], "sweep x")
    assert caught.value.place == str(file) and "kdx export --components" in str(caught.value.hint)
    assert WORD not in KERNELS


def test_it_is_looked_for_where_the_user_stands_and_beside_a_grid_below(own_kernel, monkeypatch):
    wanted, grid = missing(own_kernel), str(own_kernel / "grid.yaml")
    for folder in (own_kernel, own_kernel.parent):
        monkeypatch.chdir(folder)
        bring(wanted, folders_of(grid), "sweep x")
        assert is_found(WORD, wanted["kernel", WORD], folders_of(grid))


def test_a_folder_that_a_database_names_is_not_where_code_comes_from(own_kernel, monkeypatch, tmp_path):
    wanted = missing(own_kernel)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for grid in (str(own_kernel / "grid.yaml"), "../own/grid.yaml", ""):
        with pytest.raises(KdxError, match=f"its cells use `{WORD}`, which is not in {Path.cwd()}") as caught:
            bring(wanted, folders_of(grid), "sweep x")
        assert "--components FOLDER" in str(caught.value.hint) and WORD not in KERNELS
    assert folders_of(str(own_kernel / "grid.yaml"), own_kernel) == (own_kernel,)


def test_a_file_that_was_moved_to_the_grid_is_found_under_its_recorded_word(own_kernel, tmp_path):
    (tmp_path / "own" / "components").mkdir()
    wanted = missing(own_kernel)
    for name in ("my_kernels.py", "helpers.py"):
        (own_kernel / name).rename(own_kernel / "components" / name)
    bring(wanted, [own_kernel / "components"], "sweep x")
    assert KERNELS[WORD].__name__ == "Cauchy"
    moved = {("kernel", "elsewhere/my_kernels.py:Cauchy"): wanted["kernel", WORD]}
    bring(moved, [own_kernel / "components"], "sweep x")
    assert "elsewhere/my_kernels.py:Cauchy" in KERNELS


@pytest.mark.parametrize("word", ["../own/my_kernels.py:Cauchy", "/etc/x.py:A"])
def test_a_recorded_word_leads_nowhere_else(own_kernel, word):
    with pytest.raises(KdxError, match="names no component"):
        bring({("kernel", word): "0" * 64}, [own_kernel], "sweep x")


def test_a_package_that_is_gone_is_told(components):
    with pytest.raises(KdxError, match="kernel `cauchy`, which no installed package brings"):
        bring({("kernel", "cauchy"): "0" * 64}, [], "sweep x")


def test_nothing_missing_needs_nothing():
    bring({}, [], "sweep x")


def recorded(word: str, path: str, sources: dict[str, str]) -> Component:
    return Component("kernel", word, "A", path, sources, recorded=True)


def test_a_file_lies_where_its_word_says():
    found = laid_out(
        [recorded("a.py:A", "a.py", {"a.py": "x", "h.py": "y"}), recorded("p/b.py:B", "b.py", {"b.py": "z"})]
    )
    assert found == {"a.py": "x", "h.py": "y", "p/b.py": "z"}


def test_a_file_that_was_renamed_lies_where_its_word_says():
    assert laid_out([recorded("p/new.py:A", "old.py", {"old.py": "x"})]) == {"p/new.py": "x"}


def test_a_package_lies_at_the_top():
    assert laid_out([recorded("word", "pkg/a.py", {"pkg/a.py": "x"})]) == {"pkg/a.py": "x"}


def test_two_versions_of_a_file_do_not_overwrite_each_other():
    one, other = (recorded("a.py:A", "a.py", {"a.py": text}) for text in "xy")
    assert laid_out([one, other]) == {"a.py": "x", f"{other.sha256[:12]}/a.py": "y"}


@pytest.mark.parametrize(
    ("word", "sources"),
    [
        ("../a.py:A", {"a.py": ""}),
        ("/a.py:A", {"a.py": ""}),
        ("a.py:A", {"a.py": "", "../b.py": ""}),
        ("a.py:A", {"a.py": "", "/etc/b.py": ""}),
        ("a.py:A", {"a.py": "", "a.py/b.py": ""}),
        ("word", {"../a.py": ""}),
    ],
)
def test_what_somebody_wrote_into_a_database_leads_nowhere_else(word, sources):
    with pytest.raises(KdxError, match="is not the source that its cells were made with"):
        laid_out([recorded(word, next(iter(sources)), sources)])
