"""Which runs a worker leaves to others, for how long, and what happens then."""

import pytest

from kdx.grid.plan import PlannedCell, PlannedRun
from kdx.grid.spec import CellSpec
from kdx.store.machine import machine
from kdx.store.records import RunRecord, RunState
from kdx.store.status import InProgress
from kdx.sweep.decide import Action, Decision, leave_to_others
from kdx.vocabulary import IfChanged

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})
A, B = ("a", "data"), ("b", "data")
EVERY = [*IfChanged]


def decision(seed: int, action: Action = Action.CONTINUE, checkpoint: int | None = 30) -> Decision:
    record = RunRecord(
        seed, "c", seed, state=RunState.INTERRUPTED, attempt=1, progress_step=40, checkpoint_step=checkpoint
    )
    return Decision(PlannedRun(PlannedCell("c", 0, {}, SPEC), seed), record, action, "why")


def begun(conditions: tuple[str, str] = A, waited: float = 0.0, refused: str | None = None, host: str = "there"):
    return InProgress(conditions, f"{host}/-/-/1/1/x", waited, {"me": refused} if refused else {})


def decide(since: dict[int, InProgress], if_changed: IfChanged = IfChanged.REFUSE, **which) -> list[Decision]:
    decisions = {seed: decision(seed, **which) for seed in range(max(since) + 2)}
    return [*leave_to_others(decisions, since, "me", patience=600.0, if_changed=if_changed).values()]


@pytest.mark.parametrize("if_changed", EVERY)
def test_a_run_goes_on_exactly_as_long_as_others_may(if_changed):
    early, late, new = decide({0: begun(waited=599.0), 1: begun(waited=600.0)}, if_changed)
    assert (early.exactly, late.exactly, new.exactly) == (True, False, False)
    assert {one.action for one in (early, late, new)} == {Action.CONTINUE}


def test_what_this_worker_refused_it_leaves_to_others_for_good():
    for waited in (0.0, 10_000.0):
        new, refused = decide({0: begun(waited=waited, refused="torch 2.12 → 2.13")})
        assert (new.run.seed, refused.action) == (1, Action.LEAVE)
        assert refused.left == "other conditions here: torch 2.12 → 2.13"
        assert refused.reason == f"left to another worker: {refused.left}"


@pytest.mark.parametrize("if_changed", [IfChanged.RESTART, IfChanged.CONTINUE])
def test_or_for_a_while_and_then_takes_it_after_all_others(if_changed):
    new, waits = decide({0: begun(waited=120.0, refused="x")}, if_changed)
    assert (waits.action, waits.reason) == (Action.WAIT, "left to another worker for 8 min: other conditions here: x")
    new, goes = decide({0: begun(waited=600.0, refused="x")}, if_changed)
    assert (new.run.seed, goes.action, goes.exactly, goes.left) == (1, Action.CONTINUE, False, None)


def test_what_was_refused_once_is_known_of_all_runs_of_its_kind():
    first, new, *left = decide({0: begun(refused="x"), 1: begun(), 2: begun(B)})
    assert [one.run.seed for one in (first, new)] == [2, 3]
    assert [(one.run.seed, one.action) for one in left] == [(0, Action.LEAVE), (1, Action.LEAVE)]


def test_what_another_worker_refused_may_be_tried():
    since = begun()._replace(refusals={"another": "x"})
    assert [one.action for one in decide({0: since})] == [Action.CONTINUE] * 2


@pytest.mark.parametrize("if_changed", EVERY)
def test_a_run_whose_checkpoint_is_elsewhere_waits_and_then_begins_again(if_changed):
    _, waits = decide({0: begun()}, if_changed, action=Action.START)
    assert (waits.action, waits.left) == (Action.WAIT, "its checkpoint at step 30 is not here but on machine there")
    _, again = decide({0: begun(waited=600.0)}, if_changed, action=Action.START)
    assert (again.action, again.left) == (Action.START, None)


@pytest.mark.parametrize(
    ("host", "which"),
    [
        (machine(), {"action": Action.START}),
        ("there", {"action": Action.START, "checkpoint": None}),
        ("there", {"action": Action.CONTINUE}),
    ],
    ids=["lost here", "never made", "here"],
)
def test_no_other_checkpoint_is_waited_for(host, which):
    assert [one.run.seed for one in decide({0: begun(host=host)}, **which) if one.left is None] == [0, 1]
