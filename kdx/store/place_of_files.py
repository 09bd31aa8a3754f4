"""Where the files of runs lie whose database is on a server."""

import os
from pathlib import Path

from platformdirs import user_data_path

FILES = "KDX_FILES"
"""Environment variable with the folder that holds a folder for each database, such as one that all machines share."""


def place_of_files(database_id: str) -> Path:
    """The path after which the folder of run files is named; there is nothing at the path itself.

    Without KDX_FILES each machine keeps files of its own, among the data of the user.
    """
    given = os.environ.get(FILES)
    home = Path(given).expanduser() if given else user_data_path("kdx") / "runs"
    return home / f"{database_id}.db"
