"""Views show what a report shows of the same rows, on every kind of database."""

import json
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.shipped import names
from kdx.grid.spec import CellSpec
from kdx.report.selection.best_seed import selected_runs
from kdx.report.tables import tables
from kdx.store.claims import claim
from kdx.store.database import Database, open_database
from kdx.store.reading import load_sweep
from kdx.store.recording import RunWriter, register
from kdx.store.records import RunState
from kdx.store.schema import bits_of, metadata, remark, run
from kdx.store.views import TYPES, VIEWS

EXAMPLE = Path(__file__).parents[2] / "runs.db.example"


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_views_have_the_columns_that_are_documented(database: Database, view):
    with database.read() as connection:
        made = connection.exec_driver_sql(f"SELECT * FROM {view.name}").keys()
    assert list(made) == list(view.columns)
    assert view.comment and all(view.columns.values())


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_columns_have_the_declared_types(view):
    with open_database(EXAMPLE, write=False) as database:
        rows = database.rows(f"SELECT * FROM {view.name}", {})
    for column, values in zip(rows.columns, zip(*rows, strict=True), strict=False):
        held = {"bool": int, "float": (int, float)}.get(TYPES.get(column, str).__name__, TYPES.get(column, str))
        words = ("clip", "temperature")  # a number or a word
        known = [value for value in values if value is not None and column not in words]
        assert all(isinstance(value, held) for value in known), column


def test_an_example_of_a_field_is_of_a_column_of_its_view():
    assert all(view.fields.keys() <= view.columns.keys() for view in VIEWS)


def test_views_take_no_name_of_a_table():
    assert not {view.name for view in VIEWS} & (metadata.tables.keys() | {"trials", "studies"})


def test_the_view_of_sweeps_counts_the_runs_that_its_plan_has(database: Database):
    for name, seeds in (("small", "seeds=1"), ("large", "seeds=3")):
        plan = replace(load_grid("quickstart", given=[seeds]), name=name)
        register(database, plan)
    with database.write() as connection:
        connection.execute(update(run).where(run.c.id <= 5).values(state=RunState.COMPLETED))
        connection.execute(update(run).where(run.c.id == 6).values(state=RunState.FAILED))
    counts = of_view(database, "SELECT sweep, cells, runs, completed, unfinished FROM sweeps ORDER BY runs")
    # The runs of the first seed are of both.
    assert counts == [("small", 12, 12, 5, 6), ("large", 12, 36, 5, 30)]


def of_view(database: Database, statement: str) -> list[tuple]:
    with database.read() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


@given(data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_view_of_runs_selects_as_a_report_does(backend, tmp_path_factory, data):
    """Whatever the states, generations and scores: the same run stands for each seed, the same one is selected."""
    address = backend.make(tmp_path_factory.mktemp("views"))
    select_by = data.draw(st.sampled_from(["bleu", "loss"]))
    spec = CellSpec.model_validate({"task": "translation", "data": {"corpus": "toy"}, "select": {"metric": select_by}})
    planned = PlannedCell(cell_id(spec), 0, {"task": "translation"}, spec)
    scores = st.none() | st.sampled_from([1.0, 2.0, -1.0, math.inf, -math.inf, math.nan])
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(RunState), scores, st.booleans()),
            unique_by=lambda row: row[:2],
        )
    )
    with open_database(address, write=True) as database:
        for name in ("one", "other"):
            register(database, Plan(name, (planned,), (0, 1, 2)))
        with database.write() as connection:
            connection.execute(delete(run))
            for seed, generation, state, score, out in rows:
                bits = None if score is None else bits_of(score)
                values = {"seed": seed, "generation": generation, "state": state, "valid_score": score}
                added = insert(run).values(
                    cell_id=planned.id, attempt=0, progress_step=0, stalls=0, valid_bits=bits, **values
                )
                run_id = connection.execute(added.returning(run.c.id)).scalar_one()
                if out:
                    connection.execute(insert(remark).values(run_id=run_id, made=0, kind="invalidation", text="cut"))
        record = load_sweep(database, "one")
        (table,) = tables(record)
        (cell_shown,) = table.layout.cells
        found = of_view(
            database, "SELECT run_id, seed, state, selected, invalidated FROM runs WHERE sweep = 'one' ORDER BY seed"
        )
        assert [row[:3] for row in found] == [(seed.run_id, seed.seed, seed.state.value) for seed in cell_shown.seeds]
        assert [row[4] for row in found] == [seed.invalidated for seed in cell_shown.seeds]
        assert [row[0] for row in found if row[3]] == ([] if cell_shown.run_id is None else [cell_shown.run_id])
        # Exports and the removal of weights ask for the same without a table.
        assert [row[0] for row in found if row[3]] == [item.id for item in selected_runs(record).values()]
        assert len(of_view(database, "SELECT 1 FROM runs")) == 2 * len(found)


def test_views_tell_factors_as_a_grid_words_them(database: Database, sweep_id: int):
    query = "SELECT sweep, labels, task, kernel, position, placement, value_function, metric, direction FROM cells"
    assert of_view(database, f"{query} WHERE ordinal = 1") == [
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


def test_what_is_planned_no_more_leaves_the_views_for_that_of_former_runs(database: Database, plan_of):
    register(database, plan_of(2, 2))
    register(database, plan_of(2, 2, "other"))
    before = of_view(database, "SELECT * FROM runs WHERE sweep = 'demo' ORDER BY run_id")
    assert of_view(database, "SELECT * FROM former_runs") == []
    register(database, plan_of(1, 1))
    assert len(of_view(database, "SELECT * FROM cells WHERE sweep = 'demo'")) == 1
    now = of_view(database, "SELECT * FROM runs WHERE sweep = 'demo'")
    left = of_view(database, "SELECT * FROM former_runs ORDER BY run_id")
    assert (len(now), len(left)) == (1, 3)
    assert sorted(now + left) == sorted(before)


def as_if_won(plan: Plan) -> Plan:
    """As if each cell of a search had won as it stands."""
    return replace(plan, cells=tuple(replace(cell, won=True) for cell in plan.cells)) if plan.searched else plan


@pytest.fixture
def shipped(database: Database) -> dict[str, tuple[Plan, list[tuple], set[str]]]:
    """Every shipped grid in one database: its plan, what the view of cells shows of it, and the labels of its runs."""
    plans = {name: as_if_won(load_grid(name)) for name in names()}
    for plan in plans.values():
        register(database, plan)
    columns = "sweep, spec, labels, clip, memory, learning_rate, corpus"
    shown, of_runs = defaultdict(list), defaultdict(set)
    for sweep, *row in of_view(database, f"SELECT {columns} FROM cells ORDER BY sweep, ordinal"):
        shown[sweep].append(tuple(row))
    for sweep, labels in of_view(database, "SELECT sweep, labels FROM runs"):
        of_runs[sweep].add(labels)
    return {name: (plan, shown[plan.name], of_runs[plan.name]) for name, plan in plans.items()}


@each("name", names())
def test_views_show_every_field_of_a_cell_and_label_it_as_its_grid_does(shipped, name: str):
    """Numbers are numbers, and null where a cell has none."""
    plan, rows, of_runs = shipped[name]
    for planned, (spec, labels, clip, memory, learning_rate, corpus) in zip(plan.cells, rows, strict=True):
        whole = planned.spec.model_dump(mode="json", by_alias=True)
        assert json.loads(spec) == whole
        # A number, or a word; a column of some databases has one type.
        found = whole.get("clip")
        assert (clip if clip is None else str(clip), memory, learning_rate, corpus) == (
            found if found is None else str(found),
            whole["memory"],
            whole["training"]["learning_rate"],
            whole["data"]["corpus"],
        )
        assert json.loads(labels) == planned.labels
    # Of two choices that come to one cell its runs have the first.
    assert of_runs <= {labels for _, labels, *_ in rows}


def test_runs_have_whole_parameters_and_the_facts_of_their_data(database: Database, sweep_id: int):
    facts = {"vocabulary_size": 95, "test/unknown_rate": 0.25, "test/longest_context": 110}
    hand = RunWriter(database, 1, "me", claim(database, 1, "me", 60))
    hand.begin({}, "data", "code", data_facts=facts)
    hand.record([("model/parameters", 0, 10784.0)], 0)
    hand.complete(1.0, 5, 1.0, {}, 5, undertrained="too little")
    columns = "parameters, undertrained, vocabulary_size, unknown_rate, longest_context"
    found = of_view(database, f"SELECT {columns} FROM runs ORDER BY run_id")
    assert found[0] == (10784, "too little", 95, 0.25, 110) and type(found[0][0]) is int
    assert found[1] == (None, None, None, None, None)


def test_a_choice_that_comes_to_a_cell_twice_has_its_runs_once(database: Database, plan_of):
    (one, other) = plan_of(2).cells
    one, again, other = (
        replace(choice, ordinal=ordinal, labels={"approach": word})
        for ordinal, (choice, word) in enumerate(((one, "first"), (one, "again"), (other, "other")))
    )
    twice = Plan("demo", (one, again, other), (0,))
    register(database, twice)
    labels = of_view(database, "SELECT labels FROM runs ORDER BY run_id")
    assert labels == [('{"approach": "first"}',), ('{"approach": "other"}',)]
    assert len(of_view(database, "SELECT * FROM cells")) == 3


def test_views_of_another_kdx_are_made_anew_and_nothing_else_changes(backend, address, plan_of, monkeypatch):
    with open_database(address, write=True) as database:
        register(database, plan_of(1, 1))
        views = dict(database.views)
    grown = views | {"curves": views["curves"].replace("run_id, name,", "run_id, 'more' AS added, name,")}
    monkeypatch.setattr("kdx.store.backend.Database.views", grown)
    for _ in range(2):
        with open_database(address, write=True) as database, database.read() as connection:
            assert list(connection.exec_driver_sql("SELECT * FROM curves").keys())[:3] == ["run_id", "added", "name"]
            assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar_one() == 1
            assert database.recorded_views(connection) == grown
        content = backend.content(address)
    assert backend.content(address) == content


def test_a_lost_view_is_made_anew(backend, address):
    backend.execute(address, "DROP VIEW runs")
    open_database(address, write=False).close()
    with open_database(address, write=True) as database, database.read() as connection:
        assert connection.exec_driver_sql("SELECT * FROM runs").all() == []
