"""`kdx diff`: how two runs, two cells or two sweeps differ."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, out_lines
from kdx.cli.named_runs import is_grid_file
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.errors import KdxError
from kdx.grid.cell_selector import word
from kdx.grid.difference import Contents, Difference, difference
from kdx.grid.load import load_grid
from kdx.report.diff import (
    Change,
    CurveDifference,
    ScorePair,
    cell_pairs,
    condition_changes,
    curve_differences,
    seed_pairs,
    setting_changes,
)
from kdx.report.selection.best_seed import standing_runs
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.store.database import Database, open_database
from kdx.store.details import cell_details, run_details, sweep_details
from kdx.store.find import CellFound, Found, RunFound, SweepFound, find
from kdx.store.reading import contents, curves_of, origins_of
from kdx.store.records import RunRecord

_LONGEST = 40
"""Letters of a value that are shown."""
_DIGITS = 8
_CODE = "code: "
"""Prefix of a condition that is the hash of a module."""
_MOST_CODE = 6
"""Modules of kdx that are listed where they differ."""


def diff(
    before: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.anything,
            metavar="A",
            help="A run's number, digits of a cell's id, a sweep, a grid.",
        ),
    ],
    after: Annotated[
        str, typer.Argument(autocompletion=completion.anything, metavar="B", help="Another one of the same kind.")
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Compare two runs, cells or sweeps, or a grid and a sweep.

    Settings, conditions (libraries, machine, data, code), scores seed by
    seed, and curves: the first step at which they are not the same bits.

    Example: kdx diff 7 8
    """
    sides = (before, after)
    if all(map(is_grid_file, sides)):
        compared = _of_plans(*(Contents.of(load_grid(side)) for side in sides))
    else:
        with open_database(db, write=False) as database, database.read():
            compared = _of_recorded(database, sides)
    if json:
        out_json(compared.plain())
    else:
        out_lines(compared.lines(before, after))


@dataclass(frozen=True)
class _Compared:
    """How two sides differ; docs/reference/json.md has the layout of `plain`."""

    kind: str
    settings: Sequence[Change] = ()
    conditions: Sequence[Change] = ()
    scores: Sequence[ScorePair] = ()
    curves: Sequence[CurveDifference] | None = None
    """None where no runs are compared."""
    plans: Difference | None = None

    def plain(self) -> dict[str, Any]:
        """Return what `--json` writes."""
        plans = self.plans and {
            "only_before": list(self.plans.gone),
            "only_after": list(self.plans.new),
            "shared": list(self.plans.shared),
            "seeds_only_before": list(self.plans.seeds_gone),
            "seeds_only_after": list(self.plans.seeds_new),
        }
        return {
            "kind": self.kind,
            **(plans or {}),
            "settings": [asdict(change) for change in self.settings],
            "conditions": [asdict(change) for change in self.conditions],
            "scores": [asdict(pair) for pair in self.scores],
            "curves": [asdict(curve) for curve in self.curves or ()],
        }

    def lines(self, before: str, after: str) -> Iterator[str]:
        # Tables show the first digits of a cell's id.
        heads = (before[:_DIGITS], after[:_DIGITS]) if self.kind == "cell" else (before, after)
        heads = heads if before != after else ("A", "B")
        if self.plans is not None:
            gone, new, shared = (len(cells) for cells in (self.plans.gone, self.plans.new, self.plans.shared))
            yield sanitize(f"cells: {shared:,} in both, {gone:,} in {heads[0]} only, {new:,} in {heads[1]} only")
        yield from _changes("settings", self.settings, heads)
        if self.kind != "grid":
            yield from _changes(
                "conditions", [change for change in self.conditions if not change.name.startswith(_CODE)], heads
            )
            modules = [change.name.removeprefix(_CODE) for change in self.conditions if change.name.startswith(_CODE)]
            if len(modules) > _MOST_CODE:
                modules[_MOST_CODE:] = [f"and {len(modules) - _MOST_CODE} more"]
            if modules:
                yield f"  modules that differ: {sanitize(', '.join(modules))}"
            yield from _scores(self.scores, heads)
        if self.curves is not None:
            yield from _curves(self.curves, heads)


def _scores(scores: Sequence[ScorePair], heads: tuple[str, str]) -> Iterator[str]:
    yield ""
    if not scores:
        yield "scores: nothing to compare"
        return
    yield "scores on the test split, means where there are several seeds"
    rows = []
    for pair in scores:
        means = [sum(side) / len(side) if side else None for side in (pair.before, pair.after)]
        less = f"{means[1] - means[0]:.3g}" if means[0] is not None and means[1] is not None else None
        left, right = (None if mean is None else float(f"{mean:.4g}") for mean in means)
        rows.append((pair.name, left, len(pair.before), right, len(pair.after), less and float(less)))
    yield from _table(("", heads[0], "seeds", heads[1], "seeds", "B − A"), rows)


def _curves(curves: Sequence[CurveDifference], heads: tuple[str, str]) -> Iterator[str]:
    yield ""
    if not curves:
        yield "curves: none is recorded"
    for of, group in groupby(curves, key=lambda curve: curve.of):
        metrics = list(group)
        name = f"curves of {of}" if of else "curves"
        if not any(curve.first is not None or curve.only_before or curve.only_after for curve in metrics):
            steps = sum(curve.shared for curve in metrics)
            yield f"{name}: the same bits in all {len(metrics)} metrics ({steps:,} numbers)"
            continue
        yield name
        yield from _table(
            (
                *("metric", "steps in both", "first that differs", "largest difference", "at step"),
                *(f"only in {head}" for head in heads),
            ),
            [
                (
                    curve.name,
                    curve.shared,
                    "none" if curve.first is None and curve.shared else curve.first,
                    None if curve.largest is None else float(f"{curve.largest:.4g}"),
                    curve.at,
                    curve.only_before,
                    curve.only_after,
                )
                for curve in metrics
            ],
        )


def _of_recorded(database: Database, sides: tuple[str, str]) -> _Compared:
    records = [None if is_grid_file(side) else find(database, side) for side in sides]
    if None in records:
        return _of_plans(
            *(
                _contents(database, record, side) if record else Contents.of(load_grid(side))
                for side, record in zip(sides, records, strict=True)
            )
        )
    left, right = records
    if isinstance(left, SweepFound) and isinstance(right, SweepFound):
        return _of_sweeps(database, left, right)
    if isinstance(left, RunFound) and isinstance(right, RunFound):
        return _of_runs(database, left, right)
    if isinstance(left, CellFound) and isinstance(right, CellFound):
        return _of_cells(database, left, right)
    kinds = " and ".join(f"`{side}` is a {_kind(record)}" for side, record in zip(sides, records, strict=True))
    raise KdxError(kinds, allowed="two runs, two cells, two sweeps, or a grid file and a sweep")


def _of_runs(database: Database, left: RunFound, right: RunFound) -> _Compared:
    before, after = (run_details(database, run.id) for run in (left, right))
    settings = setting_changes(before.cell.spec.plain, after.cell.spec.plain)
    seeds = list(dict.fromkeys((before.record.seed, after.record.seed)))
    if len(seeds) > 1:
        settings.append(Change("seed", *seeds))
    name = " and ".join(f"seed {seed}" for seed in seeds)
    curves = curves_of(database, [left.id, right.id], None)
    return _Compared(
        "run",
        settings,
        condition_changes([before.provenance], [after.provenance]),
        [ScorePair.of(name, [before.record], [after.record])],
        curve_differences(curves.get(left.id, {}), curves.get(right.id, {})),
    )


def _of_cells(database: Database, left: CellFound, right: CellFound) -> _Compared:
    """Compare two cells by the runs that stand for their seeds."""
    cells = [cell_details(database, cell.id) for cell in (left, right)]
    runs = [standing_runs(cell.runs) for cell in cells]
    # Of several seeds the two metrics that say most.
    metrics = {"train/loss", *(cell.spec.selection_metric for cell in cells)}
    curves = curves_of(database, [run.id for side in runs for run in side], metrics)
    by_seed = {run.seed: run for run in runs[1]}
    return _Compared(
        "cell",
        setting_changes(cells[0].spec.plain, cells[1].spec.plain),
        _conditions(database, runs),
        seed_pairs(*runs),
        [
            difference
            for run in runs[0]
            if (other := by_seed.get(run.seed))
            for difference in curve_differences(curves.get(run.id, {}), curves.get(other.id, {}), f"seed {run.seed}")
        ],
    )


def _of_sweeps(database: Database, left: SweepFound, right: SweepFound) -> _Compared:
    sides = [sweep_details(database, sweep.id) for sweep in (left, right)]
    plans = _of_plans(*(_contents(database, sweep, sweep.name) for sweep in (left, right)))
    conditions = _conditions(database, [[run for cell in side.cells for run in cell.runs] for side in sides])
    return replace(plans, kind="sweep", conditions=conditions, scores=cell_pairs(*sides))


def _of_plans(before: Contents, after: Contents) -> _Compared:
    plans = difference(before, after)
    settings = [Change(change.field, list(change.gone) or None, list(change.new) or None) for change in plans.changes]
    return _Compared("grid", settings, plans=plans)


def _conditions(database: Database, runs: Sequence[Sequence[RunRecord]]) -> list[Change]:
    origins = origins_of(database, [run.id for side in runs for run in side])
    return condition_changes(*([origins[run.id] for run in side] for side in runs))


def _contents(database: Database, record: Found, name: str) -> Contents:
    if not isinstance(record, SweepFound):
        raise KdxError(f"`{name}` is a {_kind(record)}, and a grid is compared with a sweep", allowed="a sweep's name")
    known = contents(database, record.name)
    assert known is not None
    return known


def _kind(record: Found | None) -> str:
    return type(record).__name__.removesuffix("Found").lower()


def _changes(name: str, changes: Sequence[Change], heads: tuple[str, str]) -> Iterator[str]:
    yield ""
    if not changes:
        yield f"{name}: the same"
        return
    yield name
    yield from _table(("", *heads), [(change.name, _word(change.before), _word(change.after)) for change in changes])


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield from (f"  {line}" for line in to_text(head, list(rows)))


def _word(value: Any) -> str:
    text = "–" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else word("", value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
