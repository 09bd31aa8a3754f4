"""Finds the checkpoint that a run resumes from: its newest undamaged one, made under the same conditions.

Conditions are what a run's bits depend on apart from its cell and seed; each resume checkpoint has them. Measured on
five steps of a small network: 1, 2 and 4 threads give three results, each of them repeatable, and so do the vector
instructions of AVX2 and of none. Conditions without a name, such as the instructions that a library chose, show in the
canary, see `kdx.training.canary`.

This module also deletes the resume checkpoints of a run that has ended.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kdx.checkpoint_names import CheckpointKind
from kdx.errors import ChangedError
from kdx.training.checkpoint import STATE_KEY, CheckpointFiles, name_of
from kdx.training.recorder import Recorder
from kdx.vocabulary import IfChanged

# No bit depends on these. The code has its own fingerprint.
_NO_MATTER = ("host", "gpu", "cores", "kdx", "commit")
_SHORT = 8
"""Number of characters of a hash in messages."""


class Resumed(NamedTuple):
    """The checkpoint that a run resumes from."""

    path: Path
    step: int
    """Optimiser steps done."""
    batches: int
    """Batches done."""
    lifecycle: dict[str, Any]
    """The state of the `Lifecycle`."""

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions under which it was made."""
        conditions: dict[str, str] = self.lifecycle["origin"]["conditions"]
        return conditions

    @property
    def pruned(self) -> bool:
        """Whether the run was pruned and has only to end."""
        return self.lifecycle.get("pruned") is not None


def conditions(environment: Mapping[str, Any], data_fingerprint: str, code: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions of an attempt, as plain text by name.

    Each module of the code is a separate condition, such as `code kdx.training.run`.
    """
    facts = {name: str(fact) for name, fact in environment.items() if name not in _NO_MATTER}
    return facts | {"data": data_fingerprint} | {f"code {module}": sha256 for module, sha256 in code.items()}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return what differs, such as `torch 2.12.0 → 2.13.0, threads 1 → 2`; None if nothing does."""
    differing = [
        f"{name} {_shown(name, before)} → {_shown(name, now)}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    return ", ".join(differing) or None


def _shown(name: str, facts: Mapping[str, str]) -> str:
    fact = facts.get(name, "not recorded")
    return fact[:_SHORT] if name.partition(" ")[0] in ("data", "code") else fact


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
    """Return the checkpoint to resume from, None to start at step 0; and what has changed since, None if nothing has.

    A checkpoint that the run cannot resume from is set aside; the recorder gets a note of that, and of the steps lost.

    Args:
        own: name of the run in its checkpoints.
        now: conditions of this attempt.
        if_changed: what to do if the run was started under other conditions.
        recorded, checkpointed: as in `kdx.training.run.train`.

    Raises:
        ChangedError: the run was started under other conditions, and `if_changed` refuses that.
        StorageError: a damaged checkpoint cannot be set aside.
    """
    newest = max(checkpointed or 0, *(name_of(path).step for path in files.newest_first(CheckpointKind.STEP)), 0)
    resumed = _newest(files, own, recorded)
    step = resumed.step if resumed else 0
    if files.aside or step < newest:
        begins = f"resumes from step {step}" if resumed else "restarts at step 0"
        why = f"{_described(files.aside)}; set aside" if files.aside else "that checkpoint is not there"
        recorder.note(f"{begins}{f', not {newest}' * (step < newest)}: {why}")
    changed = changes(resumed.conditions, now) if resumed else None
    if resumed and changed and if_changed is IfChanged.REFUSE:
        raise ChangedError(
            f"the run came to step {resumed.step} under other conditions: {changed}",
            place=str(files.folder),
            hint="--if-changed restart starts it again from step 0; --if-changed continue resumes it, marked as not "
            "bit-exact",
            changes=changed,
        )
    if changed and if_changed is IfChanged.RESTART:
        delete_resume_checkpoints(files.folder)
        resumed = None
    return resumed, changed


def delete_resume_checkpoints(folder: Path) -> None:
    """Remove what a run in `folder` needed to resume; the files that a finished run keeps stay."""
    files = CheckpointFiles(folder)
    files.keep(CheckpointKind.STEP)
    files.keep(CheckpointKind.WEIGHTS)


def _newest(files: CheckpointFiles, own: str, recorded: int | None) -> Resumed | None:
    """Return the newest checkpoint of this run that is whole, with the weights it lists, and not ahead of the rows."""
    for path in files.newest_first(CheckpointKind.STEP):
        state = files.read(path)
        if state is None:
            continue
        try:
            lifecycle = state["callbacks"][STATE_KEY]
            if lifecycle["origin"]["run"] != own:
                why = "is of another run"
            elif recorded is not None and state["global_step"] > recorded:
                why = f"is ahead of the recorded rows, which end at step {recorded}"
            elif not all(map(files.is_whole, lifecycle["weights"])):
                why = "lists weights that are not there"
            else:
                batches = state["loops"]["fit_loop"]["epoch_loop.batch_progress"]["current"]["completed"]
                return Resumed(path, state["global_step"], batches, lifecycle)
        except (AttributeError, KeyError, TypeError):
            why = "is of another version of kdx or of another program"
        files.set_aside(path, why)
    return None


def _described(aside: Mapping[str, str]) -> str:
    return "; ".join(f"{name.partition('.')[0]}….ckpt {why}" for name, why in aside.items())
