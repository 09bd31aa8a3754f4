"""Views of SQLite beside what a report makes of the same rows."""

import math
import shutil
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import select

from kdx.store.database import Database, open_database
from kdx.store.recording import register
from kdx.store.schema import now


def of_view(database: Database, statement: str) -> list[tuple]:
    with database.read() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


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


def test_time_comes_from_the_database_in_seconds_since_1970(database: Database):
    with database.read() as connection:
        since_1970 = "SELECT 86400 * (julianday('now') - julianday('1970-01-01'))"
        before = connection.exec_driver_sql(since_1970).scalar_one()
        seconds = connection.scalar(select(now()))
        after = connection.exec_driver_sql(since_1970).scalar_one()
    assert before - 0.01 < seconds < after + 0.01
    assert math.modf(seconds)[0]
