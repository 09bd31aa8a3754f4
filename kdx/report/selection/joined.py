"""Several sweeps as one, for tables over the cells of all of them.

Together, a cell that several sweeps plan is one cell with the runs of all of them. Apart, as a table that names sweeps
has them, each sweep has its own cells, with the seeds that it plans.
"""

from collections.abc import Sequence
from dataclasses import replace

from kdx.errors import KdxError
from kdx.grid.table_layout import SWEEP
from kdx.store.records import CellRecord, SweepRecord

_OF_SWEEP = "-sweep"


def joined(sweeps: Sequence[SweepRecord]) -> SweepRecord:
    """The sweeps as one that asks for no tables; each cell is labelled with the names of the sweeps that plan it.

    Args:
        sweeps: at least one; a sweep that stands there twice counts once.

    Raises:
        KdxError: a sweep has an axis `sweep` of its own.
    """
    parts = tuple({one.id: _labelled(one) for one in sweeps}.values())
    runs = {run.id: run for one in parts for run in one.runs}
    first = parts[0]
    # Where the seeds of all were added by the same rule, it is that of the whole.
    rules = [one.grid.get("seed_rule") for one in parts]
    rule = {"seed_rule": rules[0]} if rules[0] and all(one == rules[0] for one in rules) else {}
    return replace(
        first,
        name=", ".join(one.name for one in parts),
        grid={
            "tables": [],
            "axes": list(dict.fromkeys(axis for one in parts for axis in one.grid.get("axes") or ())),
            **rule,
        },
        cells=_together(parts),
        runs=tuple(runs[id] for id in sorted(runs)),
        metrics={id: metrics for one in parts for id, metrics in one.metrics.items()},
        provenance={id: origin for one in parts for id, origin in one.provenance.items()},
        evaluations={id: made for one in parts for id, made in one.evaluations.items()},
        documents={id: sums for one in parts for id, sums in one.documents.items()},
        joins=parts,
        searches=tuple(asked for one in parts for asked in one.searches),
    )


def apart(sweep: SweepRecord) -> SweepRecord:
    """The cells of joined sweeps, each sweep's with its own seeds.

    A cell that sweeps plan with other seeds is another cell in each of them: its id has the sweep's behind it.
    """
    seeds: dict[str, dict[int, frozenset[int]]] = {}
    for one in sweep.joins:
        planned: dict[str, set[int]] = {cell.id: set() for cell in one.cells}
        for run in one.runs:
            planned.setdefault(run.cell_id, set()).add(run.seed)
        for cell, those in planned.items():
            seeds.setdefault(cell, {})[one.id] = frozenset(those)
    differ = {cell for cell, of_sweeps in seeds.items() if len(set(of_sweeps.values())) > 1}
    parts = tuple(_with_ids_of_its_own(one, differ) for one in sweep.joins)
    return replace(
        sweep,
        cells=tuple(cell for one in parts for cell in one.cells),
        runs=tuple({(run.cell_id, run.id): run for one in parts for run in one.runs}.values()),
        joins=parts,
    )


def planned_id(cell_id: str) -> str:
    """The id that the database has of a cell of `apart`."""
    return cell_id.partition(_OF_SWEEP)[0]


def names(sweep: SweepRecord) -> tuple[str, ...]:
    """The name of the sweep, or of each that it joins."""
    return tuple(one.name for one in sweep.joins) or (sweep.name,)


def _labelled(sweep: SweepRecord) -> SweepRecord:
    if any(SWEEP in cell.labels for cell in sweep.cells):
        problem = f"sweep `{sweep.name}` has an axis `{SWEEP}`, which names the sweeps in a table over several"
        raise KdxError(problem, hint="give the axis another name in its grid, and plan the grid again")
    of_one = (sweep.name,)
    cells = tuple(replace(one, labels={SWEEP: sweep.name, **one.labels}, sweeps=of_one) for one in sweep.cells)
    return replace(sweep, cells=cells)


def _together(parts: Sequence[SweepRecord]) -> tuple[CellRecord, ...]:
    """Each cell once, with the axes of all sweeps; one that two of them label differently on the same axis, twice."""
    variants: dict[str, list[CellRecord]] = {}
    for one in parts:
        for cell in one.cells:
            known = variants.setdefault(cell.id, [])
            at = next((at for at, other in enumerate(known) if _agree(other, cell)), None)
            if at is None:
                known.append(cell)
            else:
                sweeps = (*known[at].sweeps, one.name)
                labels = {**cell.labels, **known[at].labels, SWEEP: ", ".join(sweeps)}
                known[at] = replace(known[at], labels=labels, sweeps=sweeps)
    found = [cell for those in variants.values() for cell in those]
    return tuple(replace(cell, ordinal=ordinal) for ordinal, cell in enumerate(found))


def _agree(known: CellRecord, cell: CellRecord) -> bool:
    """Whether a cell of another sweep has the same choice on each axis that both have."""
    shared = (known.labels.keys() & cell.labels.keys()) - {SWEEP}
    return cell.sweeps[0] not in known.sweeps and all(known.labels[axis] == cell.labels[axis] for axis in shared)


def _with_ids_of_its_own(sweep: SweepRecord, cells: set[str]) -> SweepRecord:
    def own(id: str) -> str:
        return f"{id}{_OF_SWEEP}{sweep.id}" if id in cells else id

    return replace(
        sweep,
        cells=tuple(replace(cell, id=own(cell.id)) for cell in sweep.cells),
        runs=tuple(run._replace(cell_id=own(run.cell_id)) for run in sweep.runs),
    )
