"""Where the files of runs lie, if not at the place that the kind of database gives them."""

import os
from pathlib import Path

FILES = "KDX_FILES"
"""Environment variable with the folder that holds a folder for each database, such as one that all machines share."""


def named_folder() -> Path | None:
    """The folder that KDX_FILES names; None: it names none."""
    given = os.environ.get(FILES)
    return Path(given).expanduser() if given else None


def place_in(folder: Path, database_id: str | None) -> Path:
    """The path after which the folder of a database's run files is named; there is nothing at the path itself."""
    return folder / f"{database_id or 'unknown'}.db"
