"""Finds the completed runs that planned runs of more steps can continue, and says why others start at step 0."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from kdx.cell_code import code_of
from kdx.grid.plan import PlannedRun, RunKey
from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.run_files.files import files_of
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.recorded_grid import whole_cell
from kdx.store.records import Provenance, RunRecord, RunState
from kdx.store.schema import among, cell, run
from kdx.vocabulary import Schedule


class Shorter(NamedTuple):
    """What there is of a planned run with fewer steps."""

    record: RunRecord | None
    """The run that it can continue; None if there is none."""
    reason: str
    """From where it continues, or why it starts at step 0."""
    first_step: int
    """The step of the state that it continues from; 0 if there is none."""


def shorter_runs(database: Database, files: Path, wanted: Iterable[PlannedRun]) -> dict[RunKey, Shorter]:
    """Return key → the completed run of the same cell with fewer steps that serves a planned run best.

    Args:
        files: folder of the files of runs.
        wanted: runs without a result or a checkpoint; those of a search continue none.
    """
    wanted = [each for each in wanted if each.search_id is None]
    cells = {each.cell.id: each.cell.spec for each in wanted}
    apart = {key: _apart_from_steps(json.loads(spec.text)) for key, spec in cells.items()}
    planned: dict[str, list[PlannedRun]] = {}
    for each in wanted:
        planned.setdefault(apart[each.cell.id], []).append(each)
    if not planned:
        return {}
    seeds = {each.seed for runs in planned.values() for each in runs}
    over = (run.c.state == RunState.COMPLETED) & run.c.search_id.is_(None) & among(run.c.seed, seeds)
    with database.read() as connection:
        specs = connection.execute(
            select(cell.c.id, cell.c.spec).where(cell.c.id.in_(select(run.c.cell_id).where(over)))
        ).all()
        known = {key: whole_cell(key, text).plain for key, text in specs}
        alike = {key: spec for key, spec in known.items() if _apart_from_steps(spec) in planned}
        records = reading.recorded(database, alike, seeds).values() if alike else ()
        completed = [each for each in records if each.state is RunState.COMPLETED and each.search_id is None]
        origins = reading.origins_of(database, [record.id for record in completed])
    shorter: dict[RunKey, Shorter] = {}
    for record in sorted(completed, key=lambda record: int(alike[record.cell_id]["training"]["steps"])):
        spec = alike[record.cell_id]
        for each in planned[_apart_from_steps(spec)]:
            steps = each.cell.spec.training.steps
            if each.seed != record.seed or record.invalidated or not spec["training"]["steps"] < steps:
                continue
            new = _judged(Training.model_validate(spec["training"]), each.cell.spec, record, origins[record.id], files)
            # Of several that do not serve, the longest has its reason said.
            if each.key not in shorter or shorter[each.key].first_step <= new.first_step:
                shorter[each.key] = new
    return shorter


def _judged(before: Training, spec: CellSpec, record: RunRecord, origin: Provenance, files: Path) -> Shorter:
    there = f"run {record.id} of {before.steps:,} steps"
    kept = max((file.shared_step or 0 for file in files_of(files, record)), default=0)
    if before.schedule is Schedule.COSINE:
        why = "the rates of a cosine depend on the last step"
    elif not kept:
        why = "it kept no state, as --keep-state does"
    elif kept > spec.training.shared_steps:
        why = f"its rates differ from step {spec.training.shared_steps:,} on"
    elif origin.changes:
        why = f"it is not bit-exact: {origin.changes}"
    elif origin.modules != code_of(spec).modules:
        why = "the code of its training has changed since"
    else:
        return Shorter(record, f"continues from step {kept:,} of {there}", kept)
    return Shorter(None, f"not from {there}: {why}", 0)


def _apart_from_steps(spec: Mapping[str, Any]) -> str:
    """Return the fields of a cell but the number of its steps, as text that is the same for the same fields."""
    training = {key: value for key, value in spec["training"].items() if key not in ("steps", "decay")}
    return json.dumps({**spec, "training": training}, sort_keys=True)
