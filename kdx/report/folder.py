"""Writes a folder of files, or one file, completely or not at all."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kdx.errors import KdxError, StorageError, of_the_machine
from kdx.files import filling, give_name

Parts = Iterable[bytes]


def write_folder(folder: Path, files: Iterable[tuple[str, Parts]]) -> tuple[Path, ...]:
    """Writes a new folder and returns the paths of its files.

    Args:
        files: (path inside the folder, content in parts); each is made only when it is written.

    Raises:
        KdxError: the name is taken; and whatever making the content raises. Nothing is left then.
        AccessError, StorageError: it cannot be written.
    """
    refuse_existing(folder)
    written = []
    try:
        with filling(folder.parent, folder=True) as unfinished:
            for name, parts in files:
                path = unfinished / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    file.writelines(parts)
                    file.flush()
                    os.fsync(file.fileno())
                written.append(folder / name)
            give_name(unfinished, folder)
    except FileExistsError:
        raise _taken(folder) from None
    except OSError as error:
        other = StorageError(f"this folder cannot be written: {error.strerror}", place=str(folder))
        raise of_the_machine(error, str(folder)) or other from error
    return tuple(written)


def write_new_file(path: Path, content: bytes) -> None:
    """Writes a new file.

    Raises:
        KdxError: the name is taken.
        AccessError, StorageError: it cannot be written.
    """
    refuse_existing(path)
    try:
        with filling(path.parent) as unfinished:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            give_name(unfinished, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        other = StorageError(f"this file cannot be written: {error.strerror}", place=str(path))
        raise of_the_machine(error, str(path)) or other from error


def refuse_existing(folder: Path) -> None:
    """Raises KdxError if the name is taken."""
    if os.path.lexists(folder):
        raise _taken(folder)


def _taken(folder: Path) -> KdxError:
    return KdxError("there is something of this name", place=str(folder), hint="name another; nothing is overwritten")


def encoded(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines as UTF-8."""
    return (f"{line}\n".encode(errors="backslashreplace") for line in lines)
