import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from kdx.store.database import Database
from kdx.store.records import FINAL, RunState
from kdx.store.schema import attempt, bits_of, cell, metadata, metric, now, run, value_of


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_and_column_says_what_it_holds(table):
    assert table.comment
    assert [column.name for column in table.c if not column.comment] == []


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_can_be_made_on_postgresql(table):
    made = str(CreateTable(table).compile(dialect=postgresql.dialect()))
    assert "ROWID" not in made
    assert "clock_timestamp" in str(select(now()).compile(dialect=postgresql.dialect()))


@given(st.floats() | st.integers(-(2**63), 2**63 - 1).map(value_of))
def test_bits_hold_every_double(value):
    bits = bits_of(value)
    assert -(2**63) <= bits < 2**63
    assert struct.pack("<d", value_of(bits)) == struct.pack("<d", value)


def test_time_comes_from_the_database_in_seconds_since_1970(database: Database):
    with database.read() as connection:
        seconds = connection.scalar(select(now()))
        days = connection.exec_driver_sql("SELECT julianday('now') - julianday('1970-01-01')").scalar_one()
    assert seconds == pytest.approx(days * 86400, abs=1)
    assert math.modf(seconds)[0]


def add_run(connection, state: RunState) -> None:
    connection.execute(insert(cell).values(id="c", spec="{}"))
    connection.execute(
        insert(run).values(id=1, cell_id="c", seed=0, generation=0, state=state, attempt=0, progress_step=0, stalls=0)
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


def test_the_database_refuses_an_unknown_state(database: Database):
    with pytest.raises(IntegrityError, match="run_state"), database.write() as connection:
        add_run(connection, "finished")


def test_the_database_refuses_rows_of_no_run(database: Database):
    for orphan in (
        insert(metric).values(run_id=7, name="valid/loss", step=0, value=1.0, bits=bits_of(1.0), writes=1, differs=0),
        insert(attempt).values(run_id=7, number=1, owner="me", started=0.0, first_step=0),
    ):
        with pytest.raises(IntegrityError, match="FOREIGN KEY"), database.write() as connection:
            connection.execute(orphan)


def test_metrics_lie_in_the_order_of_their_key(database: Database):
    with database.read() as connection:
        made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'metric'").scalar_one()
    assert made.rstrip().endswith("WITHOUT ROWID")
