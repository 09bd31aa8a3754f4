import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from kdx.data import digests as module
from kdx.data.digests import STAMP, digests


@pytest.fixture
def folder(tmp_path):
    """Of two files."""
    (tmp_path / "a").write_text("1 2 3")
    (tmp_path / "b").write_text("4 5 6")
    return tmp_path


@pytest.fixture
def later(monkeypatch):
    """All files have settled."""
    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + 10)


@pytest.fixture
def read(monkeypatch):
    """The files that were read in full, in order."""
    names = []
    whole = hashlib.file_digest

    def file_digest(file, kind):
        names.append(Path(file.name).name)
        return whole(file, kind)

    monkeypatch.setattr(module.hashlib, "file_digest", file_digest)
    return names


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


BOTH = {"a": sha256("1 2 3"), "b": sha256("4 5 6")}


def test_digests_of_files_and_of_none(folder):
    assert digests(folder, ["a", "b"]) == BOTH
    assert digests(folder, ["b", "c"]) == {"b": BOTH["b"], "c": None}


def test_files_left_alone_are_read_once(folder, later, read):
    assert digests(folder, ["a", "b"]) == digests(folder, ["a", "b"]) == BOTH
    assert read == ["a", "b"]


def test_files_just_written_are_read_again(folder, read, monkeypatch):
    """Another write within the same tick of the file system's clock would not show."""
    os.utime(folder / "a", ns=(0, 0))  # of which the time of the last change remains
    written = min((folder / name).stat().st_ctime for name in BOTH)
    monkeypatch.setattr(module.time, "time", lambda: written + module.SETTLED / 2)
    assert digests(folder, ["a", "b"]) == digests(folder, ["a", "b"]) == BOTH
    assert read == ["a", "b", "a", "b"]
    assert not (folder / STAMP).exists()


CHANGES = {
    "longer": lambda path: path.write_text("1 2 3 4"),
    "shorter": lambda path: os.truncate(path, 3),
    "other text of that length": lambda path: path.write_text("1 2 4"),
    "replaced": lambda path: (path.with_name("new").write_text("1 2 4"), path.with_name("new").replace(path)),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noticed_also_where_the_times_are_put_back(folder, later, read, change):
    before = (folder / "a").stat()
    digests(folder, ["a", "b"])
    change(folder / "a")
    if (folder / "a").exists():
        os.utime(folder / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    found = digests(folder, ["a", "b"])
    assert found["a"] != BOTH["a"]
    assert found["b"] == BOTH["b"]
    assert read.count("b") == 1


STAMPS = {
    "truncated": lambda stamp: stamp[:-5],
    "empty": lambda stamp: b"",
    "binary": lambda stamp: b"\xff\x00",
    "another shape": lambda stamp: b"[1]",
    "another shape within": lambda stamp: b'{"a": 1, "b": [], "c": null}',
    "fewer fields": lambda stamp: json.dumps({name: entry[1:] for name, entry in json.loads(stamp).items()}).encode(),
}


@pytest.mark.parametrize("spoil", STAMPS.values(), ids=STAMPS)
def test_a_spoilt_stamp_is_as_good_as_none(folder, later, read, spoil):
    digests(folder, ["a", "b"])
    (folder / STAMP).write_bytes(spoil((folder / STAMP).read_bytes()))
    assert digests(folder, ["a", "b"]) == digests(folder, ["a", "b"]) == BOTH
    assert read == ["a", "b", "a", "b"]


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_a_stamp_that_cannot_be_written_is_done_without(folder, later, read, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(module.Path, "write_text", refuse)
    assert digests(folder, ["a", "b"]) == digests(folder, ["a", "b"]) == BOTH
    assert read == ["a", "b", "a", "b"]
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_many_at_once_do_no_harm(folder, later):
    results = []
    threads = [threading.Thread(target=lambda: results.append(digests(folder, ["a", "b"]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [BOTH] * 8
    assert sorted(path.name for path in folder.iterdir()) == [STAMP, "a", "b"]


def test_a_copy_is_read_anew(folder, later, read, tmp_path):
    digests(folder, ["a"])
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("a", STAMP):
        (copy / name).write_bytes((folder / name).read_bytes())
    assert digests(copy, ["a"]) == {"a": BOTH["a"]}
    assert read == ["a", "a"]


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", "sub/a", ""])
def test_a_name_that_leads_out_is_refused(folder, name):
    with pytest.raises(ValueError, match="is no file of this folder"):
        digests(folder, [name])


def test_links_and_pipes_are_not_read(folder):
    (folder / "link").symlink_to(folder / "a")
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / STAMP)
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match="not a file"):
            digests(folder, [name])
    assert digests(folder, ["a"]) == {"a": BOTH["a"]}
