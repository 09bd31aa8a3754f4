import hashlib
import json
import math
from pathlib import Path

import pytest
from sqlalchemy import event

from kdx.errors import KdxError
from kdx.grid.difference import Contents
from kdx.grid.identity import canonical
from kdx.store import reader, writer
from kdx.store.database import Database, open_database
from kdx.store.query import query
from kdx.store.records import RunState
from kdx.store.writer import RunWriter


def finish(database: Database, run_id: int, score: float = 1.0) -> None:
    number = writer.claim(database, run_id, "me", 60)
    hand = RunWriter(database, run_id, "me", number)
    hand.record([("test/bleu", 10, score), ("test/loss", 10, math.inf), ("valid/bleu", 10, 0.5)], 10)
    hand.complete(0.5, 10, score, {}, 10)


def queries(database: Database, read) -> int:
    seen = []

    def hear(connection, cursor, statement, *rest) -> None:
        seen.append(statement)

    event.listen(database._engine, "before_cursor_execute", hear)
    read()
    event.remove(database._engine, "before_cursor_execute", hear)
    return len([statement for statement in seen if statement != "BEGIN"])


def test_sweeps_are_counted_by_state_the_last_planned_first(database: Database, plan_of):
    writer.register(database, plan_of([0, 1], 2, "old"), {})
    writer.register(database, plan_of([1], 1, "new"), {})
    writer.register(database, plan_of(0, 0, "empty"), {})
    finish(database, 2)
    writer.register(database, plan_of([0, 1], 2, "old"), {})
    old, empty, new = reader.sweeps(database)
    assert (old.name, empty.name, new.name) == ("old", "empty", "new")
    assert old.counts == {RunState.PENDING: 3, RunState.COMPLETED: 1}
    assert (new.counts, empty.counts) == ({RunState.COMPLETED: 1}, {})
    assert old.created <= new.created <= old.updated


def test_only_the_newest_generation_is_counted_and_listed(database: Database, sweep_id: int):
    finish(database, 1)
    (again,) = writer.repeat(database, [1])
    assert reader.sweeps(database)[0].counts == {RunState.PENDING: 4}
    assert {each.id for each in reader.runs(database, sweep_id)} == {again, 2, 3, 4}


def test_a_report_gets_the_newest_final_generation_beside_an_unfinished_one(database: Database, sweep_id: int):
    finish(database, 1, 1.0)
    (second,) = writer.repeat(database, [1])
    finish(database, second, 2.0)
    (third,) = writer.repeat(database, [second])
    loaded = reader.load_sweep(database)
    same = [each for each in loaded.runs if (each.cell_id, each.seed) == (loaded.cells[0].id, 0)]
    assert [(each.id, each.generation, each.test_score) for each in same] == [(second, 1, 2.0), (third, 2, None)]
    assert loaded.metrics[second]["test/bleu"] == 2.0
    assert set(loaded.metrics) == {each.id for each in loaded.runs}


def test_a_loaded_sweep_has_cells_labels_and_test_metrics(database: Database, plan_of):
    plan = plan_of()
    writer.register(database, plan, {"tables": [{"name": "kernels"}]})
    finish(database, 3, -0.0)
    loaded = reader.load_sweep(database, "demo")
    assert (loaded.id, loaded.name, loaded.grid) == (1, "demo", {"tables": [{"name": "kernels"}]})
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
    writer.register(database, plan_of([0, 1], 2, "one"), {})
    writer.register(database, plan_of([2], 1, "two"), {})
    cells = [cell.id for cell in plan_of([1, 2, 3]).cells]
    finish(database, 2)
    (again,) = writer.repeat(database, [2])
    found = reader.recorded(database, cells)
    assert set(found) == {(cells[0], 0), (cells[0], 1), (cells[1], 0)}
    assert (found[cells[0], 0].id, found[cells[0], 0].generation) == (again, 1)
    assert all((record.cell_id, record.seed) == key for key, record in found.items())
    assert reader.recorded(database, []) == {}


def test_a_test_metric_recorded_twice_counts_with_its_last_step(database: Database, sweep_id: int):
    hand = RunWriter(database, 1, "me", writer.claim(database, 1, "me", 60))
    hand.record([("test/bleu", 20, 2.0), ("test/bleu", 10, 1.0), ("tests/bleu", 30, 3.0), ("test", 30, 3.0)], 20)
    assert reader.load_sweep(database).metrics[1] == {"test/bleu": 2.0}


def test_a_sweep_is_found_by_name_by_id_and_as_the_last_planned(database: Database, plan_of):
    for name in ("old", "new", "old"):
        writer.register(database, plan_of(1, 1, name), {})
    assert reader.load_sweep(database).name == "old"
    assert reader.load_sweep(database, "new").id == 2
    assert reader.load_sweep(database, 2).name == "new"


def test_an_unknown_sweep_is_told_with_the_known_ones(database: Database, path: Path, plan_of):
    for name in ("quickstart", "table 1"):
        writer.register(database, plan_of(1, 1, name), {})
    with pytest.raises(KdxError) as caught:
        reader.load_sweep(database, "quikstart")
    assert str(caught.value) == (
        f"{path}: there is no sweep `quikstart`\n  allowed: quickstart, table 1\n  hint: did you mean `quickstart`?"
    )
    assert caught.value.exit_code == 2


def test_a_database_without_a_sweep_says_so(database: Database, path: Path):
    with pytest.raises(KdxError) as caught:
        reader.load_sweep(database)
    assert str(caught.value) == f"{path}: no sweep is recorded here yet\n  hint: kdx sweep GRID records one"
    assert reader.sweeps(database) == ()
    assert reader.runs(database, 1) == ()


def test_queries_do_not_grow_with_the_sweep(database: Database, plan_of):
    small = writer.register(database, plan_of(1, 1, "small"), {})
    large = writer.register(database, plan_of(20, 10, "large"), {})
    for run_id in (1, 2, 3):
        finish(database, run_id)
    assert queries(database, lambda: reader.runs(database, small)) == 1
    assert queries(database, lambda: reader.runs(database, large)) == 1
    assert queries(database, lambda: reader.sweeps(database)) == 2
    assert queries(database, lambda: reader.load_sweep(database, "small")) == 8
    assert queries(database, lambda: reader.load_sweep(database, "large")) == 8


def test_a_sweep_loads_from_a_file_opened_to_read(database: Database, path: Path, sweep_id: int):
    finish(database, 1)
    with open_database(path, write=False) as reading:
        assert reader.load_sweep(reading) == reader.load_sweep(database)


def test_seconds_sum_the_attempts_that_ended(database: Database, sweep_id: int):
    assert reader.runs(database, sweep_id)[0].seconds is None
    for _ in range(2):
        number = writer.claim(database, 1, "me", 60)
        RunWriter(database, 1, "me", number).interrupt(0)
    writer.claim(database, 1, "me", 60)
    ended = [attempt.ended - attempt.started for attempt in reader.attempts(database, 1) if attempt.ended]
    assert len(ended) == 2
    assert reader.runs(database, sweep_id)[0].seconds == pytest.approx(sum(ended))


def test_a_curve_runs_by_step(database: Database, sweep_id: int):
    hand = RunWriter(database, 1, "me", writer.claim(database, 1, "me", 60))
    hand.record([("train/loss", 20, 2.0), ("train/loss", 3, 1.0), ("valid/loss", 4, 9.0)], 20)
    assert reader.curve(database, 1, "train/loss") == [(3, 1.0), (20, 2.0)]
    assert reader.curve(database, 1, "train/accuracy") == []
    assert reader.curve(database, 2, "train/loss") == []


def test_what_was_never_recorded_is_empty(database: Database, sweep_id: int):
    assert reader.outputs(database, 1, "test/translations") == []
    assert reader.attempts(database, 1) == ()


def test_the_inventory_has_every_generation_and_what_is_planned(database: Database, plan_of):
    writer.register(database, plan_of([0, 1], 1, "old"), {})
    finish(database, 1)
    writer.repeat(database, [1])
    writer.register(database, plan_of([0], 1, "old"), {})
    inventory = reader.inventory(database)
    assert [(run.id, run.generation, run.state.value) for run in inventory.runs] == [
        (1, 0, "completed"),
        (2, 0, "pending"),
        (3, 1, "pending"),
    ]
    assert inventory.planned == {(inventory.runs[0].cell_id, 0)}


def test_a_run_that_went_on_under_other_conditions_is_told_until_it_begins_anew(database: Database, sweep_id: int):
    def attempt(resumed_step: int, changes: str | None) -> str | None:
        number = writer.claim(database, 1, "me", 60.0)
        assert number is not None
        hand = writer.RunWriter(database, 1, "me", number)
        hand.begin({"torch": "2"}, "data", "code", resumed_step, changes)
        hand.interrupt(resumed_step + 5)
        return reader.load_sweep(database).provenance[1].changes

    assert attempt(0, None) is None
    assert attempt(5, "torch 1 → 2") == "torch 1 → 2 from step 5 on"
    assert attempt(10, None) == "torch 1 → 2 from step 5 on"
    assert attempt(15, "threads 1 → 2") == "torch 1 → 2 from step 5 on; threads 1 → 2 from step 15 on"
    assert attempt(0, "threads 2 → 1") is None
    assert [(each.resumed_step, each.changes) for each in reader.attempts(database, 1)][-1] == (0, "threads 2 → 1")


def test_facts_of_the_data_come_with_each_run_and_are_shared(database: Database, sweep_id: int):
    facts = {"vocabulary_size": 9, "test/unknown_rate": 0.25}
    for run_id in (1, 2):
        number = writer.claim(database, run_id, "me", 60.0)
        writer.RunWriter(database, run_id, "me", number).begin({}, "data", "code", data_facts=facts)
    number = writer.claim(database, 3, "me", 60.0)
    writer.RunWriter(database, 3, "me", number).begin({}, "data", "code")
    found = reader.load_sweep(database).provenance
    assert found[1].facts == facts and found[1] is found[2]
    assert found[3].facts is None and found[4].facts is None


MINE = {
    "kernel": ("mine", "kernel `mine`"),
    "task": ("dreaming", "task `dreaming`"),
    "depth": (3, "key `depth`"),
}


@pytest.mark.parametrize("key", MINE)
def test_a_word_that_this_kdx_does_not_know_is_data_like_any_other(database: Database, plan_of, path: Path, key):
    value, told = MINE[key]
    writer.register(database, plan_of(2, 1), {})
    finish(database, 1)
    with database.write() as connection:
        (spec,) = connection.exec_driver_sql(
            "SELECT spec FROM cell JOIN run ON run.cell_id = cell.id WHERE run.id = 1"
        ).one()
        known = json.loads(spec)
        written = json.dumps(known | {key: value})
        other_id = hashlib.sha256(written.encode()).hexdigest()[:32]
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        (known_id,) = connection.exec_driver_sql("SELECT id FROM cell WHERE spec = ?", (spec,)).one()
        connection.exec_driver_sql(
            "UPDATE cell SET id = ?, spec = ?, resolved = ? WHERE id = ?", (other_id, written, written, known_id)
        )
        for table in ("sweep_cell", "sweep_run", "run"):
            connection.exec_driver_sql(f"UPDATE {table} SET cell_id = ? WHERE cell_id = ?", (other_id, known_id))
    other, known_cell = reader.load_sweep(database).cells
    other_spec, known_spec = other.spec.plain, known_cell.spec.plain
    assert other_spec == known_spec | {"data": other_spec["data"], key: value}
    assert (other.spec.unknown, known_cell.spec.unknown) == ((told,), ())
    with query(path, f"SELECT json_extract(spec, '$.{key}'), task, kernel FROM cells ORDER BY ordinal") as rows:
        assert next(iter(rows))[0] == value
    assert reader.load_sweeps(database)[0].cells[0].spec.unknown == (told,)


def test_the_curves_of_a_sweep_come_in_one_query_bit_for_bit(database: Database, plan_of):
    writer.register(database, plan_of([0, 1], 2, "demo"), {})
    writer.register(database, plan_of([2], 1, "other"), {})
    for run_id in (1, 3, 5):
        number = writer.claim(database, run_id, "me", 60)
        rows = [("train/loss", step, value) for step, value in ((1, math.nan), (10, -0.0), (20, 1 / 3))]
        RunWriter(database, run_id, "me", number).record(
            [*rows, ("valid/bleu", 20, math.inf), ("test/bleu", 20, 1.0)], 20
        )
    found = reader.curves(database, 1, ["train/loss", "valid/bleu", "valid/none"])
    assert {run_id: list(its) for run_id, its in found.items()} == {
        1: ["train/loss", "valid/bleu"],
        3: ["train/loss", "valid/bleu"],
    }
    loss = found[1]["train/loss"]
    assert list(loss.steps) == [1, 10, 20]
    assert math.isnan(loss.values[0]) and math.copysign(1, loss.values[1]) == -1 and loss.values[2] == 1 / 3
    assert list(found[3]["valid/bleu"].values) == [math.inf]
    assert queries(database, lambda: reader.curves(database, 1, ["train/loss"])) == 1


def test_what_a_sweep_plans_now_is_read_without_its_runs(database: Database, plan_of):
    assert reader.contents(database, "demo") is None
    writer.register(database, plan_of([0, 1], [0, 7]), {})
    assert reader.contents(database, "demo") == Contents(
        {cell.id: canonical(cell.spec) for cell in plan_of([0, 1]).cells}, (0, 7)
    )
    writer.register(database, plan_of([1, 2], [7, 5]), {"file": "/grid.yaml"})
    writer.register(database, plan_of([3], [1], "other"), {})
    found = reader.contents(database, "demo")
    assert found and (list(found.cells), found.seeds) == ([cell.id for cell in plan_of([1, 2]).cells], (5, 7))
    assert found.file == "/grid.yaml"
    assert queries(database, lambda: reader.contents(database, "demo")) == 3


def test_grids_are_read_the_last_planned_first(database: Database, plan_of):
    writer.register(database, plan_of(0, 0, "old"), {"tables": [{"name": "t"}]})
    writer.register(database, plan_of(0, 0, "new"), {})
    assert list(reader.grids(database).items()) == [("new", {}), ("old", {"tables": [{"name": "t"}]})]
