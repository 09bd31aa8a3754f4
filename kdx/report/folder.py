"""Writes a folder of files, or one file, completely or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kdx.errors import AccessError, KdxError, of_the_machine
from kdx.files import filling, give_name

Parts = Iterable[bytes]


def write_folder(folder: Path, files: Iterable[tuple[str, Parts]]) -> tuple[Path, ...]:
    """Write a new folder and return the paths of its files.

    Args:
        files: (path inside the folder, content in parts); each is made only when it is written.

    Raises:
        KdxError: the name is taken; and whatever making the content raises. Nothing is left then.
        AccessError, StorageError: it cannot be written.
    """
    written = []
    with _new(folder, folder=True) as unfinished:
        for name, parts in files:
            path = unfinished / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, parts)
            written.append(folder / name)
    return tuple(written)


def write_new_file(path: Path, content: bytes) -> None:
    """Write a new file.

    Raises:
        KdxError: the name is taken.
        AccessError, StorageError: it cannot be written.
    """
    with _new(path) as unfinished:
        _write(unfinished, [content])


def refuse_existing(path: Path) -> None:
    """Raise KdxError if the name is taken."""
    if os.path.lexists(path):
        raise KdxError("this already exists", place=str(path), hint="name another; nothing is overwritten")


def encoded(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines as UTF-8."""
    return (f"{line}\n".encode(errors="backslashreplace") for line in lines)


@contextmanager
def _new(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """An unfinished file or folder, which takes its name when it is complete."""
    refuse_existing(path)
    try:
        with filling(path.parent, folder=folder) as unfinished:
            yield unfinished
            give_name(unfinished, path)
    except FileExistsError:
        refuse_existing(path)
        raise
    except OSError as error:
        kind = "folder" if folder else "file"
        other = AccessError(f"this {kind} cannot be written: {error.strerror}", place=str(path), hint="name another")
        raise of_the_machine(error, str(path)) or other from error


def _write(path: Path, parts: Parts) -> None:
    with path.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
