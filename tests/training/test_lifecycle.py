"""When a run records, checkpoints and stops."""

import pytest
import torch
from runs import STEPS, TASKS, Kept, cell, run, same_bits, save_every_step

from kdx.training import lifecycle
from kdx.training.checkpoint import CheckpointFiles
from kdx.training.module import TaskModule
from kdx.training.run import train as train_run
from kdx.training.schedule import rate_factor
from kdx.training.stopping import Stopped, StopRequest

BOTH = pytest.mark.parametrize("task", TASKS)


@BOTH
def test_all_rows_before_a_checkpoint_are_durable_when_it_is_written(task, home, tmp_path, monkeypatch):
    recorder, write = Kept(), CheckpointFiles.write

    def watched(files, kind, step, state):
        recorder.events.append(("write", kind, step))
        return write(files, kind, step, state)

    monkeypatch.setattr(CheckpointFiles, "write", watched)
    save_every_step(monkeypatch)
    events = run(cell(task), tmp_path, home, recorder=recorder).events
    written = [place for place, event in enumerate(events) if event[:2] == ("write", "step")]
    assert len(written) == STEPS - 1
    for place in written:
        step = events[place][2]
        assert events[place - 1] == ("flush", step)
        assert max(event[2] for event in events[:place] if event[0] == "metric") == step


def test_time_decides_when_a_checkpoint_is_taken_and_its_cost_is_bounded(home, tmp_path, monkeypatch):
    saved, save = [], CheckpointFiles.save_checkpoint

    def watched(files, state, *path, **options):
        saved.append(state["global_step"])
        save(files, state, *path, **options)

    monkeypatch.setattr(CheckpointFiles, "save_checkpoint", watched)
    for every, share, expected in ((1e9, 0.02, []), (0.0, 1e9, [*range(1, STEPS)]), (0.0, 1e-9, [1])):
        monkeypatch.setattr(lifecycle, "CHECKPOINT_EVERY", every)
        monkeypatch.setattr(lifecycle, "CHECKPOINT_SHARE", share)
        saved.clear()
        run(cell("prediction"), tmp_path / f"{every}-{share}", home)
        assert saved == expected


def test_a_wait_for_the_database_and_a_slow_disk_silence_no_checkpoint(home, tmp_path, monkeypatch):
    now, saved, save = [0.0], [], CheckpointFiles.save_checkpoint

    class Slow(Kept):
        def flush(self, step):
            now[0] += 300.0 * (step == 1)

    def slow(files, state, *path, **options):
        saved.append(state["global_step"])
        now[0] += 300.0 * (state["global_step"] == 5)
        save(files, state, *path, **options)

    monkeypatch.setattr(lifecycle.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(CheckpointFiles, "save_checkpoint", slow)

    def passes(step: int) -> None:
        now[0] += 31.0 if step < 9 else lifecycle.CHECKPOINT_WITHIN

    run(cell("prediction"), tmp_path, home, recorder=Slow(passes))
    assert saved == [1, 2, 3, 4, 5, 9, 10, 11]


@BOTH
def test_a_stopped_run_leaves_a_checkpoint_of_the_step_just_done_and_durable_rows(task, train):
    stopped = train(cell(task), stop_after=7)
    assert stopped.outcome is None
    (path,) = stopped.checkpoints()
    assert path.name.startswith("step-000000007.")
    assert stopped.events[-1] == ("flush", 7) and ("train/loss", 7) in stopped.rows


def test_a_run_asked_to_stop_before_its_first_step_leaves_no_checkpoint(home, tmp_path):
    stop = StopRequest()
    stop.asked = True
    with pytest.raises(Stopped):
        train_run(cell("prediction"), 0, folder=tmp_path, recorder=Kept(), stop=stop, home=home)
    assert not list(tmp_path.iterdir())


def test_a_run_stops_between_steps_never_between_the_batches_of_one(home, tmp_path, unbroken, monkeypatch):
    whole, stop, step = unbroken("prediction", accumulate=2), StopRequest(), TaskModule.training_step

    def asks(module, batch, index):
        stop.asked = stop.asked or index == 6  # the first batch of step 4, counted from 1
        return step(module, batch, index)

    monkeypatch.setattr(TaskModule, "training_step", asks)
    with pytest.raises(Stopped):
        train_run(whole.spec, 0, folder=tmp_path, recorder=Kept(), stop=stop, home=home)
    monkeypatch.undo()
    resumed = run(whole.spec, tmp_path, home)
    assert min(resumed.column("train/loss")) == 5
    assert all(resumed.rows[key] == whole.rows[key] for key in resumed.rows)
    assert same_bits(resumed.weights, whole.weights)


def test_a_checkpoint_that_falls_due_in_the_middle_of_a_step_waits_for_its_end(home, tmp_path, monkeypatch):
    batches, save = [], CheckpointFiles.save_checkpoint

    def watched(files, state, *path, **options):
        batches.append(state["loops"]["fit_loop"]["epoch_loop.batch_progress"]["current"]["completed"])
        save(files, state, *path, **options)

    due = iter([False, True] * 100)
    monkeypatch.setattr(CheckpointFiles, "save_checkpoint", watched)
    monkeypatch.setattr(lifecycle.Lifecycle, "_due", lambda self: next(due))
    run(cell("prediction", accumulate=3), tmp_path, home)
    assert batches and all(count % 3 == 0 for count in batches)


@pytest.mark.parametrize(("grace", "at"), [(-1.0, 5), (1e9, 6)], ids=["long", "short"])
def test_a_validation_comes_to_its_end_before_a_stop_unless_it_takes_long(
    grace, at, home, tmp_path, unbroken, monkeypatch
):
    whole, stop, recorder, step = unbroken("prediction"), StopRequest(), Kept(), TaskModule.validation_step

    def asks(module, batch, index):
        stop.asked = True
        step(module, batch, index)

    save_every_step(monkeypatch)
    monkeypatch.setattr(lifecycle, "VALIDATION_GRACE", grace)
    monkeypatch.setattr(TaskModule, "validation_step", asks)
    with pytest.raises(Stopped):
        train_run(whole.spec, 0, folder=tmp_path, recorder=recorder, stop=stop, home=home)
    assert recorder.events[-1] == ("flush", 5)
    assert any(event[:3] == ("metric", "valid/loss", 5) for event in recorder.events) is (grace > 0)
    monkeypatch.undo()
    resumed = run(whole.spec, tmp_path, home)
    assert min(resumed.column("train/loss")) == at
    assert all(whole.rows[key] == value for key, value in resumed.rows.items())
    assert resumed.outcome == whole.outcome and same_bits(resumed.weights, whole.weights)


@pytest.mark.parametrize("average", [0, 2])
def test_a_run_stops_in_its_test_pass_and_then_ends_the_same(average, home, tmp_path, unbroken, monkeypatch):
    whole, stop, step = unbroken("prediction", average=average), StopRequest(), TaskModule.test_step

    def asks(module, batch, index):
        stop.asked = index == 1
        step(module, batch, index)

    monkeypatch.setattr(TaskModule, "test_step", asks)
    with pytest.raises(Stopped):
        train_run(whole.spec, 0, folder=tmp_path, recorder=Kept(), stop=stop, home=home)
    monkeypatch.undo()
    resumed = run(whole.spec, tmp_path, home)
    assert resumed.rows == whole.rows and same_bits(resumed.weights, whole.weights)


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_the_training_loss_of_a_step_is_the_mean_over_its_batches(accumulate, train, monkeypatch):
    losses, step = [], TaskModule.training_step

    def watched(module, batch, index):
        loss = step(module, batch, index)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(TaskModule, "training_step", watched)
    done = train(cell("prediction", accumulate=accumulate))
    means = torch.tensor(losses, dtype=torch.float64).view(STEPS, accumulate).mean(1)
    assert list(done.column("train/loss").values()) == pytest.approx(means.tolist(), rel=1e-6)
    assert [loss for _, _, loss in done.of("progress")] == list(done.column("train/loss").values())


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_learning_rate_of_a_step_is_the_one_it_was_taken_with(accumulate, train, monkeypatch):
    used, before = [], TaskModule.on_before_optimizer_step

    def watched(module, optimizer):
        used.append(optimizer.param_groups[0]["lr"])
        before(module, optimizer)

    monkeypatch.setattr(TaskModule, "on_before_optimizer_step", watched)
    done = train(cell("prediction", accumulate=accumulate))
    assert list(done.column("train/learning_rate").values()) == used
    assert used == [3e-2 * rate_factor(done.spec.training, step) for step in range(STEPS)]
