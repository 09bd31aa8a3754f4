"""Makes runs.db.example of the database that `make evidence` trains: `python -m tests.example DATABASE`.

It leaves out what no table needs, for its size in the repository: the curves of the learning rate, which follows from
the cell and the step, and the translations of all runs but those of Table 1 of Tsai et al. (2019). Grids are named from
the root of the repository, wherever that was.
"""

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "runs.db.example"
WITH_TRANSLATIONS = "tsai2019/table1-mini"


def make(database: Path, example: Path = EXAMPLE) -> None:
    """Write the example anew; the database that was trained stays as it is."""
    shutil.copy(database, example)
    with closing(sqlite3.connect(example, isolation_level=None)) as connection:
        connection.execute("DELETE FROM metric WHERE name = 'train/learning_rate'")
        connection.execute(
            """DELETE FROM output WHERE run_id NOT IN (
                 SELECT run.id FROM run JOIN sweep_run USING (cell_id, seed) JOIN sweep ON sweep.id = sweep_run.sweep_id
                 WHERE sweep.name = ?)""",
            (WITH_TRANSLATIONS,),
        )
        from_root = (f'"file": "{ROOT}/', '"file": "')
        for table in ("sweep", "plan"):
            connection.execute(f"UPDATE {table} SET grid = replace(grid, ?, ?)", from_root)
        connection.execute("VACUUM")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
