import errno
import os
import subprocess
import sys
import textwrap
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


def test_folder_has_its_name_only_when_it_is_whole(tmp_path):
    folder = tmp_path / "a" / "b"
    with new_folder(folder) as filling:
        (filling / "file").write_text("x")
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError])
def test_an_interrupted_folder_leaves_nothing(tmp_path, interruption):
    with pytest.raises(interruption), new_folder(tmp_path / "b") as filling:
        (filling / "file").write_text("x")
        raise interruption
    assert not list(tmp_path.iterdir())


def test_the_folder_that_came_first_stands(tmp_path):
    with new_folder(tmp_path / "b") as ours:
        (ours / "file").write_text("ours")
        with new_folder(tmp_path / "b") as theirs:
            (theirs / "file").write_text("theirs")
    assert (tmp_path / "b" / "file").read_text() == "theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_full_disk(tmp_path):
    with pytest.raises(StorageError) as caught, new_folder(tmp_path / "b"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value) == (
        f"cannot write {tmp_path}/b: No space left on device\n"
        "  hint: free some space, or set KDX_DATA to a folder elsewhere"
    )
    assert caught.value.exit_code == 74
    assert not list(tmp_path.iterdir())


def test_home_that_is_a_file(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match="Not a directory"), new_folder(tmp_path / "home" / "cache" / "x"):
        pass


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


def test_what_a_killed_preparation_left_is_removed_by_the_next(tmp_path, figure):
    code = f"""
        import os, signal
        from pathlib import Path
        from kdx.data.storage import new_folder
        with new_folder(Path({str(tmp_path / "b")!r})) as unfinished:
            (unfinished / "train.txt").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    with new_folder(tmp_path / "c") as unfinished:
        (unfinished / "file").write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    figure("1 half-filled folder left by SIGKILL, removed by the next after a day")
