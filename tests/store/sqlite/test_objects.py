"""A database from elsewhere has kdx's own views and triggers alone, its journal removes nothing, and views scale."""

import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest
from stored import spoil

from kdx.errors import DatabaseError
from kdx.store.database import Database, open_database
from kdx.store.recording import register
from kdx.store.refusals import DamagedDatabaseError

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT * FROM n"


def refusals(path: Path) -> list[str]:
    """By whatever opens it."""
    problems = []
    for write in (False, True):
        with pytest.raises(DatabaseError) as caught:
            open_database(path, write=write)
        problems.append(caught.value.problem)
    return problems


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (["ALTER TABLE metric RENAME TO other", 'CREATE TABLE "Metric" (run_id INTEGER)'],
         "its table `Metric` is not as kdx makes it"),
        (["DROP TABLE metric", "CREATE TABLE metric (run_id, name, step, value, bits, writes, differs)"],
         "its table `metric` is not as kdx makes it"),
        (["CREATE TRIGGER again AFTER UPDATE ON run BEGIN UPDATE run SET state = 'pending'; END"],
         "its trigger `again` is not one that kdx makes"),
        (["DROP TRIGGER run_final_state", "CREATE TRIGGER run_final_state AFTER UPDATE ON run BEGIN SELECT 1; END"],
         "its trigger `run_final_state` is not one that kdx makes"),
        (["ALTER TABLE output RENAME TO other", "CREATE VIEW output AS SELECT * FROM other"],
         "its view `output` is not one that kdx makes"),
        (["DROP TABLE output", "CREATE VIRTUAL TABLE output USING fts5(run_id, name)"],
         "its table `output` is not as kdx makes it"),
        (["ALTER TABLE sweep RENAME TO other", f"CREATE VIEW Sweep AS {ENDLESS}"],
         "its view `Sweep` is not one that kdx makes"),
        (["DROP TABLE kdx_schema", f"CREATE VIEW kdx_schema AS {ENDLESS}"],
         "its view `kdx_schema` is not one that kdx makes"),
        (["DROP TABLE identity", f"CREATE VIEW identity AS {ENDLESS}"],
         "its view `identity` is not one that kdx makes"),
        (["DROP VIEW runs", "CREATE TABLE Runs (run_id)"],
         "its table `Runs` is not one that kdx makes"),
        (
            [
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = 'CREATE  VIRTUAL TABLE remark USING fts5(x)' WHERE name = 'remark'",
            ],
            "its table `remark` is not as kdx makes it",
        ),
    ],
)  # fmt: skip
def test_what_would_act_or_answer_in_place_of_kdx_is_refused(database: Database, path: Path, change, problem, figure):
    database.close()
    spoil(path, *change)
    before = path.read_bytes()
    assert refusals(path) == [f"this file was not made by kdx alone: {problem}"] * 2
    assert path.read_bytes() == before
    figure(f"refused twice: {problem}")


def test_no_view_of_a_file_answers_in_place_of_that_of_kdx(database: Database, path: Path, hand):
    database.close()
    false = "CREATE VIEW Curves AS SELECT run_id, name, step, value + 1 AS value FROM metric"
    spoil(path, "DROP VIEW runs", f"CREATE VIEW runs AS {ENDLESS}", "DROP VIEW curves", false)
    before = path.read_bytes()
    for write in (False, True):
        with open_database(path, write=write) as opened, opened.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar_one() == 4
            assert connection.exec_driver_sql("SELECT value FROM curves").all() == [(1.0,)]
        assert (path.read_bytes() != before) is write
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM curves").fetchall() == [(1.0,)]


def test_views_tables_and_indices_of_a_user_are_welcome(database: Database, path: Path):
    spoil(
        path,
        f"CREATE VIEW [my view] AS {ENDLESS}",
        """CREATE TABLE IF NOT EXISTS main."n""otes" (x)""",
        "CREATE VIRTUAL TABLE töxt/* of runs */USING fts5(x)",
        "CREATE UNIQUE INDEX mine2 ON run (state, id)",
        "ALTER TABLE töxt RENAME TO 'other text'",
    )
    open_database(path, write=True).close()


def planted(database: Path, copy: Path, victim: Path) -> None:
    """A database as a killed writer left it, whose journal names another file as its super-journal."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        rows = [(f"{n:032x}", "x" * 2000) for n in range(200)]
        connection.executemany("INSERT INTO cell (id, spec) VALUES (?, ?)", rows)
        shutil.copy(database, copy)
        journal = Path(f"{database}-journal").read_bytes()
        connection.execute("ROLLBACK")
    name = os.fsencode(victim)
    # Page of the lock, name, its length and checksum, magic [sqlite.org/fileformat2.html, 3].
    page = 0x40000000 // 4096 + 1
    end = struct.pack(">I", page) + name + struct.pack(">II", len(name), sum(name))
    Path(f"{copy}-journal").write_bytes(journal + end + bytes.fromhex("d9d505f920a163d7"))


def test_a_journal_removes_no_file(database: Database, path: Path, tmp_path: Path, figure):
    database.close()
    victim, copy = tmp_path / "precious", tmp_path / "theirs.db"
    victim.write_text("precious")
    planted(path, copy, victim)
    assert (
        refusals(copy)
        == ["this file was not made by kdx alone: its journal names another file, which SQLite would remove"] * 2
    )
    assert victim.exists()
    # It is no idle fear.
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("SELECT count(*) FROM cell").fetchone()
    figure(f"a journal that names a file: refused by kdx; SQLite alone {'kept' if victim.exists() else 'removed'} it")


def test_what_is_missing_is_damage_that_a_check_lists(database: Database, path: Path):
    spoil(path, "DROP TRIGGER run_final_state")
    with pytest.raises(DamagedDatabaseError, match="the trigger run_final_state is missing"):
        open_database(path, write=False)


@pytest.mark.parametrize("view", ["runs", "former_runs"])
def test_the_work_of_a_view_grows_with_its_runs_and_no_faster(empty, tmp_path, plan_of, view):
    """Counted in steps of SQLite, so that 100,000 runs take seconds, whatever SQLite makes of the query."""

    def steps(cells: int, seeds: int) -> int:
        path = tmp_path / f"{cells}.db"
        shutil.copy(empty, path)
        with open_database(path, write=True) as database:
            register(database, plan_of(cells, seeds))
            if view == "former_runs":
                register(database, plan_of(0, 0))
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
