"""Reads the application from the header of a SQLite file, without SQLite."""

from pathlib import Path

from kdx.files import open_file

APPLICATION_ID = 0x6B647831
"""Application id "kdx1" in the header of a results database."""

_MAGIC = b"SQLite format 3\0"


def application_of(path: Path) -> int | None:
    """Return the application id in the header of a SQLite file, 0 for none; None if the file is empty.

    It takes no lock. SQLite itself could create files beside the database, and could find the half transaction of a
    killed writer, which has to be undone and is no reason to refuse the file.

    Raises:
        ValueError: the file is no SQLite database.
        OSError: it cannot be read.
    """
    with open_file(path) as file:
        header = file.read(100)
    if not header:
        return None
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise ValueError("no SQLite database")
    return int.from_bytes(header[68:72], "big")
