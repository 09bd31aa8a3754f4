"""What a database brings to a merge is read whole, and what contradicts itself is refused."""

from pathlib import Path

import pytest
from filled import fill
from sides import came_to, plan_at, run_of

from kdx.errors import DatabaseError
from kdx.store.database import Database
from kdx.store.merge_sides import OF_EVALUATIONS, OF_RUNS, RunKey, Side
from kdx.store.schema import attempt, metadata


def side_of(database: Database, connection) -> Side:
    return Side(database, connection, "here", database.location)


def test_all_but_the_numbers_and_texts_of_runs_is_read_at_once(database: Database, plan_of):
    fill(database, plan_of())
    with database.read() as connection:
        side = side_of(database, connection)
        assert set(side.rows) == set(metadata.tables) - {table.name for table in (*OF_RUNS, *OF_EVALUATIONS)}
        assert all(side.rows.values())
        state = side.sweeps[b"demo"]
        assert (len(state.plans), len(state.choices), len(state.runs), len(state.searches)) == (1, 2, 4, 1)
        assert len(state.plans[0].cells) == 2
        assert [row["number"] for row in side.attempts[1]] == [1, 2]
        assert side.id == database.id


def test_rows_of_some_runs_are_read_in_few_statements(database: Database, plan_of, statements):
    fill(database, plan_of())
    with database.read() as connection:
        side = side_of(database, connection)
        with statements() as sent:
            rows = list(side.read(attempt, "run_id", range(1, 900)))
        assert ({row["run_id"] for row in rows}, len(sent)) == ({1}, 2)
        assert list(side.read(attempt, "run_id", [2])) == []


def test_the_same_results_have_the_same_digest(database: Database, plan_of):
    plan_at(database, plan_of, [0, 1], 1.0)
    runs = [run_of(database, cell, seed) for cell in range(2) for seed in range(2)]
    for number, (run_id, value) in enumerate(zip(runs, (1.0, 1.0, -0.0, 0.0), strict=True)):
        came_to(database, run_id, "completed", value=value, host="ab"[number % 2], at=float(number))
    with database.read() as connection:
        digests = side_of(database, connection).digests(OF_RUNS, "run_id", runs)
    same, again, negative, zero = (digests[run_id] for run_id in runs)
    assert same == again != negative
    assert negative["metric"] != zero["metric"], "these are other bits"


def test_no_database_brings_nothing():
    side = Side(None, None, "absent.db", Path("absent.db"))
    assert not any(side.rows.values()) and side.sweeps == {}


def test_a_cell_that_is_not_what_its_id_says_is_refused(database: Database, backend, address, sweep_id):
    backend.execute(address, "UPDATE cell SET spec = '{}'")
    with pytest.raises(DatabaseError, match=r"cell.spec is '{}'"), database.read() as connection:
        side_of(database, connection).check_cells()


def test_a_run_is_named_by_its_folder():
    assert RunKey(b"c" * 32, 4, 1).folder == f"{'c' * 32}-4-1"
