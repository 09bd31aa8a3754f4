"""`kdx diff`: how two runs, two cells or two sweeps differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, out_lines
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
    run_pair,
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

_LONGEST = 40
"""Letters of a value that are shown."""
_DIGITS = 8
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
    if _is_grid(before) and _is_grid(after):
        told = _of_plans(_contents_of_grid(before), _contents_of_grid(after))
    else:
        with open_database(db, write=False) as database, database.read():
            told = _of_recorded(database, before, after)
    if json:
        out_json(told.plain())
    else:
        out_lines(told.lines(before, after))


class _Told:
    """What there is to tell; docs/reference/json.md has the layout of `plain`."""

    def __init__(
        self,
        kind: str,
        settings: Sequence[Change] = (),
        conditions: Sequence[Change] = (),
        scores: Sequence[ScorePair] = (),
        curves: Mapping[str, Sequence[CurveDifference]] | None = None,
        plans: Difference | None = None,
    ) -> None:
        self.kind, self.settings, self.conditions, self.scores = kind, settings, conditions, scores
        self.curves = curves
        """Seed in words → the metrics of its two runs; None where no runs are compared."""
        self.plans = plans

    def plain(self) -> dict[str, Any]:
        """For `--json`."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.plans is not None:
            found |= {
                "only_before": list(self.plans.gone),
                "only_after": list(self.plans.new),
                "shared": list(self.plans.shared),
                "seeds_only_before": list(self.plans.seeds_gone),
                "seeds_only_after": list(self.plans.seeds_new),
            }
        return {
            **found,
            "settings": [asdict(one) for one in self.settings],
            "conditions": [asdict(one) for one in self.conditions],
            "scores": [asdict(one) for one in self.scores],
            "curves": [{"of": of, **asdict(one)} for of, its in (self.curves or {}).items() for one in its],
        }

    def lines(self, before: str, after: str) -> Iterator[str]:
        # Of a cell's id the first digits, as everywhere in a table.
        heads = (before[:_DIGITS], after[:_DIGITS]) if self.kind == "cell" else (before, after)
        heads = heads if before != after else ("A", "B")
        if self.plans is not None:
            gone, new, shared = (len(cells) for cells in (self.plans.gone, self.plans.new, self.plans.shared))
            yield sanitize(f"cells: {shared:,} in both, {gone:,} in {heads[0]} only, {new:,} in {heads[1]} only")
        yield from _section("settings", self.settings, heads)
        if self.kind != "grid":
            code = [one for one in self.conditions if one.name.startswith("code: ")]
            others = [one for one in self.conditions if one not in code]
            yield from _section("conditions", others, heads)
            if code:
                names = [one.name.removeprefix("code: ") for one in code]
                if len(names) > _MOST_CODE:
                    names[_MOST_CODE:] = [f"and {len(names) - _MOST_CODE} more"]
                yield f"  modules that differ: {sanitize(', '.join(names))}"
            yield from self._score_lines(heads)
        yield from self._curve_lines(heads)

    def _score_lines(self, heads: tuple[str, str]) -> Iterator[str]:
        yield ""
        if not self.scores:
            yield "scores: nothing to compare"
            return
        yield "scores on the test split, means where there are several seeds"
        rows = [
            (one.name, _mean(one.before), len(one.before), _mean(one.after), len(one.after), _less(one))
            for one in self.scores
        ]
        yield from _table(("", heads[0], "seeds", heads[1], "seeds", "B − A"), rows)

    def _curve_lines(self, heads: tuple[str, str]) -> Iterator[str]:
        if self.curves is None:
            return
        yield ""
        for of, its in self.curves.items():
            name = f"curves of {of}" if of else "curves"
            if not its:
                yield f"{name}: none is recorded"
            elif not any(one.first is not None or one.only_before or one.only_after for one in its):
                steps = sum(one.shared for one in its)
                yield f"{name}: the same bits in all {len(its)} metrics ({steps:,} numbers)"
            else:
                yield name
                head = (
                    "metric",
                    "steps in both",
                    "first that differs",
                    "largest difference",
                    "at step",
                    *(f"only in {head}" for head in heads),
                )
                yield from _table(
                    head,
                    [
                        (
                            one.name,
                            one.shared,
                            "none" if one.first is None and one.shared else one.first,
                            None if one.largest is None else float(f"{one.largest:.4g}"),
                            one.at,
                            one.only_before,
                            one.only_after,
                        )
                        for one in its
                    ],
                )


def _of_recorded(database: Database, before: str, after: str) -> _Told:
    words = (before, after)
    if any(map(_is_grid, words)):
        return _of_plans(
            *(
                _contents_of_grid(one) if _is_grid(one) else _contents(database, find(database, one), one)
                for one in words
            )
        )
    left, right = (find(database, one) for one in words)
    if type(left) is not type(right):
        kinds = " and ".join(f"`{one}` is a {_kind(its)}" for one, its in zip(words, (left, right), strict=True))
        raise KdxError(kinds, allowed="two runs, two cells, two sweeps, or a grid file and a sweep")
    return _of_sweeps(database, left, right) if isinstance(left, SweepFound) else _of_two(database, left, right)


def _of_two(database: Database, left: Found, right: Found) -> _Told:
    """Two runs, or two cells by the runs that stand for their seeds."""
    if isinstance(left, RunFound) and isinstance(right, RunFound):
        kind = "run"
        records = [run_details(database, one.id) for one in (left, right)]
        cells = [one.cell for one in records]
        runs = [[one.record] for one in records]
        pairs = [(runs[0][0], runs[1][0])]
    else:
        assert isinstance(left, CellFound) and isinstance(right, CellFound)
        kind = "cell"
        cells = [cell_details(database, one.id) for one in (left, right)]
        runs = [standing_runs(one.runs) for one in cells]
        by_seed = {run.seed: run for run in runs[1]}
        pairs = [(run, by_seed[run.seed]) for run in runs[0] if run.seed in by_seed]
    settings = setting_changes(cells[0].spec.plain, cells[1].spec.plain)
    if kind == "run" and runs[0][0].seed != runs[1][0].seed:
        settings.append(Change("seed", runs[0][0].seed, runs[1][0].seed))
    origins = origins_of(database, [run.id for side in runs for run in side])
    # Of several seeds the two metrics that tell most; of two runs every number.
    names = None if kind == "run" else {"train/loss", *(one.spec.selection_metric for one in cells)}
    compared = {"" if kind == "run" else f"seed {one.seed}": (one, other) for one, other in pairs}
    found = curves_of(database, [run.id for pair in pairs for run in pair], names)
    return _Told(
        kind,
        settings,
        condition_changes(*([origins[run.id] for run in side] for side in runs)),
        seed_pairs(*runs) if kind == "cell" else [run_pair(*pairs[0])],
        {of: curve_differences(*(found.get(run.id, {}) for run in pair)) for of, pair in compared.items()},
    )


def _of_sweeps(database: Database, left: Any, right: Any) -> _Told:
    plans = [_contents(database, one, one.name) for one in (left, right)]
    sides = [sweep_details(database, one.id) for one in (left, right)]
    runs = [[run.id for cell in side.cells for run in cell.runs] for side in sides]
    origins = origins_of(database, [run for side in runs for run in side])
    told = _of_plans(*plans)
    conditions = condition_changes(*([origins[run] for run in side] for side in runs))
    return _Told("sweep", told.settings, conditions, cell_pairs(*sides), None, told.plans)


def _of_plans(before: Contents, after: Contents) -> _Told:
    found = difference(before, after)
    settings = [Change(one.field, list(one.gone) or None, list(one.new) or None) for one in found.changes]
    return _Told("grid", settings, plans=found)


def _contents(database: Database, found: Found, word: str) -> Contents:
    if not isinstance(found, SweepFound):
        raise KdxError(f"`{word}` is a {_kind(found)}, and a grid is compared with a sweep", allowed="a sweep's name")
    known = contents(database, found.name)
    assert known is not None
    return known


def _contents_of_grid(grid: str) -> Contents:
    return Contents.of(load_grid(grid))


def _is_grid(word: str) -> bool:
    return word.endswith((".yaml", ".yml"))


def _kind(found: Found) -> str:
    return type(found).__name__.removesuffix("Found").lower()


def _section(name: str, changes: Sequence[Change], heads: tuple[str, str]) -> Iterator[str]:
    yield ""
    if not changes:
        yield f"{name}: the same"
        return
    yield name
    yield from _table(("", *heads), [(one.name, _word(one.before), _word(one.after)) for one in changes])


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield from (f"  {line}" for line in to_text(head, list(rows)))


def _word(value: Any) -> str:
    text = "–" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else word("", value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _mean(scores: Sequence[float]) -> float | None:
    return float(f"{sum(scores) / len(scores):.4g}") if scores else None


def _less(one: ScorePair) -> float | None:
    if not one.before or not one.after:
        return None
    difference = sum(one.after) / len(one.after) - sum(one.before) / len(one.before)
    return float(f"{difference:.3g}")
