"""What a process asked of a disk, as strace tells it, and what a cut of the power may leave of it.

The disk keeps no more than it promises: what was written to a file is there once the file was forced to disk, and a
name once its folder was. Of all else any part may be there, a sector at a time; names come and go in order, as every
journalling file system has it.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SECTOR = 512  # bytes, which a disk writes whole or not at all
CALLS = "openat,write,pwrite64,ftruncate,fallocate,fsync,fdatasync,rename,unlink,mkdir"

_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (\d+)")
_BROKEN_OFF = " <unfinished ...>"
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")


class Call(NamedTuple):
    """One that succeeded."""

    name: str
    path: Path
    data: bytes = b""
    offset: int = 0
    """Of a write; the length that a file is cut to."""
    to: Path | None = None


def require_strace() -> None:
    """To be asked before there is a process that waits for it."""
    if shutil.which("strace") is None:
        reason = "no strace here (Debian: strace)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


class Traced:
    """Traces a process, which must wait until it is `traced`."""

    def __init__(self, pid: int, log: Path) -> None:
        self.log = log
        options = ["-f", "-qq", "-y", "-xx", "-s", str(2**24), "-e", f"trace={CALLS}"]
        self.process = subprocess.Popen(["strace", *options, "-o", log, "-p", str(pid)])
        while not traced(pid):
            if self.process.poll() is not None:
                os.kill(pid, signal.SIGKILL)
                pytest.fail("strace may not trace here")
            time.sleep(0.01)

    def calls(self, folder: Path) -> list[Call]:
        """Those on files in a folder, in the order of their ends; the process has ended."""
        assert self.process.wait(300) == 0
        return list(_in_folder(folder, self.log.read_text("ascii")))


def traced(pid: int) -> bool:
    return b"TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_bytes()


def _in_folder(folder: Path, log: str) -> Iterator[Call]:
    position: dict[Path, int] = {}
    for name, words, result in _whole(log):
        path = words[0] if isinstance(words[0], Path) else None
        if name in ("rename", "unlink", "mkdir"):
            path = Path(os.fsdecode(words[0]))
        elif name == "openat":
            path = Path(os.fsdecode(words[1]))
        # A pipe, or a file without a name any more, such as standard error under a test, lies in no folder.
        if path is None or not path.is_relative_to(folder):
            continue
        if name == "openat":
            if "O_CREAT" in words[2]:
                yield Call("create", path)
            if "O_TRUNC" in words[2]:
                yield Call("cut", path)
            position[path] = 0
            assert "O_APPEND" not in words[2] or path.name == "log.txt"
        elif name == "write":
            yield Call("write", path, words[1][:result], position[path])
            position[path] += result
        elif name == "pwrite64":
            yield Call("write", path, words[1][:result], int(words[3]))
        elif name == "ftruncate":
            yield Call("cut", path, offset=int(words[1]))
        elif name in ("fsync", "fdatasync"):
            yield Call("force", path)
        elif name == "rename":
            yield Call("rename", path, to=Path(os.fsdecode(words[1])))
        else:
            assert name in ("unlink", "mkdir"), f"{name} of {path} is not understood"
            yield Call(name, path)


def _whole(log: str) -> Iterator[tuple[str, list, int]]:
    begun: dict[str, str] = {}
    for line in log.splitlines():
        pid = line.partition(" ")[0]
        if line.endswith(_BROKEN_OFF):
            begun[pid] = line.removesuffix(_BROKEN_OFF)
            continue
        if resumed := _RESUMED.match(line):
            line = begun.pop(pid) + resumed[3]
        if call := _CALL.match(line):
            yield call[1], [_word(word) for word in call[2].split(", ")], int(call[3])


def _word(word: str) -> object:
    """Text in hexadecimal, the file of a descriptor, or as it stands."""
    quoted = re.fullmatch(r'"((?:\\x[0-9a-f]{2})*)"', word)
    if quoted:
        return bytes.fromhex(quoted[1].replace("\\x", ""))
    descriptor = re.fullmatch(r"\d+<((?:\\x[0-9a-f]{2})*)>", word)
    if descriptor:
        return Path(os.fsdecode(bytes.fromhex(descriptor[1].replace("\\x", ""))))
    return word


class _File:
    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.waiting: list[Call] = []

    def force(self) -> None:
        self.content = self.after(self.waiting)
        self.waiting = []

    def after(self, calls: list[Call]) -> bytearray:
        content = bytearray(self.content)
        for call in calls:
            end = call.offset + len(call.data)
            if call.name == "cut":
                del content[call.offset :]
            if len(content) < end:
                content.extend(bytes(end - len(content)))
            content[call.offset : end] = call.data
        return content

    def left(self, chance: float, draw: random.Random) -> bytearray:
        kept = []
        for call in self.waiting:
            if draw.random() >= chance:
                continue
            if call.name == "write" and len(call.data) > SECTOR and draw.random() >= chance:
                call = call._replace(data=call.data[: draw.randrange(1, len(call.data) // SECTOR + 1) * SECTOR])
            kept.append(call)
        return self.after(kept)


class Disk:
    """A folder as it is now, and what is then asked of it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.names: dict[Path, _File | None] = {
            path: _File(path.read_bytes()) if path.is_file() else None for path in folder.rglob("*")
        }
        """What is surely there; None: a folder."""
        self.now = dict(self.names)
        self.waiting: dict[Path, list[tuple[Path, _File | None] | Path]] = {}
        """By folder, names that come with what they name, and names that go."""

    def ask(self, call: Call) -> None:
        path = call.path
        if call.name == "force":
            file = self.now.get(path)
            if file is not None:
                file.force()
                return
            for change in self.waiting.pop(path, []):
                _change(self.names, change)
        elif call.name in ("write", "cut"):
            file = self.now[path]
            assert file is not None
            file.waiting.append(call)
        elif call.name == "mkdir" or (call.name == "create" and path not in self.now):
            self._change(path.parent, (path, None if call.name == "mkdir" else _File()))
        elif call.name == "unlink":
            self._change(path.parent, path)
        elif call.name == "rename":
            assert call.to is not None and call.to.parent == path.parent
            file = self.now[path]
            self._change(path.parent, path)
            self._change(path.parent, (call.to, file))

    def _change(self, folder: Path, change: tuple[Path, _File | None] | Path) -> None:
        _change(self.now, change)
        self.waiting.setdefault(folder, []).append(change)

    def leave(self, target: Path, chance: float, draw: random.Random) -> None:
        """Write what is left, each thing that nobody forced to disk with a chance."""
        names = dict(self.names)
        for changes in self.waiting.values():
            for change in changes[: sum(draw.random() < chance for _ in changes)]:
                _change(names, change)
        target.mkdir()
        for path, file in sorted(names.items(), key=lambda item: item[0]):
            place = target / path.relative_to(self.root)
            if not place.parent.is_dir():
                continue  # its folder never came to be
            if file is None:
                place.mkdir()
            else:
                place.write_bytes(file.left(chance, draw))


def _change(names: dict[Path, _File | None], change: tuple[Path, _File | None] | Path) -> None:
    if isinstance(change, Path):
        names.pop(change, None)
    else:
        names[change[0]] = change[1]
