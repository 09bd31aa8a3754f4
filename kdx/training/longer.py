"""Lets a run continue from a completed one of the same cell with fewer steps, whose steps were the same bit by bit.

What it continues from is one file: a resume checkpoint with the weights that it lists, which its own run may have
removed since.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kdx.checkpoint_names import CheckpointKind
from kdx.training.checkpoint import STATE_KEY, CheckpointFiles, name_of
from kdx.training.recorder import Recorder

_WEIGHTS = "listed weights"


class Shorter(NamedTuple):
    """The run that another continues from."""

    run_id: int
    folder: Path


def publish_shared(files: CheckpointFiles, path: Path) -> None:
    """Publish a resume checkpoint, with the weights that it lists, as what a run of more steps can continue from."""
    state = files.load(path)
    names = state["callbacks"][STATE_KEY]["weights"]
    state[_WEIGHTS] = {name: files.load(files.folder / name) for name in names}
    files.write(CheckpointKind.SHARED, name_of(path).step, state)
    files.keep(CheckpointKind.SHARED, [files.newest_first(CheckpointKind.SHARED)[0].name])


def take_over(files: CheckpointFiles, shorter: Shorter, own: str, now: Mapping[str, str], recorder: Recorder) -> bool:
    """Make the shared state of a shorter run a resume checkpoint of this one, with the rows up to it.

    A state that is gone, damaged, or of other conditions is left alone; the recorder gets a note of that.

    Args:
        own, now: as in `kdx.training.resume.resume`.

    Returns:
        whether there is that checkpoint now.
    """
    source = CheckpointFiles(shorter.folder)
    for path in source.newest_first(CheckpointKind.SHARED):
        state = source.read(path)
        if state is None:
            continue
        lifecycle: dict[str, Any] = state["callbacks"][STATE_KEY]
        step, weights = state["global_step"], state.pop(_WEIGHTS)
        if lifecycle["origin"]["conditions"] != dict(now):
            recorder.note(f"starts at step 0: run {shorter.run_id} came to step {step} under other conditions")
            return False
        steps = {name: name_of(files.folder / name).step for name in lifecycle["weights"]}
        lifecycle["origin"] = {"run": own, "conditions": dict(now)}
        lifecycle["weights"] = [files.write(CheckpointKind.WEIGHTS, steps[name], weights[name]).name for name in steps]
        # A checkpoint must never be ahead of the rows before it.
        recorder.take_over(shorter.run_id, step)
        files.write(CheckpointKind.STEP, step, state)
        recorder.note(f"goes on from step {step} of run {shorter.run_id}")
        return True
    recorder.note(f"starts at step 0: what run {shorter.run_id} kept of its steps is not there")
    return False
