"""Names of runs, and what a plan or a budget leaves out."""

from collections.abc import Iterator, Sequence

from kdx.cli.amounts import count_of
from kdx.grid.plan import Plan, PlannedCell, PlannedRun
from kdx.sanitize import sanitize
from kdx.sweep.budget import Budget, Covered, MissingSeeds, missing_seeds
from kdx.sweep.durations import in_words

_MOST_NAMED = 4
"""Cells that a message names; of more it gives the number."""


def run_name(run: PlannedRun) -> str:
    """The name of a run in one line: the first digits of its cell, the choice on each axis, and the seed."""
    return sanitize(f"{run.cell.id[:8]} {_choices(run.cell)} · seed {run.seed}")


def cell_name(cell: PlannedCell) -> str:
    """The name of a cell in one line: the first digits of its id, and the choice on each axis."""
    return sanitize(f"{cell.id[:8]} {_choices(cell)}")


def impossible_evaluations(plan: Plan) -> Iterator[str]:
    """A line for each evaluation that some cells cannot have, and for each reason, with these cells."""
    cells = {cell.id: cell for cell in reversed(plan.cells)}
    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in reversed(cells.values()):
        for asked, reason in plan.impossible_evaluations(cell.id):
            found.setdefault((str(asked), reason), []).append(cell)
    for (asked_of, reason), its in found.items():
        count = f"{len(its)} of {len(cells)} cells"
        names = f" ({', '.join(map(_choices, its))})" if len(its) <= _MOST_NAMED else ""
        yield sanitize(f"evaluation {asked_of} cannot be made of {count}{names}: {reason}")


def what_is_left_out(budget: Budget, found: Covered, plan: Plan) -> str | None:
    """A line on what a budget is enough for, and on the seeds and the cells for which it is not.

    None where there is no run to do.
    """
    of, cells = f"the budget of {budget.text}", len({cell.id for cell in plan.cells})
    if not found.to_do:
        return None
    if found.left_out is None or found.seconds is None:
        like = f" like those of {count_of(len(found.unknown), 'cell')}" if len(found.unknown) < cells else ""
        return f"no run{like} has finished yet, so nobody can tell beforehand what {of} leaves out"
    runs = count_of(len(found.to_do), "run")
    if not found.left_out:
        all_of = "the one run" if len(found.to_do) == 1 else f"all {runs}"
        lacking = f"; {without_time(found.evaluations)}" if found.evaluations else ""
        return f"{of} is enough for {all_of} to do: about {in_words(found.seconds)}{lacking}"
    if len(found.left_out) == len(found.to_do):
        return f"{of} is enough for none of the {runs} to do"
    missing = missing_seeds(plan.runs, found.left_out)
    what = "; ".join(_missing(one, cells) for one in missing)
    return sanitize(f"{of} is enough for {len(found.to_do) - len(found.left_out)} of {runs} to do; left out: {what}")


def without_time(evaluations: int) -> str:
    """That evaluations are in no time that is forecast."""
    are = "is not in it, for its" if evaluations == 1 else "are not in it, for their"
    return f"{count_of(evaluations, 'evaluation')} {are} time is recorded nowhere"


def _missing(one: MissingSeeds, cells: int) -> str:
    all_cells = len(one.cells) == cells
    which = "all cells" if all_cells else count_of(len(one.cells), "cell")
    names = "" if all_cells or len(one.cells) > _MOST_NAMED else f" ({', '.join(map(_choices, one.cells))})"
    if not one.seeds:
        return f"{which} not at all{names}"
    return f"seed{'' if len(one.seeds) == 1 else 's'} {_ranges(one.seeds)} of {which}{names}"


def _ranges(seeds: Sequence[int]) -> str:
    """Numbers in a row by their ends: 0, 2–4."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    dashes = {1: "", 2: ", "}
    return ", ".join(f"{one[0]}{dashes.get(len(one), '–')}{str(one[-1]) if len(one) > 1 else ''}" for one in runs)


def _choices(cell: PlannedCell) -> str:
    return " · ".join(cell.labels.values()) or cell.spec.task
