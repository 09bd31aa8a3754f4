import math
import shutil
import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.report.tables import tables
from kdx.store.database import Database, open_database
from kdx.store.reader import load_sweep
from kdx.store.records import FINAL, RunState
from kdx.store.schema import VIEWS, attempt, bits_of, cell, metadata, metric, now, run, value_of
from kdx.store.writer import register


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


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_views_have_the_columns_that_are_documented(database: Database, view):
    with database.read() as connection:
        made = connection.exec_driver_sql(f"PRAGMA table_info({view.name})").all()
    assert [row.name for row in made] == list(view.columns)
    assert view.comment and all(view.columns.values())


def test_views_take_no_name_of_a_table():
    assert not {view.name for view in VIEWS} & (metadata.tables.keys() | {"trials", "studies"})


def of_view(database: Database, statement: str) -> list[tuple]:
    with database.read() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


@given(data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_view_of_runs_selects_as_a_report_does(empty, tmp_path_factory, data):
    """Whatever the states, generations and scores: the same run stands for each seed, the same one is selected."""
    path = tmp_path_factory.mktemp("views") / "runs.db"
    shutil.copy(empty, path)
    select_by = data.draw(st.sampled_from(["bleu", "loss"]))
    spec = CellSpec.model_validate({"task": "translation", "data": {"corpus": "toy"}, "select": {"metric": select_by}})
    planned = PlannedCell(cell_id(spec), 0, {"task": "translation"}, spec)
    scores = st.none() | st.sampled_from([1.0, 2.0, -1.0, math.inf, -math.inf, math.nan])
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(RunState), scores),
            unique_by=lambda row: row[:2],
        )
    )
    with open_database(path, write=True) as database:
        for name in ("one", "other"):
            register(database, Plan(name, (planned,), (0, 1, 2)), {"tables": [], "axes": []})
        with database.write() as connection:
            connection.execute(delete(run))
            for seed, generation, state, score in rows:
                bits = None if score is None else bits_of(score)
                values = {"seed": seed, "generation": generation, "state": state, "valid_score": score}
                connection.execute(
                    insert(run).values(
                        cell_id=planned.id, attempt=0, progress_step=0, stalls=0, valid_bits=bits, **values
                    )
                )
        (table,) = tables(load_sweep(database, "one"))
        (cell_shown,) = table.cells
        found = of_view(database, "SELECT run_id, seed, state, selected FROM runs WHERE sweep = 'one' ORDER BY seed")
        assert [row[:3] for row in found] == [(one.run_id, one.seed, one.state.value) for one in cell_shown.seeds]
        assert [row[0] for row in found if row[3]] == ([] if cell_shown.run_id is None else [cell_shown.run_id])
        assert len(of_view(database, "SELECT 1 FROM runs")) == 2 * len(found)


def test_views_tell_factors_as_a_grid_words_them(database: Database, sweep_id: int):
    told = "SELECT sweep, labels, task, kernel, position, placement, value_function, metric, direction FROM cells"
    assert of_view(database, f"{told} WHERE ordinal = 1") == [
        (
            "demo",
            '{"kernel": "number 1"}',
            "translation",
            "exponential",
            "none",
            "none",
            "without-position",
            "valid/bleu",
            "max",
        )
    ]


def test_views_leave_out_what_is_planned_no_more(database: Database, sweep_id: int, plan_of):
    register(database, plan_of(1, 1), {"tables": []})
    assert len(of_view(database, "SELECT * FROM cells")) == len(of_view(database, "SELECT * FROM runs")) == 1


def test_a_choice_that_comes_to_a_cell_twice_has_its_runs_once(database: Database, plan_of):
    (one, other) = plan_of(2).cells
    twice = Plan("demo", (one, replace(one, ordinal=1, labels={"kernel": "again"}), replace(other, ordinal=2)), (0,))
    register(database, twice, {"tables": []})
    labels = of_view(database, "SELECT labels FROM runs ORDER BY run_id")
    assert labels == [('{"kernel": "number 0"}',), ('{"kernel": "number 1"}',)]
    assert len(of_view(database, "SELECT * FROM cells")) == 3
