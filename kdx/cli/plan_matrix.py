"""A plan as a picture: a row for each approach, a column for each other choice, and a sign for each run."""

from collections import Counter
from collections.abc import Sequence

from kdx.cli.budget import ranges
from kdx.cli.wording import count_of
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.table_layout import NO_CHOICE
from kdx.report.sheet import Sheet, unless_repeated
from kdx.report.wording import LEVELS, word_of
from kdx.store.records import RunState
from kdx.sweep.decide import Action
from kdx.sweep.plan_forecast import PlannedDecision, RunStatus

Header = tuple[str, ...]
"""A word for each factor of a row, or of a column."""
TASK, APPROACH = "task", "approach"
MOST_ROWS = 40
"""Rows that are shown."""
_MOST_COLUMNS = 12
"""Columns up to which choices stand side by side; else they make rows."""
_MOST_SEEDS = 12
"""Seeds up to which each has its sign; of more the signs are counted."""
_MEANINGS = {
    "●": "done",
    "○": "to train",
    "◐": "to resume",
    "◎": "done, with evaluations to make",
    "!": "done, but its code changed since",
    "▶": "running in another kdx",
    "✗": "failed",
    "≈": "diverged",
    "‖": "paused",
    "x": "cancelled",
    "–": "excluded from reports",
    "?": "to train if comparisons stay open",
    "·": "not needed",
}
"""Sign → its meaning."""
_OF_STATUS = {
    RunStatus.REUSED: "●",
    RunStatus.STALE: "!",
    RunStatus.INVALIDATED: "–",
    RunStatus.RUNNING: "▶",
    RunStatus.FAILED: "✗",
    RunStatus.CANCELLED: "x",
    RunStatus.PAUSED: "‖",
    RunStatus.OPEN: "?",
    RunStatus.NOT_NEEDED: "·",
}


def matrix(plan: Plan, runs: Sequence[PlannedDecision]) -> Sheet:
    """Return the sheet of a plan that trains a cell, with the meaning of each sign that occurs."""
    signs = {planned.decision.run.key[:2]: _sign(planned) for planned in runs}
    rows, columns = _sides(plan.trained)
    places: dict[tuple[Header, Header], list[PlannedCell]] = {}
    for cell in plan.trained:
        places.setdefault((_header(cell, rows), _header(cell, columns)), []).append(cell)
    names, heads = (_in_order([place[side] for place in places]) for side in (0, 1))
    words = [tuple(map(word_of, columns, head)) for head in heads]
    left_out = names[MOST_ROWS:]

    def text(name: Header, head: Header) -> str:
        of_cells = ([signs.get((cell.id, seed), " ") for seed in plan.seeds] for cell in places.get((name, head), ()))
        return " ".join(map(_of_seeds, of_cells))

    there = set(signs.values())
    notes = [", ".join(f"{sign} {meaning}" for sign, meaning in _MEANINGS.items() if sign in there)]
    if left_out:
        first, last = (LEVELS.join(name) for name in (left_out[0], left_out[-1]))
        notes.insert(0, f"… and {count_of(len(left_out), 'more row')}, from {first} to {last}; --all lists their runs")
    cells = count_of(len({cell.id for cell in plan.trained}), "cell")
    return Sheet(
        title=plan.name,
        key=(plan.name,),
        headers=(*rows, *(head[-1] if head else "runs" for head in words)),
        names=len(rows),
        rows=tuple(
            (*unless_repeated(names, at), *(text(name, head) for head in heads))
            for at, name in enumerate(names[:MOST_ROWS])
        ),
        notes=tuple(notes),
        above=tuple(head[:-1] for head in words) if len(columns) > 1 else (),
        caption=f"{cells} × seed{'' if len(plan.seeds) == 1 else 's'} {ranges(plan.seeds)}",
    )


def _sign(planned: PlannedDecision) -> str:
    decision = planned.decision
    if decision.trains:
        return "◐" if decision.action is Action.CONTINUE else "○"
    if decision.action is Action.EVALUATE:
        return "◎"
    if planned.status is RunStatus.REUSED and decision.record and decision.record.state is RunState.DIVERGED:
        return "≈"
    # What another kdx has to do first is to be trained, or resumed, by it.
    return _OF_STATUS.get(planned.status, "▶")


def _sides(cells: Sequence[PlannedCell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the factors of rows and those of columns.

    Rows are approaches, or else the first axis; further axes are rows too while there are too many columns.
    """
    axes = list(dict.fromkeys(axis for cell in cells for axis in cell.labels if axis != TASK))
    axes.sort(key=lambda axis: axis != APPROACH)
    task = (TASK,) if axes and len({cell.spec.task for cell in cells}) > 1 else ()
    for count in range(1, len(axes)):
        columns = (*task, *axes[count:])
        if len({_header(cell, columns) for cell in cells}) <= _MOST_COLUMNS:
            return tuple(axes[:count]), columns
    return tuple(axes) or (TASK,), task


def _header(cell: PlannedCell, factors: Sequence[str]) -> Header:
    words = {TASK: cell.spec.task, **cell.labels}
    return tuple(words.get(factor, NO_CHOICE) for factor in factors)


def _in_order(headers: Sequence[Header]) -> list[Header]:
    """Return the different headers, sorted by the first appearance of each of their words."""
    ranks = [{word: rank for rank, word in enumerate(dict.fromkeys(level))} for level in zip(*headers, strict=True)]
    return sorted(set(headers), key=lambda header: [rank[word] for rank, word in zip(ranks, header, strict=True)])


def _of_seeds(signs: Sequence[str]) -> str:
    if len(signs) <= _MOST_SEEDS:
        return "".join(signs).rstrip()
    return " ".join(f"{count}{sign}" for sign, count in Counter(signs).items())
