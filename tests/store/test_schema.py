import json
import math
import shutil
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from kdx.errors import DatabaseError
from kdx.grid.cell_selector import word
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.shipped import names
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import factor_value
from kdx.report.selection.best_seed import selected_runs
from kdx.report.table.build import tables
from kdx.store.database import Database, open_database
from kdx.store.reader import load_sweep
from kdx.store.records import FINAL, RunState
from kdx.store.schema import VIEWS, attempt, bits_of, cell, metadata, metric, now, run, value_of
from kdx.store.writer import RunWriter, claim, register


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


def test_the_database_refuses_an_unknown_state(database: Database):
    with pytest.raises(DatabaseError, match="run_state"), database.write() as connection:
        add_run(connection, "finished")


def test_the_database_refuses_rows_of_no_run(database: Database):
    for orphan in (
        insert(metric).values(run_id=7, name="valid/loss", step=0, value=1.0, bits=bits_of(1.0), writes=1, differs=0),
        insert(attempt).values(run_id=7, number=1, owner="me", started=0.0, first_step=0),
    ):
        with pytest.raises(DatabaseError, match="FOREIGN KEY"), database.write() as connection:
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
        record = load_sweep(database, "one")
        (table,) = tables(record)
        (cell_shown,) = table.layout.cells
        found = of_view(database, "SELECT run_id, seed, state, selected FROM runs WHERE sweep = 'one' ORDER BY seed")
        assert [row[:3] for row in found] == [(one.run_id, one.seed, one.state.value) for one in cell_shown.seeds]
        assert [row[0] for row in found if row[3]] == ([] if cell_shown.run_id is None else [cell_shown.run_id])
        # Exports and the removal of weights ask for the same without a table.
        assert [row[0] for row in found if row[3]] == [one.id for one in selected_runs(record).values()]
        assert len(of_view(database, "SELECT 1 FROM runs")) == 2 * len(found)


def test_views_tell_factors_as_a_grid_words_them(database: Database, sweep_id: int):
    told = "SELECT sweep, labels, task, kernel, position, placement, value_function, metric, direction FROM cells"
    assert of_view(database, f"{told} WHERE ordinal = 1") == [
        (
            "demo",
            '{"kernel":"exponential"}',
            "translation",
            "exponential",
            "none",
            "none",
            "without-position",
            "valid/bleu",
            "max",
        )
    ]


def test_what_is_planned_no_more_leaves_the_views_for_that_of_former_runs(database: Database, plan_of):
    register(database, plan_of(2, 2), {"tables": []})
    register(database, plan_of(2, 2, "other"), {"tables": []})
    before = of_view(database, "SELECT * FROM runs WHERE sweep = 'demo' ORDER BY run_id")
    assert of_view(database, "SELECT * FROM former_runs") == []
    register(database, plan_of(1, 1), {"tables": []})
    assert len(of_view(database, "SELECT * FROM cells WHERE sweep = 'demo'")) == 1
    now = of_view(database, "SELECT * FROM runs WHERE sweep = 'demo'")
    left = of_view(database, "SELECT * FROM former_runs ORDER BY run_id")
    assert (len(now), len(left)) == (1, 3)
    assert sorted(now + left) == sorted(before)


@pytest.mark.parametrize("name", names())
def test_views_show_every_field_of_a_cell_and_label_it_as_a_report_does(database: Database, name: str):
    """Also the fields at a value that its hash leaves out; numbers are numbers, and null where a cell has none."""
    plan = load_grid(name)
    register(database, plan, {"tables": []})
    rows = of_view(database, "SELECT spec, labels, clip, memory, learning_rate, corpus FROM cells ORDER BY ordinal")
    for planned, (spec, labels, clip, memory, learning_rate, corpus) in zip(plan.cells, rows, strict=True):
        whole = planned.spec.model_dump(mode="json", by_alias=True)
        assert json.loads(spec) == whole
        assert (clip, memory, learning_rate, corpus) == (
            whole["clip"],
            whole["memory"],
            whole["training"]["learning_rate"],
            whole["data"]["corpus"],
        )
        told = json.loads(labels)
        assert {axis: word(axis, value) for axis, value in told.items()} == {
            axis: factor_value(planned.labels, ResolvedSpec(whole), axis) for axis in planned.labels
        }
    shown = of_view(database, "SELECT ordinal, labels FROM cells")
    assert {labels for _, labels in shown} == {labels for (labels,) in of_view(database, "SELECT labels FROM runs")}


def test_a_label_has_the_value_of_its_field_and_of_any_other_axis_the_word(database: Database):
    spec = CellSpec.model_validate(
        {"task": "translation", "data": {"corpus": "toy"}, "position": ["product", "alibi"], "training": {"steps": 7}}
    )
    labels = {
        "clip": "4",
        "position": "both",
        "placement": "some",
        "training.steps": "seven",
        "filter.decoder-self": "c",
        "temperature": "one",
        "training": "mine",
        'a "word" of. mine': "so",
    }
    register(database, Plan("demo", (PlannedCell(cell_id(spec), 0, labels, spec),), (0,)), {"tables": []})
    told = {
        "clip": None,
        "position": "product+alibi",
        "placement": "encoder-self/encoder-decoder/decoder-self",
        "training.steps": 7,
        "filter.decoder-self": "causal",
        "temperature": 1.0,
        "training": "mine",
        'a "word" of. mine': "so",
    }
    for view in ("cells", "runs"):
        ((found,),) = of_view(database, f"SELECT labels FROM {view}")
        assert list(json.loads(found).items()) == list(told.items())


def test_runs_have_whole_parameters_and_the_facts_of_their_data(database: Database, sweep_id: int):
    facts = {"vocabulary_size": 95, "test/unknown_rate": 0.25, "test/longest_context": 110}
    hand = RunWriter(database, 1, "me", claim(database, 1, "me", 60))
    hand.begin({}, "data", "code", data_facts=facts)
    hand.record([("model/parameters", 0, 10784.0)], 0)
    hand.complete(1.0, 5, 1.0, {}, 5, undertrained="too little")
    columns = "parameters, typeof(parameters), undertrained, vocabulary_size, unknown_rate, longest_context"
    found = of_view(database, f"SELECT {columns} FROM runs ORDER BY run_id")
    assert found[0] == (10784, "integer", "too little", 95, 0.25, 110)
    assert found[1] == (None, "null", None, None, None, None)


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


def test_a_choice_that_comes_to_a_cell_twice_has_its_runs_once(database: Database, plan_of):
    (one, other) = plan_of(2).cells
    one, again, other = (
        replace(choice, ordinal=ordinal, labels={"approach": word})
        for ordinal, (choice, word) in enumerate(((one, "first"), (one, "again"), (other, "other")))
    )
    twice = Plan("demo", (one, again, other), (0,))
    register(database, twice, {"tables": []})
    labels = of_view(database, "SELECT labels FROM runs ORDER BY run_id")
    assert labels == [('{"approach":"first"}',), ('{"approach":"other"}',)]
    assert len(of_view(database, "SELECT * FROM cells")) == 3
