"""What the header of a file tells of whose database it is; read without SQLite."""

from pathlib import Path

from kdx.files import read_start

APPLICATION_ID = 0x6B647831
"""In the header of a SQLite file, "kdx1": the file is a results database of kdx."""

_MAGIC = b"SQLite format 3\0"


def application_of(path: Path) -> int | None:
    """The application that the header of a SQLite file names, 0 for none; None: the file is empty.

    Not even a lock is taken: SQLite itself may put files beside a database that it only looks at, and may find the half
    transaction of a killed writer, which is to be undone and not to be judged.

    Raises:
        ValueError: the file is no SQLite database.
        OSError: it cannot be read.
    """
    header = read_start(path, 100)
    if not header:
        return None
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise ValueError("no SQLite database")
    return int.from_bytes(header[68:72], "big")
