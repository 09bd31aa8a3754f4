import struct
import time

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from kdx.errors import DatabaseError
from kdx.store.database import Database
from kdx.store.records import FINAL, RunState
from kdx.store.schema import attempt, bits_of, cell, metadata, metric, now, run, value_of


@each("table", metadata.sorted_tables, told=lambda table: table.name)
def test_every_table_and_column_says_what_it_holds(table):
    assert table.comment
    assert [column.name for column in table.c if not column.comment] == []


@given(st.floats() | st.integers(-(2**63), 2**63 - 1).map(value_of))
def test_bits_hold_every_double(value):
    bits = bits_of(value)
    assert -(2**63) <= bits < 2**63
    assert struct.pack("<d", value_of(bits)) == struct.pack("<d", value)


def test_time_is_of_the_moment_by_the_clock_of_the_database(database: Database):
    with database.write() as connection:
        before = time.time()
        first = connection.scalar(select(now()))
        after = time.time()
        time.sleep(0.02)
        later = connection.scalar(select(now()))
    # These tests have both clocks on one machine.
    assert before - 0.01 < first < after + 0.01
    assert later - first > 0.01


CELL = "c" * 32


def add_run(connection, state: RunState) -> None:
    connection.execute(insert(cell).values(id=CELL, spec="{}"))
    connection.execute(
        insert(run).values(id=1, cell_id=CELL, seed=0, generation=0, state=state, attempt=0, progress_step=0, stalls=0)
    )


@pytest.mark.parametrize("state", RunState)
def test_the_database_refuses_to_leave_a_final_state(database: Database, state: RunState):
    with database.write() as connection:
        add_run(connection, state)
        connection.execute(update(run).values(state=state, error="said again"))
    for other in set(RunState) - {state}:
        leave = update(run).values(state=other)
        if state in FINAL:
            with (
                pytest.raises(IntegrityError, match="a run never leaves a final state"),
                database.write() as connection,
            ):
                connection.execute(leave)
        else:
            with database.write() as connection:
                connection.execute(leave)
                connection.rollback()


def test_the_database_refuses_rows_of_no_run(database: Database):
    for orphan in (
        insert(metric).values(run_id=7, name="valid/loss", step=0, value=1.0, bits=bits_of(1.0), writes=1, differs=0),
        insert(attempt).values(run_id=7, number=1, owner="me", started=0.0, first_step=0),
    ):
        with pytest.raises(DatabaseError, match=r"(?i)foreign key"), database.write() as connection:
            connection.execute(orphan)


UNWRITTEN = {
    "a negative count": ("run", {"generation": -1}),
    "too large a count": ("run", {"stalls": 1_000_000_001}),
    "a negative step": ("run", {"progress_step": -1}),
    "a time before 1970": ("run", {"lease_until": -1.0}),
    "a time after the year 9999": ("run", {"lease_until": 1e12}),
    "no state": ("run", {"state": "finished"}),
    "too long an error": ("run", {"error": "x" * 10_001}),
    "too long a name": ("sweep", {"name": "x" * 1001}),
    "no hash": ("run", {"weights_sha256": "0/../x".ljust(64, "0")}),
    "too short a hash": ("run", {"weights_sha256": "0"}),
    "JSON that is no object": ("sweep", {"grid": []}),
}


@pytest.mark.parametrize(("table", "values"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_the_database_refuses_what_kdx_never_writes(database: Database, sweep_id: int, table, values):
    with pytest.raises(DatabaseError, match="its rows contradict each other"), database.write() as connection:
        connection.execute(update(metadata.tables[table]).values(values))


def test_the_database_takes_the_largest_and_smallest_of_what_kdx_writes(database: Database, sweep_id: int):
    longest = {
        "seed": 2**63 - 1,
        "valid_bits": -(2**63),
        "test_bits": 2**63 - 1,
        "stalls": 10**9,
        "error": "ü" * 10_000,
    }
    with database.write() as connection:
        connection.execute(update(run).where(run.c.id == 1).values(longest))
        kept = connection.execute(select(*(run.c[name] for name in longest)).where(run.c.id == 1)).one()
    assert dict(kept._mapping) == longest
