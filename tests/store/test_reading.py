import json
import math
from dataclasses import replace

import pytest
from sqlalchemy import delete, insert, select, update
from stored import ask, rows, start

from kdx.errors import KdxError
from kdx.grid.difference import Contents
from kdx.grid.identity import id_of
from kdx.grid.plan import TableSpec
from kdx.store import reading, recording
from kdx.store.database import Database, database_at
from kdx.store.records import RunState
from kdx.store.schema import cell, plan_cell, run, sweep_cell, sweep_run


def finish(database: Database, run_id: int, score: float = 1.0) -> None:
    hand = start(database, run_id)
    hand.record([("test/bleu", 10, score), ("test/loss", 10, math.inf), ("valid/bleu", 10, 0.5)], 10)
    hand.complete(0.5, 10, score, {}, 10)


@pytest.fixture
def queries(statements):
    """The number of statements that are sent to answer a question."""

    def queries(read) -> int:
        with statements() as seen:
            read()
        return len(seen)

    return queries


def test_sweeps_are_counted_by_state_the_last_planned_first(database: Database, plan_of):
    recording.register(database, plan_of([0, 1], 2, "old"))
    recording.register(database, plan_of([1], 1, "new"))
    recording.register(database, plan_of(0, 0, "empty"))
    finish(database, 2)
    recording.register(database, plan_of([0, 1], 2, "old"))
    old, empty, new = reading.sweeps(database)
    assert (old.name, empty.name, new.name) == ("old", "empty", "new")
    assert old.counts == {RunState.PENDING: 3, RunState.COMPLETED: 1}
    assert (new.counts, empty.counts) == ({RunState.COMPLETED: 1}, {})
    assert old.created <= new.created <= old.updated


def test_only_the_newest_generation_is_counted_and_listed(database: Database, sweep_id: int):
    finish(database, 1)
    (again,) = recording.repeat(database, [1])
    assert reading.sweeps(database)[0].counts == {RunState.PENDING: 4}
    assert {each.id for each in reading.runs(database, sweep_id)} == {again, 2, 3, 4}


def test_sweeps_are_named_the_last_planned_first_without_a_look_at_their_runs(database: Database, plan_of, statements):
    for name in ("old", "new", "old"):
        recording.register(database, plan_of(name=name))
    with statements() as seen:
        assert list(reading.names(database).items()) == [("old", 1), ("new", 2)]
    assert not [statement for statement in seen if "sweep_run" in statement]


def test_runs_are_read_by_more_ids_than_a_statement_has_parameters(database: Database, sweep_id: int):
    assert [each.id for each in reading.by_ids(database, range(65_536))] == [1, 2, 3, 4]
    plan_cells = [record.cell_id for record in reading.runs(database, sweep_id)]
    assert len(reading.recorded(database, plan_cells, range(65_536))) == 4
    assert reading.recorded(database, []) == {}


def test_runs_of_some_cells_are_those_of_the_sweep(database: Database, plan_of):
    other = plan_of().cells[1]
    sweep = recording.register(database, plan_of(seeds=2))
    recording.register(database, plan_of(seeds=3, name="other"))
    assert [(each.cell_id, each.seed) for each in reading.runs(database, sweep, [other.id])] == [
        (other.id, 0),
        (other.id, 1),
    ]
    assert reading.runs(database, sweep, []) == ()


def test_a_report_gets_the_newest_final_generation_beside_an_unfinished_one(database: Database, sweep_id: int):
    finish(database, 1, 1.0)
    (second,) = recording.repeat(database, [1])
    finish(database, second, 2.0)
    (third,) = recording.repeat(database, [second])
    loaded = reading.load_sweep(database)
    same = [each for each in loaded.runs if (each.cell_id, each.seed) == (loaded.cells[0].id, 0)]
    assert [(each.id, each.generation, each.test_score) for each in same] == [(second, 1, 2.0), (third, 2, None)]
    assert loaded.metrics[second]["test/bleu"] == 2.0
    assert set(loaded.metrics) == {each.id for each in loaded.runs}


def test_a_loaded_sweep_has_cells_labels_and_test_metrics(database: Database, plan_of):
    plan = replace(plan_of(), tables=(TableSpec(name="kernels", rows=["kernel"]),))
    recording.register(database, plan)
    finish(database, 3, -0.0)
    loaded = reading.load_sweep(database, "demo")
    assert (loaded.id, loaded.name, loaded.grid) == (1, "demo", plan.grid)
    assert [(each.id, each.ordinal, each.labels) for each in loaded.cells] == [
        (cell.id, cell.ordinal, cell.labels) for cell in plan.cells
    ]
    assert [each.spec.plain for each in loaded.cells] == [
        cell.spec.model_dump(mode="json", by_alias=True) for cell in plan.cells
    ]
    assert loaded.metrics[3] == {"test/bleu": -0.0, "test/loss": math.inf}
    assert math.copysign(1, loaded.metrics[3]["test/bleu"]) == -1
    assert loaded.metrics[1] == {}


def test_runs_of_cells_are_found_whatever_sweep_planned_them(database: Database, plan_of):
    recording.register(database, plan_of([0, 1], 2, "one"))
    recording.register(database, plan_of([2], 1, "two"))
    cells = [cell.id for cell in plan_of([1, 2, 3]).cells]
    finish(database, 2)
    (again,) = recording.repeat(database, [2])
    found = reading.recorded(database, cells)
    assert set(found) == {(cells[0], 0, None), (cells[0], 1, None), (cells[1], 0, None)}
    assert (found[cells[0], 0, None].id, found[cells[0], 0, None].generation) == (again, 1)
    assert all(record.key == key for key, record in found.items())
    assert reading.recorded(database, []) == {}


def test_a_test_metric_recorded_twice_counts_with_its_last_step(database: Database, sweep_id: int):
    hand = start(database)
    hand.record([("test/bleu", 20, 2.0), ("test/bleu", 10, 1.0), ("tests/bleu", 30, 3.0), ("test", 30, 3.0)], 20)
    assert reading.load_sweep(database).metrics[1] == {"test/bleu": 2.0}


def test_a_sweep_is_found_by_name_by_id_and_as_the_last_planned(database: Database, plan_of):
    for name in ("old", "new", "old"):
        recording.register(database, plan_of(1, 1, name))
    assert reading.load_sweep(database).name == "old"
    assert reading.load_sweep(database, "new").id == 2
    assert reading.load_sweep(database, 2).name == "new"


def test_an_unknown_sweep_is_reported_with_the_known_ones(database: Database, address: str, plan_of):
    for name in ("quickstart", "table 1"):
        recording.register(database, plan_of(1, 1, name))
    with pytest.raises(KdxError) as caught:
        reading.load_sweep(database, "quikstart")
    assert str(caught.value) == (
        f"{address}: there is no sweep `quikstart`\n  allowed: quickstart, table 1\n  hint: did you mean `quickstart`?"
    )
    assert caught.value.exit_code == 2
    with pytest.raises(KdxError, match="hint: kdx sweep tsai2019/table1-mini trains it"):
        reading.load_sweep(database, "tsai2019/table1-mini")


def test_a_database_without_a_sweep_says_so(database: Database, address: str):
    with pytest.raises(KdxError) as caught:
        reading.load_sweep(database)
    assert str(caught.value) == f"{address}: no sweep is recorded here yet\n  hint: kdx sweep GRID records one"
    assert reading.sweeps(database) == ()
    assert reading.runs(database, 1) == ()


def test_seeds_that_were_added_once_a_run_had_completed_are_known(database: Database, plan_of):
    for seeds in (1, 2):  # nothing has run
        recording.register(database, plan_of(1, seeds))
    assert reading.load_sweep(database).seeds_raised == ()
    finish(database, 1)
    for seeds in (2, 3, 2, 5):
        recording.register(database, plan_of(1, seeds))
    assert reading.load_sweep(database).seeds_raised == (2, 3, 5)


def test_queries_do_not_grow_with_the_sweep(database: Database, plan_of, queries):
    small = recording.register(database, plan_of(1, 1, "small"))
    large = recording.register(database, plan_of(20, 10, "large"))
    for run_id in [row.id for row in rows(database, run)][:3]:
        finish(database, run_id)
    assert queries(lambda: reading.runs(database, small)) == 2
    assert queries(lambda: reading.runs(database, large)) == 2
    assert queries(lambda: reading.sweeps(database)) == 2
    assert queries(lambda: reading.load_sweep(database, "small")) == 18
    assert queries(lambda: reading.load_sweep(database, "large")) == 18


def test_seconds_sum_the_attempts_that_ended(database: Database, sweep_id: int):
    assert reading.runs(database, sweep_id)[0].seconds is None
    for _ in range(2):
        start(database).interrupt(0)
    start(database)
    ended = [attempt.ended - attempt.started for attempt in reading.attempts(database, 1) if attempt.ended]
    assert len(ended) == 2
    assert reading.runs(database, sweep_id)[0].seconds == pytest.approx(sum(ended))


def test_a_curve_runs_by_step(database: Database, sweep_id: int):
    hand = start(database)
    hand.record([("train/loss", 20, 2.0), ("train/loss", 3, 1.0), ("valid/loss", 4, 9.0)], 20)
    assert reading.curve(database, 1, "train/loss") == [(3, 1.0), (20, 2.0)]
    assert reading.curve(database, 1, "train/accuracy") == []
    assert reading.curve(database, 2, "train/loss") == []


def test_the_inventory_has_every_generation_and_what_is_planned(database: Database, plan_of):
    recording.register(database, plan_of([0, 1], 1, "old"))
    finish(database, 1)
    recording.repeat(database, [1])
    recording.register(database, plan_of([0], 1, "old"))
    inventory = reading.inventory(database)
    assert [(run.id, run.generation, run.state.value) for run in inventory.runs] == [
        (1, 0, "completed"),
        (2, 0, "pending"),
        (3, 1, "pending"),
    ]
    assert inventory.planned == {inventory.runs[0].key}


def test_a_run_that_resumed_under_other_conditions_is_reported_until_it_restarts(database: Database, sweep_id: int):
    def attempt(resumed_step: int, changes: str | None) -> str | None:
        hand = start(database)
        hand.begin({"torch": "2"}, "data", "code", resumed_step, changes)
        hand.interrupt(resumed_step + 5)
        return reading.load_sweep(database).provenance[1].changes

    assert attempt(0, None) is None
    assert attempt(5, "torch 1 → 2") == "torch 1 → 2 from step 5 on"
    assert attempt(10, None) == "torch 1 → 2 from step 5 on"
    assert attempt(15, "threads 1 → 2") == "torch 1 → 2 from step 5 on; threads 1 → 2 from step 15 on"
    assert attempt(0, "threads 2 → 1") is None
    assert [(each.resumed_step, each.changes) for each in reading.attempts(database, 1)][-1] == (0, "threads 2 → 1")


def test_facts_of_the_data_come_with_each_run_and_are_shared(database: Database, sweep_id: int):
    facts = {"vocabulary_size": 9, "test/unknown_rate": 0.25}
    for run_id in (1, 2):
        start(database, run_id).begin({}, "data", "code", data_facts=facts)
    start(database, 3).begin({}, "data", "code")
    found = reading.load_sweep(database).provenance
    assert found[1].facts == facts and found[1] is found[2]
    assert found[3].facts is None and found[4].facts is None


MINE = {
    "kernel": ("mine", "kernel `mine`"),
    "task": ("dreaming", "task `dreaming`"),
    "depth": (3, "key `depth`"),
}


@pytest.mark.parametrize("key", MINE)
def test_a_word_that_this_kdx_does_not_know_is_data_like_any_other(database: Database, plan_of, address: str, key):
    value, unknown = MINE[key]
    recording.register(database, plan_of(2, 1))
    finish(database, 1)
    with database.write() as connection:
        known_id = connection.scalar(select(run.c.cell_id).where(run.c.id == 1))
        known = connection.execute(select(cell).where(cell.c.id == known_id)).one()
        written = json.loads(known.spec) | {key: value}
        other_id = id_of(written)
        connection.execute(insert(cell).values(id=other_id, spec=json.dumps(written)))
        for table in (sweep_cell, sweep_run, plan_cell, run):
            connection.execute(update(table).where(table.c.cell_id == known_id).values(cell_id=other_id))
        connection.execute(delete(cell).where(cell.c.id == known_id))
    other, known_cell = reading.load_sweep(database).cells
    other_spec, known_spec = other.spec.plain, known_cell.spec.plain
    assert other_spec == known_spec | {"data": other_spec["data"], key: value}
    assert (other.spec.unknown, known_cell.spec.unknown) == ((unknown,), ())
    shown = database_at(address).field("spec", key)
    rows = ask(address, f"SELECT {shown}, task, kernel FROM cells ORDER BY ordinal")
    # A number, or its text; a column of some databases has one type.
    assert next(iter(rows))[0] in (value, str(value))
    assert reading.load_sweeps(database)[0].cells[0].spec.unknown == (unknown,)


def test_curves_come_in_one_query_bit_for_bit(database: Database, plan_of, queries):
    recording.register(database, plan_of([0, 1], 2, "demo"))
    recording.register(database, plan_of([2], 1, "other"))
    for run_id in (1, 3, 5):
        rows = [("train/loss", step, value) for step, value in ((1, math.nan), (10, -0.0), (20, 1 / 3))]
        start(database, run_id).record([*rows, ("valid/bleu", 20, math.inf), ("test/bleu", 20, 1.0)], 20)
    found = reading.curves_of(database, [1, 3], ["train/loss", "valid/bleu", "valid/none"])
    assert {run_id: list(its) for run_id, its in found.items()} == {
        1: ["train/loss", "valid/bleu"],
        3: ["train/loss", "valid/bleu"],
    }
    loss = found[1]["train/loss"]
    assert list(loss.steps) == [1, 10, 20]
    assert math.isnan(loss.values[0]) and math.copysign(1, loss.values[1]) == -1 and loss.values[2] == 1 / 3
    assert list(found[3]["valid/bleu"].values) == [math.inf]
    assert queries(lambda: reading.curves_of(database, [1, 3], ["train/loss"])) == 1


def test_what_a_sweep_plans_now_is_read_without_its_runs(database: Database, plan_of, queries):
    assert reading.contents(database, "demo") is None
    recording.register(database, plan_of([0, 1], [0, 7]))
    assert reading.contents(database, "demo") == Contents(
        {cell.id: cell.spec.text for cell in plan_of([0, 1]).cells}, (0, 7)
    )
    recording.register(database, replace(plan_of([1, 2], [7, 5]), file="/grid.yaml"))
    recording.register(database, plan_of([3], [1], "other"))
    found = reading.contents(database, "demo")
    assert found and (list(found.cells), found.seeds) == ([cell.id for cell in plan_of([1, 2]).cells], (5, 7))
    assert found.file == "/grid.yaml"
    assert queries(lambda: reading.contents(database, "demo")) == 3


def test_grids_are_read_the_last_planned_first(database: Database, plan_of):
    plans = replace(plan_of(0, 0, "old"), description="the first"), plan_of(0, 0, "new")
    for plan in plans:
        recording.register(database, plan)
    assert list(reading.grids(database).items()) == [(plan.name, plan.grid) for plan in plans[::-1]]
