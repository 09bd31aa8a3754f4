"""The sweeps of a database in which there is something to do."""

import threading
import time

import pytest
from clock import Clock
from grids import TINY
from waiting import GIVE_UP, wait_until

from kdx.components.registry import components_of
from kdx.errors import DatabaseError, KdxError, StorageError
from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.sweep import open_sweeps as module
from kdx.sweep.open_sweeps import OpenSweeps
from tests.conftest import forget_components

TUNED = """
name: tuned
task: answer
data: {corpus: copy, length: 4}
model: {width: 8, heads: 2, decoder_layers: 1, inner: 8}
training: {steps: 2, batch_tokens: 32, warmup: 1, validate_every: 1}
tune:
  parameters: {training.learning_rate: {low: 1e-4, high: 1e-1, log: true}}
  sampler: random
  pruner: none
  trials: 2
"""


class Watched:
    """Keeps what is said of sweeps."""

    def __init__(self):
        self.opened_plans, self.left, self.found = [], [], []

    def opened(self, plan):
        self.opened_plans.append(plan.name)

    def lacking(self, sweep, cells, why):
        self.left.append((sweep, cells, why.problem))

    def searched(self, search):
        self.found.append(search.plan.name)


def planned(database: Database, name: str, seeds: int = 1, text: str = TINY) -> None:
    grid = database.location.parent / "grid.yaml"
    grid.write_text((text % {"steps": 10, "seeds": seeds}).replace("name: tiny", f"name: {name}"))
    plan = load_grid(grid)
    recording.register(database, plan)


def complete(database: Database, name: str) -> None:
    for run in reading.load_sweep(database, name).runs:
        if run.state is RunState.PENDING:
            writer = RunWriter(database, run.id, "me", claims.claim(database, run.id, "me", 60))
            writer.complete(1.0, 10, 1.0, {}, 10)


def watched(database: Database, *names: str, components=None, works=lambda: False, clock=time.monotonic) -> OpenSweeps:
    found = OpenSweeps(database, names, components, Watched(), works, clock)
    found.heard = found._watcher
    return found


def names(plans) -> list[str]:
    return [plan.name for plan in plans]


def test_unfinished_sweeps_are_open_the_last_planned_first(database, data_home):
    for name in ("one", "two", "three"):
        planned(database, name, seeds={"one": 1, "two": 2, "three": 3}[name])
    complete(database, "one")
    every = watched(database)
    assert names(every()) == ["three", "two"] == every.heard.opened_plans
    assert not every.incomplete
    assert names(watched(database, "two", "one")()) == ["two"]


def test_a_sweep_that_is_not_there_is_refused(database):
    planned(database, "quick")
    with pytest.raises(KdxError, match="there is no sweep `quik`"):
        watched(database, "quik")()


def test_a_sweep_that_is_added_taken_up_again_or_planned_anew_is_seen_and_one_that_is_over_is_not(database, data_home):
    planned(database, "one")
    every = watched(database)
    (before,) = every()
    assert every()[0] is before, "it is read once"
    planned(database, "two", seeds=2)
    assert names(every()) == ["two", "one"]
    planned(database, "one", seeds=4)
    first, _ = every()
    assert (first.name, len(first.runs)) == ("one", 4)
    complete(database, "one")
    assert names(every()) == []
    recording.repeat(database, [run.id for run in reading.load_sweep(database, "two").runs])
    assert names(every()) == ["one", "two"]


def test_between_two_looks_nothing_is_read_while_runs_are_computed(database, data_home, monkeypatch):
    planned(database, "one")
    clock = Clock()
    every = watched(database, works=lambda: True, clock=clock)
    wait_until(lambda: look(every, clock) == ["one"])
    planned(database, "two", seeds=2)
    clock.now += module.LOOK_EVERY - 1
    with monkeypatch.context() as patch:
        patch.setattr(module.reading, "sweeps", pytest.fail)
        assert names(every()) == ["one"]
    wait_until(lambda: look(every, clock) == ["two", "one"])


def look(every: OpenSweeps, clock: Clock) -> list[str]:
    """What is found where a look is due."""
    clock.now += module.LOOK_EVERY
    return names(every())


def test_a_corpus_is_prepared_beside_runs_and_is_waited_for_once_there_are_none(database, monkeypatch):
    may_end, works = threading.Event(), True
    monkeypatch.setattr(module, "prepare_data", lambda plan: may_end.wait(GIVE_UP))
    planned(database, "one")
    every = watched(database, works=lambda: works)
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    assert every() == () == every() and every.heard.opened_plans == []
    works = False
    threading.Timer(0.1, may_end.set).start()
    assert names(every()) == ["one"]


def test_a_disk_that_fails_meanwhile_is_told(database, monkeypatch):
    def fails(plan):
        raise StorageError("the disk is full")

    monkeypatch.setattr(module, "prepare_data", fails)
    planned(database, "one")
    with pytest.raises(StorageError, match="the disk is full"):
        watched(database)()


def test_a_database_that_cannot_be_read_is_told_and_left_to_nobody(database, monkeypatch):
    def fails(*_):
        raise DatabaseError("locked")

    planned(database, "one")
    every = watched(database)
    monkeypatch.setattr(module, "plan_at_hand", fails)
    with pytest.raises(DatabaseError, match="locked"):
        every()
    assert every.heard.left == []


def test_a_sweep_that_this_kdx_cannot_read_is_left_to_others(database):
    planned(database, "one")
    with database.write() as connection:
        newer = '{"seeds": [0], "tables": [{"name": "t", "rows": ["task"], "folds": 3}]}'
        connection.exec_driver_sql(f"UPDATE sweep SET grid = '{newer}'")
    every = watched(database)
    assert every() == () and every.incomplete == {"one"}
    ((name, cells, why),) = every.heard.left
    assert (name, cells) == ("one", None) and "this kdx cannot read its TableSpec: folds" in why
    assert every() == () and len(every.heard.left) == 1, "it is said once"


TWO_CORPORA = TINY.replace("corpus: synthetic-translation, train_lines: 300", "corpus: synthetic-translation").replace(
    "name: tiny", "name: tiny\napproaches:\n  has: {}\n  lacks: {data: {corpus: toy}}"
)


def test_cells_whose_corpus_is_not_here_are_left_to_others(database, data_home):
    planned(database, "one", text=TWO_CORPORA)
    every = watched(database)
    (plan,) = every()
    assert [cell.labels["approach"] for cell in plan.cells] == ["has"]
    ((sweep, cells, why),) = every.heard.left
    assert ((sweep, cells) == ("one", 1) and "toy" in str(why)) or why == "1 faults"
    assert every.incomplete == {"one"}


def test_where_seeds_depend_on_all_cells_the_whole_sweep_is_left(database, data_home):
    planned(
        database,
        "one",
        text=TWO_CORPORA.replace(
            "seeds: %(seeds)s",
            "seeds: {min: 2, max: 3, until: decided}\ntables: [{name: t, rows: [approach], baseline: has}]",
        ),
    )
    every = watched(database)
    assert every() == () and [(sweep, cells) for sweep, cells, _ in every.heard.left] == [("one", None)]
    assert every.incomplete == {"one"}


def test_cells_whose_code_is_not_named_are_left_to_others(database, own_kernel, data_home):
    plan = load_grid(own_kernel / "grid.yaml")
    assert components_of(plan.cells[0].spec.components)
    recording.register(database, plan)
    forget_components()
    every = watched(database)
    assert every() == ()
    ((_, cells, why),) = every.heard.left
    assert cells == 1 and "which is not in" in why
    assert names(watched(database, components=own_kernel)()) == [plan.name]


def test_a_sweep_that_tunes_is_searched_and_then_its_winners_are_planned(database, data_home):
    planned(database, "tuned", text=TUNED)
    every = watched(database)
    (trials,) = every()
    assert all(run.search_id for run in trials.runs) and len(trials.runs) == 2
    for run in trials.runs:
        record = reading.recorded(database, [run.cell.id])[run.key]
        writer = RunWriter(database, record.id, "me", claims.claim(database, record.id, "me", 60))
        writer.complete(50.0, 2, None, {}, 2)
    (plan,) = every()
    assert plan.listed is None and [cell.won for cell in plan.cells] == [True]
    assert [run.state for run in reading.load_sweep(database, "tuned").runs] == [RunState.PENDING]
    assert every.heard.found == ["tuned"] and not every.incomplete
    (again,) = every()
    assert [cell.id for cell in again.cells] == [cell.id for cell in plan.cells] and every.heard.found == ["tuned"]


def test_a_plan_that_another_command_made_during_a_search_stands_and_is_followed(database, data_home):
    planned(database, "tuned", text=TUNED)
    every = watched(database, clock=lambda: 0.0)
    (trials,) = every()
    for run in trials.runs:
        record = reading.recorded(database, [run.cell.id])[run.key]
        writer = RunWriter(database, record.id, "me", claims.claim(database, record.id, "me", 60))
        writer.complete(50.0, 2, None, {}, 2)
    planned(database, "tuned", text=TUNED.replace("trials: 2", "trials: 3"))
    every._works = lambda: True  # so it is not due to look again
    every()
    every._works = lambda: False
    (trials,) = every()
    assert len(trials.runs) == 1 and every.heard.found == []


def test_where_the_rest_of_a_search_is_paused_the_winners_of_the_others_are_planned(database, data_home):
    text = TUNED.replace("trials: 2", "trials: 3").replace("tune:", "axes: {kernel: [exponential, rbf]}\ntune:")
    planned(database, "tuned", text=text)
    every = watched(database)
    (trials,) = every()
    paused = trials.runs[0].search_id
    ended = 0
    for run in trials.runs:
        record = reading.recorded(database, [run.cell.id])[run.key]
        if run.search_id != paused:
            writer = RunWriter(database, record.id, "me", claims.claim(database, record.id, "me", 60))
            writer.complete(50.0, 2, None, {}, 2)
        elif ended < 2:
            writer = RunWriter(database, record.id, "me", claims.claim(database, record.id, "me", 60))
            writer.fail(f"boom {ended}", "", 0)
            ended += 1
    for _ in range(2):  # also once its plan is seen to be another one
        (plan,) = every()
        assert [cell.labels["kernel"] for cell in plan.trained] == ["rbf"]
        assert [run.state for run in reading.load_sweep(database, "tuned").runs] == [RunState.PENDING]
    assert every.incomplete == {"tuned"} and every.heard.found == ["tuned"]
