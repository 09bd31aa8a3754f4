import errno
from pathlib import Path

import pytest

from kdx.data.storage import data_home, new_folder, translate_disk_errors
from kdx.errors import AccessError, StorageError


def test_home_is_said_or_the_users(monkeypatch):
    monkeypatch.setenv("KDX_DATA", "/somewhere")
    assert data_home() == Path("/somewhere")
    monkeypatch.delenv("KDX_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    assert data_home() == Path("/xdg/kdx")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert data_home() == Path("/home/ada/.local/share/kdx")


def test_the_folder_that_came_first_stands(tmp_path):
    with new_folder(tmp_path / "b") as ours:
        (ours / "file").write_text("ours")
        with new_folder(tmp_path / "b") as theirs:
            (theirs / "file").write_text("theirs")
    assert (tmp_path / "b" / "file").read_text() == "theirs"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("number", "kind", "problem", "mend"),
    [
        (errno.EIO, StorageError, "Input/output error", "repair it"),
        (errno.ENOSPC, StorageError, "No space left on device", "free some space"),
        (errno.EACCES, AccessError, "Permission denied", "repair it"),
    ],
)
def test_what_fails_on_the_disk_is_told_of_the_place(tmp_path, number, kind, problem, mend):
    with pytest.raises(kind) as caught, translate_disk_errors(tmp_path / "b"):
        raise OSError(number, problem)
    assert str(caught.value) == (
        f"cannot write {tmp_path}/b: {problem}\n  hint: {mend}, or set KDX_DATA to a folder elsewhere"
    )


def test_a_user_without_a_home_has_nothing_and_keeps_nothing(monkeypatch):
    def no_home(*_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KDX_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert not data_home().exists()
    with (
        pytest.raises(StorageError, match="set KDX_DATA to a folder elsewhere"),
        new_folder(data_home() / "cache" / "x"),
    ):
        pass
