"""A run resumes from the newest good checkpoint; the others are set aside."""

import shutil

import pytest
import pytorch_lightning as lightning
import torch
from runs import (
    STEPS,
    TASKS,
    VALIDATIONS,
    WORSENS,
    assert_same,
    assert_same_end,
    cell,
    rows_after,
    run,
    save_every_step,
)

from kdx.errors import StorageError
from kdx.training.checkpoint import CheckpointFiles

BOTH = pytest.mark.parametrize("task", TASKS)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    ("accumulate", "average", "steps"),
    # Averaged weights matter before, at and after a validation.
    [(1, 0, range(1, STEPS)), (2, 0, range(1, STEPS)), (1, 2, (4, 5, 11))],
)
def test_a_run_resumed_from_any_step_ends_as_if_it_had_never_been_broken(
    task, accumulate, average, steps, home, tmp_path, unbroken, figure
):
    whole = unbroken(task, accumulate, average)
    # The final weights are compared too: they are the best, or among those averaged.
    assert whole.outcome.valid_step == STEPS
    checkpoints = whole.checkpoints()
    assert [int(path.name[5:14]) for path in checkpoints] == list(range(STEPS - 1, 0, -1))
    for step in steps:
        folder = tmp_path / str(step)
        whole.left_at(step, folder)
        resumed = run(whole.spec, folder, home)
        assert resumed.rows == rows_after(whole, step)
        assert_same_end(resumed, whole)
    figure(
        f"accumulate {accumulate}, average {average}: resumed from {len(steps)} of {STEPS - 1} steps, "
        f"{len(steps)} identical"
    )


WINDOW = {"filter": {"encoder-self": "window", "decoder-self": "window"}, "left": 4, "right": 2, "sinks": 2}
ROTARY = {"position": "rotary", "rotary_share": 0.5}
TOP_K = {"filter": {"encoder-self": "top-k", "decoder-self": "top-k"}, "top_k": 3}


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    "axes",
    [
        {"normaliser": "softmax-plus-one", "kernel": "elu", **WINDOW},
        {"normaliser": "learned-sink", "kernel": "rbf", "qk_norm": "l2"},
        {"normaliser": "sigmoid", "position": "alibi", "kv_heads": 1},
        {"normaliser": "entmax", **TOP_K},
        {"maps": "differential", "qk_norm": "rms", "output_gate": "sigmoid", "kv_heads": 1, "position": "rotary"},
        {"kernel": "cosformer", **ROTARY, "rotary_scaling": "yarn", "rotary_factor": 4.0, "original_length": 100},
        {"kernel": "taylor", **ROTARY, "rotary_scaling": "ntk", "rotary_factor": 4.0},
        {"kernel": "favor", **ROTARY, "rotary_scaling": "interpolation", "rotary_factor": 4.0},
        {"kernel": "hedgehog", **ROTARY, "rotary_base": 500.0},
    ],
    ids=lambda axes: "+".join(str(word) for word in axes.values() if not isinstance(word, dict)),
)
def test_todays_words_of_attention_go_on_as_if_never_broken(task, axes, home, tmp_path, monkeypatch, figure):
    with monkeypatch.context() as patch:
        save_every_step(patch, keep_all=True)
        whole = run(cell(task, axes=axes), tmp_path / "whole", home)
    whole.left_at(5, tmp_path / "5")
    resumed = run(whole.spec, tmp_path / "5", home)
    assert resumed.rows == rows_after(whole, 5)
    assert_same_end(resumed, whole)
    figure(f"{task}, {', '.join(axes)}: resumed from step 5, identical")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "axes", "training"),
    [
        ("translation", {}, {"schedule": "cosine"}),
        ("translation", {}, {"schedule": "constant"}),
        ("prediction", {"memory": 16, "position": "relative"}, {"schedule": "cosine", "accumulate": 2}),
        ("prediction", {"memory": 24, "position": "relative"}, {"schedule": "constant", "precision": "bf16"}),
        ("prediction", {"position": "rotary"}, {"schedule": "warmup-stable-decay", "decay": 5, "optimiser": "muon"}),
        ("prediction", {"position": "relative"}, {"schedule": "cosine", "optimiser": "lion", "learning_rate": 3e-3}),
        # Directions that no optimiser sees, gates in the cache, and what else a checkpoint must have of new words.
        ("prediction", {"kernel": "favor", "position": ["xpos", "forgetting"], "memory": 16}, {"schedule": "cosine"}),
        ("prediction", {"kernel": "hedgehog", "position": ["fire", "sandwich", "cope"]}, {"schedule": "cosine"}),
    ],
)
def test_every_schedule_optimiser_and_a_memory_go_on_from_before_at_and_after_a_validation(
    task, axes, training, home, tmp_path, monkeypatch, figure
):
    with monkeypatch.context() as patch:
        save_every_step(patch, keep_all=True)
        whole = run(cell(task, axes=axes, **training), tmp_path / "whole", home)
    assert len(whole.checkpoints()) == STEPS - 1
    steps = (2, 5, 11)
    for step in steps:
        whole.left_at(step, tmp_path / str(step))
        resumed = run(whole.spec, tmp_path / str(step), home)
        assert resumed.rows == rows_after(whole, step)
        assert_same_end(resumed, whole)
    figure(
        f"{training['schedule']}, {whole.spec.training.optimiser}, memory {axes.get('memory', 0)}: "
        f"resumed from {len(steps)} steps, "
        f"{len(steps)} identical"
    )


@pytest.mark.parametrize(("task", "average"), [*((task, 0) for task in TASKS), ("prediction", 2)])
def test_a_run_stopped_after_every_step_tells_each_row_once_and_ends_the_same(task, average, train, unbroken, figure):
    whole, told, stops = unbroken(task, average=average), [], 0
    for step in range(1, STEPS):
        stopped = train(whole.spec, stop_after=step)
        assert stopped.outcome is None
        told += stopped.of("metric")
        stops += 1
    last = train(whole.spec)
    told += last.of("metric")
    assert told == whole.of("metric")
    assert_same_end(last, whole)
    figure(f"average {average}: {stops} stops in one run, {len(told)} rows told once each, identical")


def test_best_weights_from_before_the_stop_are_tested_after_it(home, tmp_path):
    spec = cell("prediction", **WORSENS)
    whole = run(spec, tmp_path / "whole", home)
    assert whole.outcome.valid_step == VALIDATIONS[0]
    assert run(spec, tmp_path / "broken", home, stop_after=8).outcome is None
    resumed = run(spec, tmp_path / "broken", home)
    assert resumed.rows == rows_after(whole, 8)
    assert_same_end(resumed, whole)


@pytest.mark.parametrize("average", [0, 2])
def test_any_one_damaged_file_is_noted_and_changes_no_number(average, home, tmp_path, unbroken, monkeypatch, figure):
    whole = unbroken("prediction", average=average)
    save_every_step(monkeypatch)
    stopped = run(whole.spec, tmp_path / "stopped", home, stop_after=11)
    monkeypatch.undo()
    names = sorted(path.name for path in stopped.folder.glob("*.ckpt"))
    newest, before = (path.name for path in stopped.checkpoints())
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        shutil.copytree(stopped.folder, folder)
        (folder / name).write_bytes(b"half")
        resumed = run(whole.spec, folder, home)
        # Both checkpoints list the same weights.
        begun = {newest: 10, before: 11}.get(name, 0)
        assert [event[4] for event in resumed.of("begin")] == [begun]
        assert resumed.rows == rows_after(whole, begun)
        assert_same_end(resumed, whole)
        assert (folder / name).with_suffix(".corrupt").exists() is (name != before)
        assert len(resumed.of("note")) == (name != before)
    figure(f"average {average}: each of {len(names)} files damaged alone, {len(names)} identical")


@pytest.mark.parametrize("average", [0, 2])
@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"half")])
def test_a_checkpoint_whose_weights_are_missing_or_damaged_gives_way_to_the_one_before(
    average, damage, train, unbroken, monkeypatch
):
    whole = unbroken("prediction", average=average)
    save_every_step(monkeypatch)
    stopped = train(whole.spec, stop_after=VALIDATIONS[0])
    monkeypatch.undo()
    newest, _ = stopped.checkpoints()
    (weights,) = stopped.checkpoints("weights")
    damage(weights)
    resumed = train(whole.spec)
    assert min(resumed.column("train/loss")) == VALIDATIONS[0]
    assert resumed.rows == rows_after(whole, VALIDATIONS[0] - 1)
    assert_same_end(resumed, whole)
    assert newest.with_suffix(".corrupt").exists()
    ((_, told),) = resumed.of("note")
    assert told.startswith("resumes from step 4, not 5: ") and told.endswith("; set aside")
    assert "step-000000005….ckpt lists weights that are not there" in told


def test_a_run_whose_every_checkpoint_is_damaged_begins_again_and_says_so(train, unbroken, monkeypatch, figure):
    whole = unbroken("prediction")
    save_every_step(monkeypatch)
    for path in train(whole.spec, stop_after=7).folder.glob("*.ckpt"):
        path.write_bytes(b"half")
    monkeypatch.undo()
    resumed = train(whole.spec)
    told = "step-000000007….ckpt was damaged; step-000000006….ckpt was damaged"
    assert resumed.of("note") == [("note", f"restarts at step 0, not 7: {told}; set aside")]
    assert_same(resumed, whole)
    figure(resumed.of("note")[0][1])


def test_a_checkpoint_ahead_of_the_rows_is_set_aside(train, unbroken, monkeypatch):
    """This happens when the database was restored from a copy: without the rows between, the run is never completed."""
    whole = unbroken("prediction")
    save_every_step(monkeypatch)
    newest, before = train(whole.spec, stop_after=7).checkpoints()
    monkeypatch.undo()
    resumed = train(whole.spec, recorded=6)
    assert [event[4] for event in resumed.of("begin")] == [6]
    why = "is ahead of the recorded rows, which end at step 6"
    assert resumed.of("note") == [("note", f"resumes from step 6, not 7: step-000000007….ckpt {why}; set aside")]
    assert resumed.rows == rows_after(whole, 6)
    assert newest.with_suffix(".corrupt").exists() and not before.with_suffix(".corrupt").exists()


def test_weights_that_are_damaged_before_they_are_tested_are_made_anew(train, unbroken, monkeypatch):
    whole, validated = unbroken("prediction"), lightning.Trainer.validate

    def damaged(trainer, *arguments, **words):
        validated(trainer, *arguments, **words)
        (name,) = trainer.callbacks[0].weights
        (trainer.callbacks[0].files.folder / name).write_bytes(b"half")

    save_every_step(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(lightning.Trainer, "validate", damaged)
        with pytest.raises(StorageError, match="damaged or removed while its run was at work"):
            train(whole.spec)
    monkeypatch.undo()
    resumed = train(whole.spec)
    assert_same_end(resumed, whole)


@pytest.mark.parametrize("left", [True, False])
def test_a_checkpoint_that_is_gone_is_missed(train, unbroken, monkeypatch, left):
    whole = unbroken("prediction")
    save_every_step(monkeypatch)
    newest, *older = sorted(train(whole.spec, stop_after=7).checkpoints(), reverse=True)
    monkeypatch.undo()
    for path in [newest] if left else [newest, *older]:
        path.unlink()
    resumed = train(whole.spec, recorded=7, checkpointed=7)
    begins = "resumes from step 6" if left else "restarts at step 0"
    assert resumed.of("note") == [("note", f"{begins}, not 7: that checkpoint is not there")]
    assert_same_end(resumed, whole)


def test_a_checkpoint_of_another_version_of_kdx_is_set_aside(train, unbroken):
    whole = unbroken("prediction")
    (path,) = train(whole.spec, stop_after=7).checkpoints()
    files = CheckpointFiles(path.parent)
    state = files.read(path)
    files.keep("step")
    files.write("step", 7, state | {"callbacks": {"kdx/0": {"best": None}}})
    files.write("step", 6, state | {"callbacks": {"kdx/1": {"origin": 3}}})
    again = train(whole.spec)
    assert_same(again, whole)
    why = "is of another version of kdx or of another program"
    told = f"step-000000007….ckpt {why}; step-000000006….ckpt {why}; set aside"
    assert again.of("note") == [("note", f"restarts at step 0, not 7: {told}")]


@pytest.mark.parametrize(("average", "listed"), [(0, 1), (1, 1), (3, 3)])
def test_weights_are_kept_as_long_as_a_resume_checkpoint_lists_them_and_no_longer(average, listed, train, monkeypatch):
    spec = cell("prediction", validate_every=1, average=average)
    save_every_step(monkeypatch)
    # Stopped and gone on, so that what the checkpoint before lists is known from the file alone.
    for step in (6, 7, 8):
        stopped = train(spec, stop_after=step)
        states = [torch.load(path, weights_only=True)["callbacks"]["kdx/1"] for path in stopped.checkpoints()]
        assert len(states) == 2
        assert all(len(state["weights"]) == listed for state in states)
        names = {path.name for path in stopped.checkpoints("weights")}
        assert names == {name for state in states for name in state["weights"]}
    assert list(train(spec).column("test/loss"))
    assert [path.name[:4] for path in stopped.folder.glob("*.ckpt")] in (["best"], ["aver"])


def test_a_resumed_run_decides_by_the_first_step_of_the_run(home, tmp_path):
    spec = cell("prediction", learning_rate=3.0, clip=None)
    whole = run(spec, tmp_path / "whole", home)
    assert whole.outcome.diverged
    assert run(spec, tmp_path / "broken", home, stop_after=7).outcome is None
    assert run(spec, tmp_path / "broken", home).outcome == whole.outcome
