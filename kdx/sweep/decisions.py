"""What a sweep would do with each run of a plan, given what a database and the files beside it have."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from kdx.components.registry import meant_by
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside, final_weights, resume_step
from kdx.store import evaluations, reading
from kdx.store.database import Database
from kdx.store.records import RunRecord, RunState
from kdx.sweep.decide import Action, Decision, decide
from kdx.sweep.failing import Pause, PausedCells, paused_searches
from kdx.sweep.lease_holder import liveness
from kdx.sweep.seeds import NeededSeeds
from kdx.tune.trial_plan import TrialPlan


def decisions_in(
    database: Database | None,
    plan: Plan,
    files: Path | None = None,
    needed: NeededSeeds | None = None,
    paused: PausedCells | None = None,
) -> tuple[Decision, ...]:
    """A decision for every run of the plan; see `kdx.sweep.decide.decide`.

    Args:
        database: None: there is none yet.
        files: folder of the files of runs; None: the one beside the database.
        needed: finds the seeds that the rule of the plan needs, and keeps them from call to call.
        paused: finds the cells whose runs fail alike, and keeps them from call to call.
    """
    needed, paused = needed or NeededSeeds(plan), paused or PausedCells()
    if database is None:
        return decide(plan, {}, liveness, lambda _: None, {}, lambda _: False, needed(None, {}))
    cells = {cell.id for cell in plan.cells}
    files = files_beside(database.location) if files is None else files
    with database.read():
        # By cell and seed, not by the sweep's name: under that, another kdx may have registered another plan.
        records = reading.recorded(database, cells, plan.seeds)
        evaluated = evaluations.recorded(database, cells) if plan.evaluations else {}
        seeds = needed(database, records)
        wanted = [records[run.key] for run in plan.runs if run.key in records]
        pauses = _of_searches(database, plan, wanted) if isinstance(plan, TrialPlan) else paused(database, wanted)
    checkpoint = partial(resume_step, files)

    def has_weights(run: RunRecord) -> bool:
        return final_weights(files, run) is not None

    return decide(plan, records, liveness, checkpoint, evaluated, has_weights, seeds, pauses)


def _of_searches(database: Database, plan: TrialPlan, records: Iterable[RunRecord]) -> dict[str, Pause]:
    """Cell id → why trials of its search are not begun."""
    # A trial needs all of its runs, so that cells of one are never paused by themselves.
    waiting = {one.cell_id for one in records if one.state is RunState.PENDING}
    found = paused_searches(database, {plan.search_of[cell_id] for cell_id in waiting if cell_id in plan.search_of})
    return {cell: found[search] for cell, search in plan.search_of.items() if search in found}


def lacks_evaluations(database: Database, plan: Plan) -> bool:
    """Whether evaluations that the plan asks for can be made of runs that are completed."""
    # Of these it does not matter which other seeds are needed.
    plan = replace(plan, seed_rule=None)
    with meant_by(plan.components):
        return any(decision.action is Action.EVALUATE for decision in decisions_in(database, plan))
