"""A component is found where its word says, in a file or a package, and its source is read and not run."""

import os
import sys
from pathlib import Path

import pytest

from kdx.attention.kernels import KERNELS
from kdx.components.find import bring, find, find_any, folders_of, is_found, laid_out
from kdx.errors import KdxError
from kdx.words.component import Component


def test_a_file_is_read_with_the_modules_beside_it_that_it_imports(own_kernel):
    (own_kernel / "unused.py").write_text("raise SystemExit")
    component = find("kernel", "my_kernels.py:Cauchy", own_kernel)
    assert sorted(component.sources) == ["helpers.py", "my_kernels.py"]
    assert (component.module, component.name, component.package) == ("my_kernels", "Cauchy", "")


def test_a_module_beside_it_is_found_however_it_is_imported(own_kernel):
    file = own_kernel / "my_kernels.py"
    for line in ("import helpers", "from . import helpers", "from .helpers import squared_distance"):
        file.write_text(file.read_text().replace("from helpers import squared_distance", line))
        assert sorted(find("kernel", "my_kernels.py:Cauchy", own_kernel).sources) == ["helpers.py", "my_kernels.py"]
        file.write_text(file.read_text().replace(line, "from helpers import squared_distance"))


def test_nothing_of_it_is_run(own_kernel):
    file = own_kernel / "my_kernels.py"
    file.write_text("raise SystemExit('run')\n" + file.read_text())
    component = find("kernel", "my_kernels.py:Cauchy", own_kernel)
    assert KERNELS.define(component).option_names == ("bandwidth",)
    assert KERNELS.define(component).title == "A heavy tail"


def test_a_file_may_lie_in_a_folder_below(own_kernel):
    (own_kernel / "parts").mkdir()
    for name in ("my_kernels.py", "helpers.py"):
        (own_kernel / name).rename(own_kernel / "parts" / name)
    component = find("kernel", "parts/my_kernels.py:Cauchy", own_kernel)
    assert (
        sorted(component.sources) == ["helpers.py", "my_kernels.py"] and component.file("helpers") == "parts/helpers.py"
    )


@pytest.mark.parametrize(
    "word", ["../own/my_kernels.py:Cauchy", "/etc/x.py:A", "my_kernels.py:", "my_kernels.py:A.b", "a b.py:A", ".py:A"]
)
def test_a_word_that_leads_elsewhere_is_refused(own_kernel, word):
    with pytest.raises(KdxError, match="names no component") as caught:
        find("kernel", word, own_kernel)
    assert "at or below the folder of the grid" in str(caught.value)


@pytest.mark.parametrize("name", ["kdx.py", "kdx.attention.interfaces.py"])
def test_a_file_does_not_pass_for_a_module_of_kdx(own_kernel, name):
    (own_kernel / name).write_text("class KernelFunction: pass")
    with pytest.raises(KdxError, match="has the name of a module of kdx"):
        find("kernel", f"{name}:KernelFunction", own_kernel)


@pytest.mark.parametrize("name", ["héllo", "x" * 101])
def test_a_module_that_no_database_would_keep_is_refused(own_kernel, name):
    (own_kernel / f"{name}.py").write_text("")
    (own_kernel / "a.py").write_text(f"import {name}")
    with pytest.raises(KdxError, match=f"`{name}.py` is no name of a module"):
        find("kernel", "a.py:A", own_kernel)


@pytest.mark.parametrize(
    ("content", "place", "problem"),
    [
        (None, "absent.py", "cannot read the file: No such file"),
        (b"class A\n", "absent.py:1:8", "no Python"),
        (b"x = '\xff'\n", "absent.py", "not UTF-8"),
    ],
)
def test_a_source_that_cannot_be_read_is_reported_where_it_is(own_kernel, content, place, problem):
    if content is not None:
        (own_kernel / "absent.py").write_bytes(content)
    with pytest.raises(KdxError) as caught:
        find("kernel", "absent.py:A", own_kernel)
    assert str(caught.value.place) == place and problem in str(caught.value)


def test_a_module_that_is_too_large_is_refused(own_kernel):
    file = own_kernel / "helpers.py"
    file.write_text(file.read_text() + "#" * 1_000_000)
    with pytest.raises(
        KdxError, match=r"cannot read the file: it has 1,000,\d+ bytes\n  allowed: at most 1,000,000 bytes"
    ):
        find("kernel", "my_kernels.py:Cauchy", own_kernel)


@pytest.fixture
def package(tmp_path, monkeypatch, own_kernel):
    """An installed package that brings the kernel `cauchy`."""
    site = tmp_path / "site"
    (site / "tails" / "kernels").mkdir(parents=True)
    about = site / "tails-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tails\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[kdx.kernels]\ncauchy = tails.kernels.heavy:Cauchy\n")
    (site / "tails" / "__init__.py").write_text("raise SystemExit('run')\n")
    (site / "tails" / "kernels" / "__init__.py").write_text("")
    (site / "tails" / "helpers.py").write_text((own_kernel / "helpers.py").read_text())
    text = (own_kernel / "my_kernels.py").read_text().replace("from helpers", "from ..helpers")
    (site / "tails" / "kernels" / "heavy.py").write_text(text)
    monkeypatch.syspath_prepend(site)
    return site


def test_an_installed_package_brings_a_word_which_is_read_and_not_imported(package):
    component = find("kernel", "cauchy", package)
    assert component.package == "tails 1.2"
    assert sorted(component.sources) == [
        "tails/__init__.py",
        "tails/helpers.py",
        "tails/kernels/__init__.py",
        "tails/kernels/heavy.py",
    ]
    assert "tails" not in sys.modules
    assert KERNELS.define(component).option_names == ("bandwidth",)


def test_no_package_has_a_word_that_nobody_brings(package):
    assert find("kernel", "lorentz", package) is find("position", "cauchy", package) is None
    with pytest.raises(KdxError, match=r"`cauchy.py` names a file, not a class in it\n.*\n  hint: cauchy.py:Class"):
        find_any("cauchy.py", package)
    with pytest.raises(KdxError, match="no installed package provides `lorentz`"):
        find_any("lorentz", package)


def test_a_package_whose_module_is_gone_is_reported(package):
    (package / "tails" / "kernels" / "heavy.py").unlink()
    with pytest.raises(
        KdxError, match=r"tails 1\.2 lacks the module `tails\.kernels\.heavy`, which it names for kernel `cauchy`"
    ):
        find("kernel", "cauchy", package)


def test_the_axis_of_a_part_is_that_of_its_class(own_kernel, package):
    assert find_any("my_kernels.py:Cauchy", own_kernel).axis == "kernel"
    assert find_any("cauchy", own_kernel).axis == "kernel"
    (own_kernel / "filters.py").write_text(
        "from kdx.attention.filters.causal import Causal\nclass Mine(Causal):\n    formula = 1 + 1\n"
    )
    assert find_any("filters.py:Mine", own_kernel).axis == "filter"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: file.mkdir(), "odd.py: cannot read the file: this is a folder, not a file"),
        (os.mkfifo, "odd.py: cannot read the file: this is a named pipe, not a file"),
        (lambda file: file.symlink_to("odd.py"), "odd.py: cannot read the file: Too many levels of symbolic links"),
        (lambda file: file.write_bytes(b"x = 1\0\n"), "odd.py:1:1: no Python: source code string cannot contain null"),
        (lambda file: file.write_text("x = " + "-" * 60_000 + "1\n"), "odd.py:1:1: no Python: "),
    ],
)
def test_what_is_no_source_is_one_message(tmp_path, make, problem):
    make(tmp_path / "odd.py")
    with pytest.raises(KdxError) as caught:
        find("kernel", "odd.py:A", tmp_path)
    assert str(caught.value).startswith(problem)


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


def test_a_package_that_is_gone_is_reported(components):
    with pytest.raises(KdxError, match="kernel `cauchy`, which no installed package provides"):
        bring({("kernel", "cauchy"): "0" * 64}, [], "sweep x")


def recorded(word: str, path: str, sources: dict[str, str]) -> Component:
    return Component("kernel", word, "A", path, sources, recorded=True)


def test_a_file_lies_where_its_word_says():
    result = laid_out(
        [recorded("a.py:A", "a.py", {"a.py": "x", "h.py": "y"}), recorded("p/b.py:B", "b.py", {"b.py": "z"})]
    )
    assert result == {"a.py": "x", "h.py": "y", "p/b.py": "z"}


@pytest.mark.parametrize(
    ("word", "sources"),
    [
        ("../a.py:A", {"a.py": ""}),
        ("a.py:A", {"a.py": "", "../b.py": ""}),
        ("word", {"../a.py": ""}),
    ],
)
def test_what_somebody_wrote_into_a_database_leads_nowhere_else(word, sources):
    with pytest.raises(KdxError, match="is not the source that its cells were made with"):
        laid_out([recorded(word, next(iter(sources)), sources)])


def test_a_base_class_that_is_not_imported_by_its_name_is_asked_for(tmp_path):
    source = "from kdx.attention import interfaces\nclass Mine(interfaces.PositionScheme):\n    pass\n"
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(KdxError, match="has no base class of kdx that can be read"):
        find_any("mine.py:Mine", tmp_path)
