"""Finds the checkpoint that a run resumes from: its newest undamaged one, made under the same conditions.

This module also deletes the resume checkpoints of a run that has ended.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kdx.checkpoint_names import CheckpointKind
from kdx.errors import ChangedError
from kdx.training.checkpoint import CheckpointFiles, name_of
from kdx.training.conditions import changes
from kdx.training.lifecycle import STATE_KEY
from kdx.training.recorder import Recorder
from kdx.vocabulary import IfChanged


class Resumed(NamedTuple):
    """What a run goes on from."""

    path: Path
    step: int
    """Optimiser steps done."""
    batches: int
    """Batches done."""
    lifecycle: dict[str, Any]
    """The state of the `Lifecycle`."""

    @property
    def conditions(self) -> dict[str, str]:
        """Under which it was made."""
        found: dict[str, str] = self.lifecycle["of"]["conditions"]
        return found

    @property
    def pruned(self) -> bool:
        """Whether the run has only to end as pruned."""
        return self.lifecycle.get("pruned") is not None


def resume(
    files: CheckpointFiles,
    own: str,
    now: Mapping[str, str],
    recorder: Recorder,
    *,
    if_changed: IfChanged,
    recorded: int | None,
    checkpointed: int | None,
) -> tuple[Resumed | None, str | None]:
    """What a run goes on from, None where it begins at step 0; and what has changed since, None where nothing has.

    A checkpoint that the run cannot resume from is set aside; the recorder gets a note of that, and of going back.

    Args:
        own: the name of the run in its checkpoints.
        now: the conditions of this attempt, see `kdx.training.conditions`.
        if_changed: what is done when the run began under other conditions.
        recorded, checkpointed: as in `kdx.training.run.train`.

    Raises:
        ChangedError: it began under other conditions, and that is to be refused.
        StorageError: a damaged checkpoint cannot be set aside.
    """
    newest = max(checkpointed or 0, *(name_of(path).step for path in files.newest_first(CheckpointKind.STEP)), 0)
    resumed = _newest(files, own, recorded)
    step = resumed.step if resumed else 0
    if files.aside or step < newest:
        begins = f"goes on from step {step}" if resumed else "begins again at step 0"
        why = f"{_described(files.aside)}; set aside" if files.aside else "that checkpoint is not there"
        recorder.note(f"{begins}{f', not {newest}' * (step < newest)}: {why}")
    changed = changes(resumed.conditions, now) if resumed else None
    if resumed and changed and if_changed is IfChanged.REFUSE:
        raise ChangedError(
            f"the run came to step {resumed.step} under other conditions: {changed}",
            place=str(files.folder),
            hint="--if-changed restart begins it anew; --if-changed continue goes on, and marks it as not bit-exact",
            changes=changed,
        )
    if changed and if_changed is IfChanged.RESTART:
        delete_resume_checkpoints(files.folder)
        resumed = None
    return resumed, changed


def delete_resume_checkpoints(folder: Path) -> None:
    """Removes what a run in `folder` needed to go on; what it keeps for ever stays."""
    files = CheckpointFiles(folder)
    files.keep(CheckpointKind.STEP)
    files.keep(CheckpointKind.WEIGHTS)


def _newest(files: CheckpointFiles, own: Collection[str], recorded: int | None) -> Resumed | None:
    """The newest checkpoint of this run that is whole, with the weights it lists, and not ahead of the rows."""
    for path in files.newest_first(CheckpointKind.STEP):
        state = files.read(path)
        if state is None:
            continue
        try:
            found = state["callbacks"][STATE_KEY]
            if found["of"]["run"] not in own:
                why = "is of another run"
            elif recorded is not None and state["global_step"] > recorded:
                why = f"is ahead of the recorded rows, which end at step {recorded}"
            elif not all(map(files.is_whole, found["weights"])):
                why = "lists weights that are not there"
            else:
                batches = state["loops"]["fit_loop"]["epoch_loop.batch_progress"]["current"]["completed"]
                return Resumed(path, state["global_step"], batches, found)
        except (AttributeError, KeyError, TypeError):
            why = "is of another version of kdx or of another program"
        files.set_aside(path, why)
    return None


def _described(aside: Mapping[str, str]) -> str:
    return "; ".join(f"{name.partition('.')[0]}….ckpt {why}" for name, why in aside.items())
