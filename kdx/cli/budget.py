"""What messages say of a budget, and of the runs that it is enough for."""

from collections.abc import Sequence

from kdx.cli.wording import choices_of, count_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan, PlannedCell
from kdx.sanitize import sanitize
from kdx.slurm.job_options import JobOptions
from kdx.sweep.budget import Budget
from kdx.sweep.covered import Covered, missing_seeds
from kdx.sweep.forecast import in_words

MOST_NAMED = 4
"""Cells that a message names; of more it gives the number."""


def refuse_budget(slurm: JobOptions | None, budget: Budget | None) -> None:
    """Refuse a budget, which is of one command, for the many workers of Slurm.

    Raises:
        KdxError: both are given.
    """
    if slurm is not None and budget is not None:
        raise KdxError("--budget and --slurm exclude each other", hint="--time is the time limit of a job")


def what_is_left_out(budget: Budget, covered: Covered, plan: Plan) -> str | None:
    """Return a line on what a budget is enough for, and on the seeds and the cells for which it is not.

    Returns:
        None if there is no run to do.
    """
    of_budget, cells = f"the budget of {budget.text}", len({cell.id for cell in plan.cells})
    if not covered.to_do:
        return None
    if covered.left_out is None or covered.seconds is None:
        like = f" like those of {count_of(len(covered.unknown), 'cell')}" if len(covered.unknown) < cells else ""
        return f"no run{like} has finished yet, so it is unknown what {of_budget} leaves out"
    runs = count_of(len(covered.to_do), "run")
    if not covered.left_out:
        all_runs = "the one run" if len(covered.to_do) == 1 else f"all {runs}"
        lacking = f"; {without_time(covered.evaluations)}" if covered.evaluations else ""
        return f"{of_budget} is enough for {all_runs} to do: about {in_words(covered.seconds)}{lacking}"
    if len(covered.left_out) == len(covered.to_do):
        each = "the one run" if len(covered.to_do) == 1 else f"any of the {runs}"
        return f"{of_budget} is too short for {each} to do"
    missing = "; ".join(_missing(*group, cells) for group in missing_seeds(plan.runs, covered.left_out))
    enough = len(covered.to_do) - len(covered.left_out)
    return sanitize(f"{of_budget} is enough for {enough} of {runs} to do; left out: {missing}")


def without_time(evaluations: int) -> str:
    """Return the remark that evaluations are in no time that is forecast."""
    are = "is not in it, for its" if evaluations == 1 else "are not in it, for their"
    return f"{count_of(evaluations, 'evaluation')} {are} time is recorded nowhere"


def names_of(cells: Sequence[PlannedCell]) -> str:
    """Return the choices of a few cells in brackets; nothing for many."""
    return (
        f" ({', '.join(choices_of(cell.labels, cell.spec.task) for cell in cells)})" if len(cells) <= MOST_NAMED else ""
    )


def _missing(seeds: Sequence[int], lacking: Sequence[PlannedCell], cells: int) -> str:
    all_cells = len(lacking) == cells
    which = "all cells" if all_cells else count_of(len(lacking), "cell")
    names = "" if all_cells else names_of(lacking)
    if not seeds:
        return f"{which} not at all{names}"
    return f"seed{'' if len(seeds) == 1 else 's'} {ranges(seeds)} of {which}{names}"


def ranges(seeds: Sequence[int]) -> str:
    """Return consecutive numbers by their ends: 0, 2–4."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    dashes = {1: "", 2: ", "}
    return ", ".join(f"{run[0]}{dashes.get(len(run), '–')}{str(run[-1]) if len(run) > 1 else ''}" for run in runs)
