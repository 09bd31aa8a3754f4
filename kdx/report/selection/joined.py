"""Several sweeps as one, for tables over the cells of all of them.

A cell that several sweeps plan has the runs of all of them. It stands in the list once for each of these sweeps, with
the sweep's name as its label `sweep`, so that a table may have a row or a column for each; in any other table, all of
them share one place.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from kdx.errors import KdxError
from kdx.grid.table_layout import SWEEP
from kdx.store.records import SweepRecord


def joined(sweeps: Sequence[SweepRecord]) -> SweepRecord:
    """The sweeps as one that asks for no tables.

    Args:
        sweeps: at least one; a sweep that stands there twice counts once.

    Raises:
        KdxError: a sweep has an axis `sweep` of its own.
    """
    parts = tuple({sweep.id: sweep for sweep in sweeps}.values())
    planned_by: dict[str, dict[str, dict[str, str]]] = {}
    for part in parts:
        for cell in part.cells:
            if SWEEP in cell.labels:
                problem = f"sweep `{part.name}` has an axis `{SWEEP}`, which names the sweeps in a table over several"
                raise KdxError(problem, hint="give the axis another name in its grid, and plan the grid again")
            planned_by.setdefault(cell.id, {}).setdefault(part.name, {}).update(cell.labels)
    ordinal = count()
    cells = []
    for part in parts:
        for cell in part.cells:
            # An axis that only another sweep has describes the cell as well.
            others = [words for name, words in planned_by[cell.id].items() if name != part.name]
            other_axes = {axis: word for words in others for axis, word in words.items()}
            labels = {**other_axes, **cell.labels, SWEEP: part.name}
            cells.append(replace(cell, labels=labels, sweeps=tuple(planned_by[cell.id]), ordinal=next(ordinal)))
    # Where the seeds of all were added by the same rule, it is that of the whole.
    rules = [part.grid.get("seed_rule") for part in parts]
    rule = {"seed_rule": rules[0]} if rules[0] and all(other == rules[0] for other in rules) else {}
    runs = {run.id: run for part in parts for run in part.runs}
    return replace(
        parts[0],
        name=", ".join(part.name for part in parts),
        grid={
            "tables": [],
            "axes": list(dict.fromkeys(axis for part in parts for axis in part.grid.get("axes") or ())),
            **rule,
        },
        cells=tuple(cells),
        runs=tuple(runs[id] for id in sorted(runs)),
        metrics={id: metrics for part in parts for id, metrics in part.metrics.items()},
        provenance={id: origin for part in parts for id, origin in part.provenance.items()},
        evaluations={id: each for part in parts for id, each in part.evaluations.items()},
        documents={id: sums for part in parts for id, sums in part.documents.items()},
        joins=parts,
        searches=tuple({(search.id, search.wanted): search for part in parts for search in part.searches}.values()),
    )


def names(sweep: SweepRecord) -> tuple[str, ...]:
    """The name of the sweep, or of each that it joins."""
    return tuple(part.name for part in sweep.joins) or (sweep.name,)
