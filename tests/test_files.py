"""Files are whole or not there, nothing is overwritten, and what is no file is never opened."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kdx.files import (
    NotAFileError,
    TooLargeError,
    filling,
    give_name,
    open_file,
    read_file,
    write_whole,
)


@pytest.fixture(params=["file", "folder"])
def made(request):
    """Makes a whole file or folder of a name."""

    def make(name: Path, content: str) -> None:
        with filling(name.parent, folder=request.param == "folder") as path:
            (path / "part" if path.is_dir() else path).write_text(content)
            give_name(path, name)

    make.read = lambda name: (name / "part" if name.is_dir() else name).read_text()
    return make


def test_what_is_made_has_its_name_and_nothing_else_is_left(tmp_path, made):
    made(tmp_path / "a", "whole")
    assert made.read(tmp_path / "a") == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("meanwhile", ["file", "full folder"])
def test_a_folder_gives_way_to_what_came_after_the_look(tmp_path, monkeypatch, meanwhile):
    name = tmp_path / "a"
    if meanwhile == "file":
        name.touch()
    else:
        (name / "mine").mkdir(parents=True)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with filling(tmp_path, folder=True) as path, pytest.raises(FileExistsError):
        give_name(path, name)
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (name.is_file() or (name / "mine").exists())


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_nothing_is_overwritten(tmp_path, made, there):
    name = tmp_path / "a"
    {"file": name.touch, "folder": name.mkdir, "link": lambda: name.symlink_to("nowhere")}[there]()
    before = name.lstat()
    with pytest.raises(FileExistsError):
        made(name, "another")
    assert name.lstat() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("folder", [False, True])
def test_what_fails_leaves_nothing(tmp_path, folder):
    with pytest.raises(KeyboardInterrupt), filling(tmp_path, folder=folder) as path:
        assert path.exists() and path.is_dir() == folder
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [False, True])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, folder, figure):
    """Once it is a day old; but not what a living one is filling, nor what is not of kdx."""
    code = f"""
        import os, signal
        from pathlib import Path
        from kdx.files import filling
        with filling(Path({str(tmp_path)!r}), folder={folder}) as path:
            (path / "part" if path.is_dir() else path).write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    (tmp_path / ".kdx-mine").touch()
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    assert killed.returncode == -signal.SIGKILL
    (left,) = set(tmp_path.iterdir()) - {tmp_path / ".kdx-mine"}
    os.utime(left, (time.time() - 86_000,) * 2)
    with filling(tmp_path):
        assert left.exists()
    os.utime(left, (time.time() - 87_000,) * 2)
    with filling(tmp_path) as other, filling(tmp_path, folder=folder) as path:
        assert {path.name for path in tmp_path.iterdir()} == {".kdx-mine", other.name, path.name}
    assert [path.name for path in tmp_path.iterdir()] == [".kdx-mine"]
    figure(f"1 half-written {'folder' if folder else 'file'} left by SIGKILL, removed by the next a day later")


def test_of_a_file_that_is_too_large_nothing_is_kept(tmp_path):
    file = tmp_path / "sparse"
    file.touch()
    os.truncate(file, 10**12)
    with pytest.raises(TooLargeError) as caught:
        read_file(file, 1000)
    assert caught.value.size == 10**12


def test_what_is_no_file_is_never_opened(tmp_path, monkeypatch):
    """A named pipe without a writer would be waited for."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    bound = socket.socket(socket.AF_UNIX)
    bound.bind("socket")
    Path("link").symlink_to("pipe")
    kinds = {
        "pipe": "a named pipe",
        "link": "a named pipe",
        "folder": "a folder",
        "socket": "a socket",
        "/dev/zero": "a device",
    }
    for path, what in kinds.items():
        with pytest.raises(NotAFileError, match=f"this is {what}, not a file"):
            open_file(Path(path))
    with pytest.raises(NotAFileError, match="this is a link, not a file"):
        open_file(Path("link"), follow=False)
    bound.close()


def test_a_file_is_written_whole_in_the_place_of_one_before(tmp_path):
    for content in (b"first", memoryview(b"second")):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.rename"])
def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch, call):
    def fails(*_):
        raise OSError(28, "No space left on device")

    write_whole(tmp_path / "file", b"first")
    monkeypatch.setattr(call, fails)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "file", b"second")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"first")]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_it_is_used(tmp_path, monkeypatch):
    done, sync, rename = [], os.fsync, Path.rename

    def synced(descriptor):
        sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        done.append(("sync", "folder" if path == tmp_path else path.read_bytes()))

    def renamed(path, target):
        done.append(("rename", path.parent == target.parent))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    write_whole(tmp_path / "file", b"content")
    assert done == [("sync", b"content"), ("rename", True), ("sync", "folder")]
