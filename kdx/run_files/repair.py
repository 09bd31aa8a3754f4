"""Finds faults of runs and their files, and proposes repairs, as a pure function of both.

No repair deletes a result. A run whose process is gone is given back, a damaged file is set aside under another name,
and only the half-written files of a killed writer are removed.
"""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from kdx.run_files.files import Kind, RunFile, folder_of, is_of
from kdx.store.records import Inventory, RunRecord, RunState

LOST_WEIGHTS = "completed, but its weights are not there"
GONE = (
    "put it back next to the database; without it the numbers stay, stopped runs start again from step 0, and "
    "kdx retry RUN makes the weights of a run"
)
ANEW = "put its files back; otherwise kdx resume starts it again from step 0"


class Repair(StrEnum):
    """The repairs of `kdx doctor --fix`."""

    GIVE_BACK = "give the run back, so that kdx resume continues it"
    SET_ASIDE = "set the file aside"
    REMOVE = "remove the file"


@dataclass(frozen=True)
class Finding:
    """One fault."""

    place: str
    """The run, or the file in the folder of files."""
    problem: str
    repair: Repair | None = None
    """None if kdx cannot repair the fault."""
    hint: str | None = None
    """What the user can do if there is no repair."""
    run: RunRecord | None = None
    file: RunFile | None = None


def diagnose(
    inventory: Inventory,
    listed: Iterable[RunFile] | None,
    damaged: Set[RunFile],
    why_lost: Callable[[RunRecord], str | None],
) -> tuple[Finding, ...]:
    """Return all faults, first of runs, then of files.

    Args:
        listed: files of runs; empty for a database that was shared without them, which is no fault; None if the files
            that this database had are gone.
        damaged: listed files that do not match their checksum.
        why_lost: returns why no process computes a running run any more; None if one does.
    """
    runs = {folder_of(run): run for run in sorted(inventory.runs, key=lambda run: run.generation)}
    held = {name for name, run in runs.items() if run.state is RunState.RUNNING and why_lost(run) is None}
    findings = []
    for name, run in runs.items():
        if run.state is RunState.RUNNING and name not in held:
            findings.append(Finding(_name(run), f"running, but {why_lost(run)}", Repair.GIVE_BACK, run=run))
    files = list(listed or ())
    whole = [file for file in files if file.folder in runs and file not in damaged]
    kept = {file.folder for file in whole if file.kind is Kind.NOTE or is_of(file, runs[file.folder].weights_sha256)}
    resumable = {file.folder for file in whole if file.resume_step is not None}
    newest = {run.key: name for name, run in runs.items() if run.state is RunState.COMPLETED}
    lost = [runs[name] for key, name in newest.items() if key in inventory.planned and name not in kept]
    stopped = [
        run
        for name, run in runs.items()
        if run.state in (RunState.PENDING, RunState.INTERRUPTED)
        and run.checkpoint_step is not None
        and name not in resumable
    ]
    if listed is None and (lost or stopped):
        problem = f"is gone, with the weights of {len(lost)} runs and the checkpoints of {len(stopped)}"
        findings.append(Finding("the folder of run files", problem, hint=GONE))
    elif files:
        findings += [Finding(_name(run), LOST_WEIGHTS, run=run) for run in lost]
        findings += [
            Finding(_name(run), f"{run.state} at step {run.progress_step}, but it has no checkpoint left", hint=ANEW)
            for run in stopped
        ]
    for file in files:
        place = f"{file.folder}/{file.name}"
        # A live process repairs its own files.
        if file.folder not in runs or file.folder in held:
            continue
        if file in damaged:
            findings.append(Finding(place, "does not match its checksum", Repair.SET_ASIDE, file=file))
        elif file.kind is Kind.WEIGHTS and not is_of(file, runs[file.folder].weights_sha256):
            problem = "are not the weights that this run was tested with"
            findings.append(Finding(place, problem, Repair.SET_ASIDE, file=file))
        elif file.kind is Kind.HALF_WRITTEN:
            findings.append(Finding(place, "left half-written by a killed process", Repair.REMOVE, file=file))
    return tuple(findings)


def _name(run: RunRecord) -> str:
    return f"run {run.id} ({run.cell_id[:8]}, seed {run.seed})"
