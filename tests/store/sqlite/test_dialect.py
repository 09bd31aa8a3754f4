"""Views of SQLite beside what a report makes of the same rows."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from kdx.store.database import Database, open_database
from kdx.store.recording import register


@pytest.mark.parametrize("view", ["runs", "former_runs"])
def test_the_work_of_a_view_grows_with_its_runs_and_no_faster(empty, tmp_path, plan_of, view):
    """Counted in steps of SQLite, so that 100,000 runs take seconds, whatever SQLite makes of the query."""

    def steps(cells: int, seeds: int) -> int:
        path = tmp_path / f"{cells}.db"
        shutil.copy(empty, path)
        with open_database(path, write=True) as database:
            register(database, plan_of(cells, seeds), {"tables": []})
            if view == "former_runs":
                register(database, plan_of(0, 0), {"tables": []})
        count = 0

        def hear() -> None:
            nonlocal count
            count += 1

        with closing(sqlite3.connect(path)) as connection:
            connection.set_progress_handler(hear, 1000)
            assert len(connection.execute(f"SELECT * FROM {view}").fetchall()) == cells * seeds
            ((counted,),) = connection.execute(f"SELECT count(*) FROM {view}")
        assert counted == cells * seeds
        return count

    assert steps(80, 20) < 1.5 * 4 * steps(40, 10)


def test_metrics_lie_in_the_order_of_their_key(database: Database):
    with database.read() as connection:
        made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'metric'").scalar_one()
    assert "WITHOUT ROWID" in made
