"""What a budget is enough for follows from the decisions, the predictions and the time alone."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.store.records import RunRecord, RunState
from kdx.sweep.budget import read_wall_time
from kdx.sweep.covered import covered, fits, missing_seeds, remaining
from kdx.sweep.decide import Action, Decision

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}, "training": {"steps": 100}})


@pytest.mark.parametrize(
    ("text", "seconds"), [("0m", 0.0), ("24s", 24.0), ("90m", 5400.0), ("1.5h", 5400.0), ("0.2m", 12.0)]
)
def test_a_wall_time_is_so_many_seconds(text, seconds):
    assert read_wall_time("--wait", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5d", "-1m", "4gpuh", "1e3h", "m", "6 h", "6H", "6hours", "infh", "6h\n", "９h"]
)
def test_what_is_no_wall_time_is_refused(text):
    with pytest.raises(KdxError, match="allowed: wall time such as 30s, 90m or 6h; 0s or more"):
        read_wall_time("--wait", text)


def plan(cells: int, seeds: int) -> Plan:
    return Plan("plan", tuple(PlannedCell(f"c{at}", at, {}, SPEC) for at in range(cells)), tuple(range(seeds)))


def record(state: RunState = RunState.COMPLETED, **fields: object) -> RunRecord:
    return RunRecord(1, "c0", 0, state=state, **fields)


def to_start(of: Plan) -> list[Decision]:
    return [Decision(run, None, Action.START, "new") for run in of.runs]


def one_by_one(decisions: list[Decision], seconds: Mapping[str, float], workers: int, left: float) -> set[tuple]:
    """What sweep would do: whenever a worker is free, it begins the first run that would be done in time."""
    waiting, busy, now, done = list(decisions), [], 0.0, set()
    while True:
        while len(busy) < workers:
            able = [one for one in waiting if now + seconds[one.run.cell.id] <= left]
            if not able:
                break
            waiting.remove(able[0])
            busy.append(now + seconds[able[0].run.cell.id])
            done.add(able[0].run.key)
        if not busy:
            return done
        now = min(busy)
        busy.remove(now)


times = st.lists(st.integers(1, 20), min_size=1, max_size=6)


@given(times, st.integers(1, 4), st.integers(1, 4), st.integers(0, 60))
def test_what_is_covered_is_what_workers_would_do_one_by_one(took, seeds, workers, left):
    of = plan(len(took), seeds)
    seconds = {f"c{at}": float(time) for at, time in enumerate(took)}
    found = covered(to_start(of), seconds, workers, left)
    done = {run.key for run in found.to_do} - {run.key for run in found.left_out}
    assert done == one_by_one(to_start(of), seconds, workers, left)
    # No worker works beyond the budget, and none more than one run at a time.
    assert found.seconds <= left
    work = sum(seconds[cell] for cell, *_ in done)
    assert work <= workers * found.seconds or not done
    assert found.seconds >= max((seconds[cell] for cell, *_ in done), default=0)


def test_only_what_is_to_do_here_counts():
    of = plan(1, 4)
    actions = [Action.SKIP, Action.WAIT, Action.EVALUATE, Action.START]
    decisions = [Decision(run, record(), action, "") for run, action in zip(of.runs, actions, strict=True)]
    found = covered(decisions, {"c0": 10.0}, 1, 10)
    assert ([run.seed for run in found.to_do], found.left_out, found.seconds) == ([3], (), 10.0)


@pytest.mark.parametrize("seconds", [{}, {"c0": None, "c1": 5.0}])
def test_without_a_prediction_nobody_knows(seconds):
    found = covered(to_start(plan(2, 2)), seconds, 1, 100)
    assert (found.left_out, found.seconds) == (None, None)
    assert "c0" in {cell.id for cell in found.unknown}


def test_a_run_that_goes_on_takes_the_rest_of_its_steps():
    (run,) = plan(1, 1).runs
    for step, left in ((25, 75.0), (0, 100.0), (100, 0.0), (400, 0.0)):
        for action in (Action.CONTINUE, Action.START):  # from a checkpoint, or from a shorter run
            assert remaining(Decision(run, None, action, "", first_step=step), {"c0": 100.0}) == left
    begins = Decision(run, record(RunState.INTERRUPTED, checkpoint_step=25), Action.START, "no checkpoint is left")
    assert remaining(begins, {"c0": 100.0}) == 100.0
    assert remaining(begins, {"c0": None}) is None


def test_a_run_begins_if_it_fits_or_if_nobody_knows():
    (run,) = plan(1, 1).runs
    decision = Decision(run, None, Action.START, "new")
    assert fits(decision, {"c0": 10.0}, 10.0) and not fits(decision, {"c0": 10.0}, 9.9)
    assert fits(decision, {}, 0.1) and not fits(decision, {}, 0.0)
    assert fits(decision, {"c0": 10.0}, math.inf)


def test_what_is_missing_is_summed_up():
    of = plan(4, 3)
    gone = [run for run in of.runs if run.cell.id == "c3" or run.seed == 2 or (run.cell.id, run.seed) == ("c2", 1)]
    first, second, third, fourth = of.cells
    assert missing_seeds(of.runs, gone) == [((2,), [first, second]), ((1, 2), [third]), ((), [fourth])]
    assert missing_seeds(of.runs, []) == []
