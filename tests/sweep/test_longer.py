"""A run of more steps goes on from a completed one of the same cell, with the bits of one that was trained at once."""

from pathlib import Path

import pytest
from heard import Heard
from sqlalchemy import select

from kdx.checkpoint_names import CheckpointKind
from kdx.cli.sweep import refuse_anew
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.sections import Training
from kdx.run_options import RunOptions
from kdx.store import reading, recording
from kdx.store.database import Database, open_database
from kdx.store.schema import attempt, metric
from kdx.store.status import costs
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.plan_forecast import forecast_plan
from kdx.sweep.supervisor import Supervisor
from kdx.training.checkpoint import STATE_KEY, CheckpointFiles
from kdx.training.schedule import rate_factor
from kdx.vocabulary import Schedule

GRID = """
name: streams
task: prediction
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
data: {corpus: synthetic-language, train_lines: 300}
training: {batch_tokens: 256, length: 16, warmup: 3, validate_every: 9, record_every: 1, accumulate: 2}
"""
SCHEDULES = "axes: {training.schedule: [constant, inverse-sqrt, warmup-stable-decay, cosine]}\n"


def grid(steps: int, *changes: str, axes: str = "") -> str:
    """A grid of runs with these steps, and changes of its training such as `decay: 4`."""
    return GRID.rstrip().removesuffix("}") + ", " + ", ".join([f"steps: {steps}", *changes]) + "}\n" + axes


def planned(database: Database, text: str):
    file = database.location.parent / "grid.yaml"
    file.write_text(text)
    return load_grid(file)


def ran(database: Database, text: str, *, keep_state: bool = False) -> Heard:
    plan, heard = planned(database, text), Heard()
    recording.register(database, plan)
    options = RunOptions(keep_state=keep_state)
    assert Supervisor(lambda: (plan,), database, 2, heard, ForkServer(), options=options).run() is None
    return heard


def numbers(database: Database) -> dict[str, list[tuple]]:
    """Cell → every row, the scores, and the hash of its weights."""
    numbers = {}
    for run in reading.load_sweep(database).runs:
        rows = select(metric.c.name, metric.c.step, metric.c.bits, metric.c.writes).where(metric.c.run_id == run.id)
        with database.read() as connection:
            known = sorted(map(tuple, connection.execute(rows)))
        numbers[run.cell_id] = [*known, (run.valid_score, run.valid_step, run.test_score, run.weights_sha256)]
    return numbers


def resumed(database: Database) -> list[int]:
    """The step from which each run of the newest plan was trained."""
    runs = {run.id for run in reading.load_sweep(database).runs}
    with database.read() as connection:
        steps = connection.execute(select(attempt.c.run_id, attempt.c.resumed_step))
        return [step for run, step in steps if run in runs]


def opened(folder: Path):
    folder.mkdir(exist_ok=True)
    return open_database(folder / "runs.db", write=True, create=True)


@pytest.mark.parametrize("change", ["average: 2", "learning_rate: 0.5"], ids=["mean of weights", "best is early"])
def test_a_longer_run_has_the_bits_of_one_that_was_trained_at_once(tmp_path, data_home, change):
    with opened(tmp_path / "twice") as database:
        ran(database, grid(24, change, axes=SCHEDULES), keep_state=True)
        decisions = decisions_in(database, planned(database, grid(36, change, axes=SCHEDULES)))
        assert [decision.reason for decision in decisions] == [
            "new; continues from step 23 of run 1 of 24 steps",
            "new; continues from step 23 of run 2 of 24 steps",
            "new; continues from step 21 of run 3 of 24 steps",
            "new; not from run 4 of 24 steps: the rates of a cosine depend on the last step",
        ]
        ran(database, grid(36, change, axes=SCHEDULES))
        assert sorted(resumed(database)) == [0, 21, 23, 23]
        twice = numbers(database)
    with opened(tmp_path / "once") as database:
        ran(database, grid(36, change, axes=SCHEDULES))
        assert numbers(database) == twice


def test_what_a_longer_run_costs_is_the_time_of_its_own_steps(tmp_path, data_home):
    with opened(tmp_path) as database:
        ran(database, grid(24), keep_state=True)
        (record,) = costs(database, ())
        longer = planned(database, grid(48))
        (forecast,) = forecast_plan(database, longer).seconds()
        assert (record.steps, forecast) == (24, pytest.approx(record.seconds * 25 / 24))
        ran(database, grid(48))
        assert sorted(each.steps for each in costs(database, ())) == [24, 25]


def test_the_plan_says_why_a_run_starts_anew(tmp_path, data_home):
    with opened(tmp_path) as database:
        ran(database, grid(12))
        (decision,) = decisions_in(database, planned(database, grid(18)))
        assert (decision.action, decision.shorter) == (Action.START, None)
        assert decision.reason == "new; not from run 1 of 12 steps: it kept no state, as --keep-state does"
        ran(database, grid(18, "schedule: warmup-stable-decay", "decay: 2"), keep_state=True)
        (decision,) = decisions_in(database, planned(database, grid(19, "schedule: warmup-stable-decay", "decay: 9")))
        assert decision.reason == "new; not from run 2 of 18 steps: its rates differ from step 9 on"
        for other in (grid(10), grid(30, "schedule: constant"), grid(30, "learning_rate: 1e-2")):
            (decision,) = decisions_in(database, planned(database, other))
            assert decision.reason == "new"


@pytest.mark.parametrize("state", ["broken", "of other conditions"])
def test_a_state_that_does_not_serve_costs_only_its_steps(tmp_path, data_home, state):
    with opened(tmp_path) as database:
        ran(database, grid(12), keep_state=True)
        (path,) = tmp_path.glob("runs.files/*/shared-*.ckpt")
        if state == "broken":
            path.write_bytes(path.read_bytes()[:-9])
        else:
            files = CheckpointFiles(path.parent)
            content = files.load(path)
            content["callbacks"][STATE_KEY]["origin"]["conditions"]["torch"] = "1.0"
            path.unlink()
            files.write(CheckpointKind.SHARED, 11, content)
        heard = ran(database, grid(18))
        assert resumed(database) == [0]
        (note,) = heard.notes
        assert note[1].startswith("starts at step 0: ")
        late = numbers(database)
    with opened(tmp_path / "once") as database:
        ran(database, grid(18))
        assert numbers(database) == late


def test_shared_steps_have_the_same_rates_whatever_the_number_of_steps():
    for schedule in Schedule:
        short, long = (Training(steps=steps, warmup=10, schedule=schedule) for steps in (100, 150))
        # A checkpoint holds the rate of the step that it is taken before.
        steps = range(short.shared_steps + 1)
        assert [rate_factor(short, step) for step in steps] == [rate_factor(long, step) for step in steps]
        assert len(steps) == {"cosine": 1, "warmup-stable-decay": 90}.get(schedule, 100)


def test_longer_refuses_what_would_start_at_step_0_before_anything_is_recorded(tmp_path, data_home):
    with opened(tmp_path) as database:
        ran(database, grid(12))
        plan = planned(database, grid(18))
        with pytest.raises(KdxError) as refusal:
            refuse_anew(database, plan)
        assert "it kept no state" in refusal.value.problem and refusal.value.place.endswith("seed 0")
        ran(database, grid(14, "learning_rate: 1e-2"), keep_state=True)
        refuse_anew(database, planned(database, grid(18, "learning_rate: 1e-2")))
        assert len(reading.load_sweep(database).runs) == 1
