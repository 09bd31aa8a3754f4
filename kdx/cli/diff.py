"""`kdx diff`: how two runs or two cells differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import table, width
from kdx.cli.context import Answering
from kdx.cli.wording import shown_score, test_metric
from kdx.errors import KdxError
from kdx.grid.cell_selector import word
from kdx.report.diff import (
    Change,
    CurveDifference,
    ScorePair,
    condition_changes,
    curve_differences,
    seed_pairs,
    setting_changes,
)
from kdx.report.selection.best_seed import standing_runs
from kdx.report.writers.widths import GAP
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import cell_details, run_details
from kdx.store.find import CellFound, Found, RunFound, find
from kdx.store.reading import curves_of, origins_of

_LONGEST, _SHORTEST = 40, 8
"""Letters of a value that are shown, as the width allows."""
_MOST_CODE = 6
"""Modules of kdx that are listed where they differ."""


@dataclass(frozen=True)
class Comparison:
    """How two runs or two cells differ; docs/reference/json.md has the keys."""

    kind: str
    settings: Sequence[Change]
    conditions: Sequence[Change]
    metrics: Sequence[str]
    """The metric of the scores on each side."""
    scores: Sequence[ScorePair]
    curves: Mapping[str, Sequence[CurveDifference]]
    """`seed N`, or nothing for two runs → each metric."""


def diff(
    before: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.names_and_cells, metavar="A", help="A run's number, or digits of a cell's id."
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(autocompletion=completion.names_and_cells, metavar="B", help="Another one of the same kind."),
    ],
    context: Answering,
) -> None:
    """Compare two runs or two cells.

    It shows settings, conditions (libraries, machine, data, code), scores seed by seed, and curves: the first step at
    which they are not the same bits.

    Example: kdx diff 7 8
    """
    with context.read() as database:
        comparison = _compare(database, find(database, before), find(database, after))
    heads = (before[:8], after[:8]) if comparison.kind == "cell" else (before, after)
    context.answer(comparison, lambda: _lines(comparison, heads if before != after else ("A", "B")))


def _compare(database: Database, left: Found, right: Found) -> Comparison:
    if isinstance(left, RunFound) and isinstance(right, RunFound):
        details = [run_details(database, side.id) for side in (left, right)]
        cells = [side.cell for side in details]
        before, after = details[0].record, details[1].record
        runs = [[before], [after]]
        pairs = {"": (before, after)}
        seeds = " and ".join(f"seed {seed}" for seed in dict.fromkeys((before.seed, after.seed)))
        scores = [ScorePair.of(seeds, before, after)]
        metrics = None
    elif isinstance(left, CellFound) and isinstance(right, CellFound):
        cells = [cell_details(database, side.id) for side in (left, right)]
        # The runs that stand for the seeds of each cell.
        runs = [standing_runs(cell.runs) for cell in cells]
        by_seed = {run.seed: run for run in runs[1]}
        pairs = {f"seed {run.seed}": (run, by_seed[run.seed]) for run in runs[0] if run.seed in by_seed}
        scores = seed_pairs(*runs)
        # Of several seeds the two metrics that show most.
        metrics = {"train/loss", *(cell.spec.selection_metric for cell in cells)}
    else:
        kinds = " and a ".join(type(side).__name__.removesuffix("Found").lower() for side in (left, right))
        hint = "kdx report A B compares sweeps"
        raise KdxError(f"a {kinds} are not compared", allowed="two runs, or two cells", hint=hint)
    settings = setting_changes(cells[0].spec.plain, cells[1].spec.plain)
    if metrics is None and before.seed != after.seed:
        settings.append(Change("seed", before.seed, after.seed))
    origins = origins_of(database, [run.id for side in runs for run in side])
    curves = curves_of(database, [run.id for pair in pairs.values() for run in pair], metrics)
    return Comparison(
        "run" if metrics is None else "cell",
        settings,
        condition_changes(*([origins[run.id] for run in side] for side in runs)),
        [test_metric(cell.spec.selection_metric) for cell in cells],
        scores,
        {
            name: curve_differences(curves.get(pair[0].id, {}), curves.get(pair[1].id, {}))
            for name, pair in pairs.items()
        },
    )


def _lines(comparison: Comparison, heads: tuple[str, str]) -> Iterator[str]:
    yield from _section("settings", comparison.settings, heads)
    code = [change for change in comparison.conditions if change.name.startswith("code: ")]
    yield ""
    yield from _section("conditions", [change for change in comparison.conditions if change not in code], heads)
    if code:
        names = [change.name.removeprefix("code: ") for change in code]
        if len(names) > _MOST_CODE:
            names[_MOST_CODE:] = [f"and {len(names) - _MOST_CODE} more"]
        yield f"  modules that differ: {sanitize(', '.join(names))}"
    yield ""
    yield "scores on the test split"
    yield from table(
        ("", *heads, "B − A"), (_score_row(pair, *comparison.metrics) for pair in comparison.scores), indent=2
    )
    yield ""
    for name, curves in comparison.curves.items():
        yield from _curve_lines(f"curves of {name}" if name else "curves", curves, heads)


def _curve_lines(title: str, curves: Sequence[CurveDifference], heads: tuple[str, str]) -> Iterator[str]:
    if not curves:
        yield f"{title}: none is recorded"
    elif not any(each.first is not None or each.only_before or each.only_after for each in curves):
        yield f"{title}: the same bits in all {len(curves)} metrics ({sum(each.shared for each in curves):,} numbers)"
    else:
        yield title
        only = [f"only in {head}" for head in heads]
        head = ("metric", "steps in both", "first that differs", "largest difference", "at step", *only)
        rows = [
            (
                each.name,
                each.shared,
                each.first,
                # It may be of the last bits, which the decimals of the metric do not show.
                None if each.largest is None else float(f"{each.largest:.4g}"),
                each.at,
                each.only_before or None,
                each.only_after or None,
            )
            for each in curves
        ]
        yield from table(head, rows, indent=2, optional=only)


def _section(name: str, changes: Sequence[Change], heads: tuple[str, str]) -> Iterator[str]:
    longest = _LONGEST
    if whole := width():
        room = whole - 2 - max((len(change.name) for change in changes), default=0) - 2 * GAP
        longest = max(min(_LONGEST, room // 2), _SHORTEST)
    rows = [
        (change.name, *(_word(change, value, longest, name) for value in (change.before, change.after)))
        for change in changes
    ]
    yield name if rows else f"{name}: the same"
    if rows:
        yield from table(("", *heads), rows, indent=2)


def _word(change: Change, value: Any, longest: int, section: str) -> str:
    if isinstance(value, list) and section != "settings":
        text = ", ".join(map(str, value))
    else:
        text = "–" if value is None else word(change.name, value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _score_row(pair: ScorePair, before: str, after: str) -> tuple[Any, ...]:
    """Return the scores of a pair, and their difference if both are of one metric.

    Args:
        before, after: the metrics of the two sides.
    """
    difference = None
    if pair.before is not None and pair.after is not None and before == after:
        difference = pair.after - pair.before
    return pair.name, shown_score(pair.before, before), shown_score(pair.after, after), shown_score(difference, before)
