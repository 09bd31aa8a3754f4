"""What a sweep does with a run follows from the plan and the record alone."""

from dataclasses import replace
from functools import partial

import pytest
from grids import TINY

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.run_files.files import files_beside, folder_of
from kdx.store import claims, evaluations, reading, recording
from kdx.store.database import open_database
from kdx.store.evaluations import EvaluationResult
from kdx.store.records import RunRecord, RunState
from kdx.sweep.blocked import Pause
from kdx.sweep.decide import Action, Decision, decide, decisions_in, lacks_evaluations
from kdx.sweep.lease_holder import Liveness
from kdx.training.checkpoint import CheckpointFiles, name_of

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})
PLAN = Plan("plan", (PlannedCell("a", 0, {}, SPEC), PlannedCell("b", 1, {}, SPEC)), seeds=(0, 1))


def record(state: RunState, **fields) -> RunRecord:
    return RunRecord(1, "a", 0, **{"state": state, "attempt": 1, "progress_step": 40, **fields})


def first(
    recorded: RunRecord | None, liveness: Liveness = Liveness.UNKNOWN, checkpoint: int | None = 38
) -> tuple[Action, str]:
    records = {("a", 0, None): recorded} if recorded else {}
    decision = decide(PLAN, records, lambda owner: liveness, lambda run: checkpoint, {}, lambda run: True)[0]
    return decision.action, decision.reason


UNKNOWN, AT_38 = Liveness.UNKNOWN, "from its checkpoint at step 38:"
RUNNING = partial(record, RunState.RUNNING, owner="x")


@pytest.mark.parametrize(
    ("recorded", "liveness", "action", "reason"),
    [
        (None, UNKNOWN, Action.START, "new"),
        (record(RunState.PENDING, attempt=0), UNKNOWN, Action.START, "not started yet"),
        (record(RunState.PENDING), UNKNOWN, Action.CONTINUE, f"{AT_38} to be tried again after step 40"),
        (record(RunState.INTERRUPTED), UNKNOWN, Action.CONTINUE, f"{AT_38} interrupted at step 40"),
        (
            record(RunState.INTERRUPTED, progress_step=1000),
            UNKNOWN,
            Action.CONTINUE,
            f"{AT_38} interrupted at step 1000 of 1000, in the validation or test after it",
        ),
        (RUNNING(lease_left=9.0), UNKNOWN, Action.WAIT, "running in another kdx"),
        (RUNNING(lease_left=9.0), Liveness.GONE, Action.CONTINUE, f"{AT_38} its process is gone, at step 40"),
        (RUNNING(lease_left=-1.0), UNKNOWN, Action.CONTINUE, f"{AT_38} its lease has lapsed, at step 40"),
        # A machine that slept, or whose clock was put forward.
        (RUNNING(lease_left=-3600.0), Liveness.HERE, Action.WAIT, "running in another kdx"),
        (record(RunState.FAILED, error="boom"), UNKNOWN, Action.SKIP, "failed: boom"),
        (
            record(RunState.COMPLETED, valid_score=1.0, invalidated="the corpus was cut"),
            UNKNOWN,
            Action.SKIP,
            "excluded from reports: the corpus was cut; only kdx retry trains it again",
        ),
        (record(RunState.CANCELLED), UNKNOWN, Action.SKIP, "cancelled; only kdx retry takes it up again"),
        (record(RunState.COMPLETED, valid_score=30.123), UNKNOWN, Action.SKIP, "completed, validation score 30.12"),
        (record(RunState.COMPLETED), UNKNOWN, Action.SKIP, "completed, without a score"),
        (record(RunState.DIVERGED, error="NaN"), UNKNOWN, Action.SKIP, "diverged: NaN"),
        (record(RunState.PRUNED, error="too bad"), UNKNOWN, Action.SKIP, "pruned: too bad"),
    ],
)
def test_each_state_has_its_action_and_reason(recorded, liveness, action, reason):
    assert first(recorded, liveness) == (action, reason)


@pytest.mark.parametrize(
    ("recorded", "reached"),
    [
        (record(RunState.INTERRUPTED), "interrupted at step 40"),
        (record(RunState.PENDING), "to be tried again after step 40"),
        (record(RunState.RUNNING), "its process is gone, at step 40"),
    ],
    ids=lambda value: value.state.value if isinstance(value, RunRecord) else "",
)
def test_a_run_without_a_checkpoint_begins_again(recorded, reached):
    decided = first(recorded._replace(checkpoint_step=38), Liveness.GONE, checkpoint=None)
    assert decided == (Action.START, f"starts again: {reached}, but no checkpoint is left")
    decided = first(recorded, Liveness.GONE, checkpoint=None)
    assert decided == (Action.START, f"starts again: {reached}, before its first checkpoint")


PAUSED = {"a": Pause("ValueError in weight (my_kernels.py)", 2)}


@pytest.mark.parametrize(
    ("recorded", "checkpoint", "paused"),
    [
        (record(RunState.PENDING, attempt=0), None, True),
        (record(RunState.INTERRUPTED), None, True),
        (record(RunState.INTERRUPTED), 38, False),
        (record(RunState.COMPLETED), None, False),
        (record(RunState.RUNNING, owner="x", lease_left=9.0), None, False),
    ],
)
def test_of_a_paused_cell_nothing_is_begun_and_what_is_under_way_goes_on(recorded, checkpoint, paused):
    decisions = decide(
        PLAN,
        {("a", 0, None): recorded},
        lambda _: Liveness.UNKNOWN,
        lambda _: checkpoint,
        {},
        lambda _: True,
        paused=PAUSED,
    )
    first, other = decisions[:2]
    assert (first.pause is not None) is paused and other.pause is None and other.action is Action.START
    if paused:
        assert first.action is Action.SKIP
        assert first.reason == "paused: 2 runs of its cell failed alike: ValueError in weight (my_kernels.py)"


BEAMS = tuple(EvaluationRequest("beams", EvaluationSettings(beam=beam)) for beam in (2, 4, 4))
EVALUATED = replace(PLAN, evaluations=BEAMS)
NARROW, WIDE, _ = (one.id for one in EVALUATED.evaluations_of("a"))


def evaluated(state: RunState, there: dict[str, str | None], *, weights: bool = True) -> Decision:
    records = {("a", 0, None): record(state, error="NaN")}
    return decide(EVALUATED, records, lambda _: Liveness.GONE, lambda _: None, {1: there}, lambda _: weights)[0]


@pytest.mark.parametrize(
    ("there", "weights", "action", "told"),
    [
        ({}, True, Action.EVALUATE, "; 2 evaluations to make"),
        ({NARROW: None}, True, Action.EVALUATE, "; 1 evaluation to make"),
        ({NARROW: None, WIDE: None}, True, Action.SKIP, ""),
        ({NARROW: None, WIDE: "boom"}, True, Action.SKIP, "; 1 evaluation failed"),
        ({WIDE: "boom"}, True, Action.EVALUATE, "; 1 evaluation to make, 1 evaluation failed"),
        ({}, False, Action.SKIP, "; 2 evaluations not made: its weights are gone"),
        ({NARROW: None, WIDE: None}, False, Action.SKIP, ""),
    ],
)
def test_a_completed_run_is_evaluated_where_something_is_missing_and_its_weights_are_there(
    there, weights, action, told
):
    decision = evaluated(RunState.COMPLETED, there, weights=weights)
    assert (decision.action, decision.reason) == (action, f"completed, without a score{told}")
    assert {one.id for one in decision.missing} == {NARROW, WIDE} - there.keys()


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.COMPLETED])
def test_no_other_run_is_evaluated(state):
    assert evaluated(state, {}).action is not Action.EVALUATE


@pytest.fixture
def evaluated_plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 2} + "evaluations: {wide: {beam: [2, 3]}}\n")
    return load_grid(grid)


def test_without_a_database_all_is_new(evaluated_plan):
    assert [one.action for one in decisions_in(None, evaluated_plan)] == [Action.START, Action.START]


def test_what_is_evaluated_and_which_weights_are_left_decides(tmp_path, evaluated_plan):
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep = recording.register(database, evaluated_plan)
        first, _ = reading.runs(database, sweep)
        assert not lacks_evaluations(database, reading.load_sweep(database))
        attempt = claims.claim(database, first.id, "me", 60)
        files = CheckpointFiles(files_beside(database.location) / folder_of(first))
        weights = files.write("best", 10, {"seed": 0})
        hand = recording.RunWriter(database, first.id, "me", attempt)
        hand.complete(1.0, 10, 1.0, {}, 10, weights_sha256=name_of(weights).sha256)
        decision, other = decisions_in(database, evaluated_plan)
        assert (decision.action, other.action) == (Action.EVALUATE, Action.START)
        assert [one.settings["beam"] for one in decision.missing] == [2, 3]
        assert lacks_evaluations(database, reading.load_sweep(database))
        evaluations.record(database, first.id, EvaluationResult(decision.missing[0].id, {}, None, metrics={}))
        assert [one.settings["beam"] for one in decisions_in(database, evaluated_plan)[0].missing] == [3]
        weights.unlink()
        assert decisions_in(database, evaluated_plan)[0].action is Action.SKIP
        assert not lacks_evaluations(database, reading.load_sweep(database))
