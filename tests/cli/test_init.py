"""`kdx init` copies grids out and never over anything."""

import errno
import os

import pytest
from looked_after import typed

from kdx.errors import KdxError
from kdx.grid import shipped
from kdx.grid.extends import extended


def test_every_shipped_grid_is_copied_as_it_is(folder):
    result = typed("init")
    assert result.stdout.splitlines() == [f"experiments/{name}.yaml" for name in shipped.names()]
    for name in shipped.names():
        assert (folder / "experiments" / f"{name}.yaml").read_bytes() == shipped.find(name).read_bytes()
    assert result.stderr == f"{len(shipped.names())} grids copied; next: kdx plan experiments/quickstart.yaml\n"


def test_what_is_there_already_stays(folder):
    typed("init", "mine", "--grid", "quickstart")
    (folder / "mine" / "quickstart.yaml").write_text("changed")
    result = typed("init", "mine", "--grid", "quickstart")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "mine/quickstart.yaml is there already and stays as it is\n"
        "0 grids copied; next: kdx plan mine/quickstart.yaml\n"
    )
    assert (folder / "mine" / "quickstart.yaml").read_text() == "changed"


def test_only_those_named_are_copied_and_the_next_command_can_be_typed(folder):
    result = typed("init", "my grids", "--grid", "quickstart")
    assert result.stderr == "1 grid copied; next: kdx plan 'my grids/quickstart.yaml'\n"
    assert [path.name for path in (folder / "my grids").iterdir()] == ["quickstart.yaml"]


def test_a_grid_comes_with_those_that_it_extends(folder):
    result = typed("init", "mine", "--grid", "modern/tsai2019-table1-mini")
    assert len(result.stdout.splitlines()) == 3
    root = extended(folder / "mine" / "modern" / "tsai2019-table1-mini.yaml", [])
    assert root.plain() == extended(shipped.find("modern/tsai2019-table1-mini"), []).plain()


def test_a_grid_that_is_not_shipped_copies_nothing(folder):
    (folder / "own.yaml").touch()
    for name in ("own.yaml", "quickstrt"):
        with pytest.raises(KdxError, match=f"no shipped grid `{name}`\n"):
            typed("init", "new", "--grid", "quickstart", "--grid", name)
    assert not (folder / "new").exists()


def test_a_folder_that_cannot_be_made_is_told(folder):
    (folder / "file").touch()
    with pytest.raises(KdxError, match=r"file/quickstart.yaml: cannot write: .*\n  hint: name another folder"):
        typed("init", "file", "--grid", "quickstart")


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 74), (errno.EROFS, 3), (errno.EACCES, 3)])
def test_a_full_or_forbidden_disk_has_the_exit_code_of_its_kind(monkeypatch, number, code):
    def fail(source, target):
        raise OSError(number, os.strerror(number), str(source))

    monkeypatch.setattr("shutil.copyfile", fail)
    with pytest.raises(KdxError, match=r"new/quickstart\.yaml: ") as caught:
        typed("init", "new", "--grid", "quickstart")
    assert caught.value.exit_code == code
