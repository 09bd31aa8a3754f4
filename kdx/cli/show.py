"""`kdx show`: shows a run, a cell or a sweep, and what there is to show of a sweep."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, say, table
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import RunView, chosen, is_grid_file, known_sweep, run_view, why_not_needed
from kdx.cli.shown import Panel, Shown, fact_lines, shown_run, yaml_lines
from kdx.cli.wording import NOT_NEEDED, count_of, counts_of, notes_in_words, numbers_of, shown_score, time_in_words
from kdx.errors import KdxError, did_you_mean
from kdx.grid.cell_selector import word
from kdx.grid.difference import varying
from kdx.report.figures.charts import FORMATS, figure
from kdx.report.figures.plot import NamedCurve, Plot, curves_plot
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.report.folder import write_new_file
from kdx.report.selection.best_seed import selected_runs
from kdx.report.wording import word_of
from kdx.sanitize import sanitize, spelled_out
from kdx.store import sweeps
from kdx.store.database import Database
from kdx.store.find import CellFound, Found, RunFound, SweepFound, find
from kdx.store.reading import curves_of, load_sweep, metric_names
from kdx.store.records import CellRecord, PlanRecord, RunRecord, RunState
from kdx.store.remarks import remarks
from kdx.vocabulary import Split


def show(
    context: Answering,
    what: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.names_and_cells,
            metavar="RUN|CELL|SWEEP",
            help="A run's number, at least four digits of a cell's id, a sweep, or its grid file; default: the most"
            " recent sweep.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices,
            metavar="KEY=VALUE|METRIC",
            help="Only runs with this, as for kdx status; and metrics to draw, such as valid/loss.",
        ),
    ] = None,
    curves: Annotated[
        bool, typer.Option("--curves", help="Draw curves: of a run, of a cell's seeds, or of a sweep's cells.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.svg|png|pdf", help="Draw curves into this new file.")
    ] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="Show every plan that a sweep has had, with its grid as written.")
    ] = False,
) -> None:
    """Show a run, a cell or a sweep in full.

    Curves of a sweep are those of its cells' selected runs, or of each cell's first run while none of its runs is
    completed. A cell that a search tried has its trials, with --curves their scores against each parameter.

    Example: kdx show 7

    Example: kdx show quickstart kernel=rbf --curves valid/loss

    Example: kdx show quickstart --plans
    """
    if to is not None and context.json:
        raise KdxError("--to and --json exclude each other", hint="--curves --json has the numbers of the curves")
    if to is not None and to.suffix.lower() not in FORMATS:
        hint = did_you_mean(to.suffix.lower(), FORMATS) if to.suffix else f"such as {to.name}.svg"
        raise KdxError(f"--to `{to}` names no format that kdx draws", allowed=FORMATS, hint=hint)
    # A metric of a slice has an =, too: test/bleu/source-words=5-8.
    metrics = [word for word in words or () if "=" not in word or word.partition("/")[0] in [*Split]]
    conditions = [word for word in words or () if word not in metrics]
    draws = curves or to is not None
    if metrics and not draws:
        raise KdxError(f"`{metrics[0]}` is no condition", allowed="KEY=VALUE", hint="--curves draws a metric")
    with context.read() as database:
        named = known_sweep(database, what, context) if what and is_grid_file(what) else find(database, what)
        if plans:
            if not isinstance(named, SweepFound) or words or draws:
                raise KdxError("--plans are those of a sweep as a whole", allowed="kdx show SWEEP --plans")
            name, history = named.name, sweeps.history(database, named.id)
        else:
            shown = _shown(database, named, conditions, context)
            drawn = _curves(database, shown, metrics) if draws else []
    if plans:
        context.answer({"sweep": name, "plans": history}, lambda: _plan_lines(history))
    elif to is not None:
        write_new_file(to.expanduser(), figure([each.plot for each in drawn], to.suffix.lower()))
        out(str(to))
        number, names = sum(len(each.curves) for each in drawn), dict.fromkeys(each.metric for each in drawn)
        say(f"drew {count_of(number, 'curve')} of {', '.join(names)}")
    elif draws and not context.json:
        out(sanitize(shown.title))
        figures = [TextPlot(each.plot, [name for name, _ in each.panel.runs]) for each in drawn]
        for each in figures + ([] if metrics else [*map(TextPlot, shown.plots)]):
            out("")
            out(each)
    else:
        record = {**shown.record, "curves": _plain_curves(drawn)} if draws else shown.record
        context.answer(record, shown.lines)


def _shown(database: Database, named: Found, conditions: Sequence[str], context: Context) -> Shown:
    if isinstance(named, RunFound):
        if conditions:
            raise KdxError(f"`{conditions[0]}` chooses among runs, and run {named.id} is one")
        return shown_run(database, named.id)
    if isinstance(named, CellFound):
        # It takes as long to load as all that a run needs.
        from kdx.cli.shown_cell import shown_cell

        return shown_cell(database, named.id, conditions)
    return shown_sweep(database, named.id, conditions, context)


@dataclass(frozen=True)
class _Drawn:
    """The curves of one metric in a panel."""

    panel: Panel
    metric: str
    curves: Sequence[NamedCurve]

    @property
    def plot(self) -> Plot:
        direction = self.panel.direction(self.metric)
        return curves_plot(self.metric, self.curves, title=self.panel.title, direction=direction)


def _curves(database: Database, shown: Shown, metrics: Sequence[str]) -> list[_Drawn]:
    """Return the curves to draw.

    Raises:
        KdxError: no run has recorded anything, or a metric that is asked for.
    """
    panels = [replace(panel, runs=panel.runs[:MOST_SERIES]) for panel in shown.panels]
    ids = [record.id for panel in panels for _, record in panel.runs]
    known = metric_names(database, ids)
    if not known:
        raise KdxError("there is no curve yet", place=shown.title, hint="a run records numbers once it trains")
    for name in metrics:
        if name not in known:
            raise KdxError(f"no run has recorded `{name}`", allowed=known, hint=did_you_mean(name, known))
    if (every := sum(len(panel.runs) for panel in shown.panels)) > len(ids):
        say(f"the first {len(ids)} of {every} curves; KEY=VALUE chooses others")
    wanted = metrics or dict.fromkeys(name for panel in panels for name in panel.metrics)
    recorded = curves_of(database, ids, wanted)
    drawn = [
        _Drawn(
            panel,
            name,
            [(legend, recorded[run.id][name]) for legend, run in panel.runs if name in recorded.get(run.id, ())],
        )
        for panel in panels
        for name in metrics or panel.metrics
    ]
    return [each for each in drawn if each.curves]


def _plain_curves(drawn: Sequence[_Drawn]) -> list[dict[str, Any]]:
    return [
        {"metric": each.metric, "of": name, "steps": list(curve.steps), "values": list(curve.values)}
        for each in drawn
        for name, curve in each.curves
    ]


MOST_CELLS = 40
"""Cells of a sweep that are listed; kdx status lists the runs of all."""
MOST_VALUES = 8
"""Values of a varying field that are listed."""


@dataclass(frozen=True)
class CellView:
    """A cell of a sweep, as `kdx show` lists it."""

    cell: CellRecord
    selected: RunRecord | None
    """The run whose score stands for the cell."""
    runs: Sequence[RunView]
    """Those that meet the conditions."""

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "cell": self.cell.id,
            "choices": self.cell.labels,
            "metric": self.cell.spec.selection_metric,
            "selected": self.selected and self.selected.id,
            "runs": [run.plain for run in self.runs],
        }


def shown_sweep(database: Database, sweep_id: int, conditions: Sequence[str], context: Context) -> Shown:
    """Return what there is to show of a sweep, and of its runs that meet every `key=value`."""
    sweep, written = load_sweep(database, sweep_id), remarks(database)
    grid, planned = sweep.grid, sweep.distinct_cells
    newest = {run.key: run for run in sorted(sweep.runs, key=lambda run: (run.seed, run.generation))}
    why = why_not_needed(sweep)
    every = [run_view(run, planned[run.cell_id].labels, written, why.get(run.id)) for run in newest.values()]
    by_cell: dict[str, list[RunView]] = {}
    for view in chosen(every, conditions):
        by_cell.setdefault(view.record.cell_id, []).append(view)
    selected = selected_runs(sweep)
    cells = [
        CellView(cell, selected.get(cell.id), by_cell.get(cell.id, []))
        for cell in planned.values()
        if cell.id in by_cell or not conditions
    ]
    varies = varying(cell.spec.plain for cell in planned.values())
    record = {
        "sweep": sweep.name,
        "created": sweep.created,
        "planned": sweep.updated,
        "command": grid.get("command") or None,
        "grid": grid.get("file") or None,
        "description": grid.get("description", ""),
        "seeds": grid.get("seeds", []),
        "tags": written.tags_of_sweeps.get(sweep.id, ()),
        "notes": written.of_sweeps.get(sweep.id, ()),
        "tables": [table.get("name", sweep.name) for table in grid.get("tables", [])],
        "evaluations": list(dict.fromkeys(evaluation["name"] for evaluation in grid.get("evaluations", []))),
        "varies": varies,
        "cells": [cell.plain for cell in cells],
    }
    same = _without(sweep.cells[0].spec.plain, varies) if sweep.cells else {}
    title = f"sweep {sweep.name}"

    def lines() -> Iterator[str]:
        yield sanitize(title)
        yield from fact_lines(_facts(record, cells))
        yield ""
        axes = list(dict.fromkeys(axis for view in cells for axis in view.cell.labels))
        several = len({view.cell.spec.selection_metric for view in cells}) > 1
        head = ("cell", *axes, "done", "run", "seed", *["metric"] * several, "valid", "test")
        rows = (_row(view, axes, several) for view in cells[:MOST_CELLS])
        yield from table(head, rows, spare=("cell", "seed"), indent=2)
        if len(cells) > MOST_CELLS:
            more = context.command("status", sweep.name)
            yield f"  … and {len(cells) - MOST_CELLS:,} more cells; {more} lists all runs"
        if varies:
            yield ""
            yield "varies"
            yield from fact_lines({field: _values(values) for field, values in varies.items()})
        if same:
            yield ""
            yield "the same in all cells"
            yield from yaml_lines(same)

    return Shown(title, record, lines, _panels(cells))


def _panels(cells: Sequence[CellView]) -> list[Panel]:
    """Return a panel for each task, with a run of each of its cells."""
    by_task: dict[str, list[CellView]] = {}
    for view in cells:
        by_task.setdefault(view.cell.spec.task, []).append(view)
    several = len(by_task) > 1

    def drawn(view: CellView, task: str) -> Iterator[tuple[str, RunRecord]]:
        listed = [run.record for run in view.runs]
        selected = view.selected if view.selected and view.selected.key in {run.key for run in listed} else None
        run = selected or next((run for run in listed if run.progress_step), None)
        if run is not None:
            labels = {
                axis: word for axis, word in view.cell.labels.items() if not several or (axis, word) != ("task", task)
            }
            choices = (word_of(axis, word) for axis, word in labels.items())
            yield " · ".join((f"run {run.id}", *choices, f"seed {run.seed}")), run

    return [
        Panel(
            task if several else "",
            [named for view in views for named in drawn(view, task)],
            [view.cell.spec for view in views],
        )
        for task, views in by_task.items()
    ]


def _facts(sweep: Mapping[str, Any], cells: Sequence[CellView]) -> dict[str, str]:
    views = [run for cell in cells for run in cell.runs]
    excluded: dict[str, list[int]] = {}
    for view in views:
        if view.record.invalidated is not None:
            excluded.setdefault(view.record.invalidated, []).append(view.record.id)
    counts = Counter(NOT_NEEDED if view.not_needed else view.record.state.value for view in views)
    return {
        "about": sweep["description"],
        "planned": f"{time_in_words(sweep['planned'])} UTC" + (f", by: {sweep['command']}" if sweep["command"] else ""),
        "grid": sweep["grid"] or "",
        "cells": f"{len(cells):,} with {count_of(len(sweep['seeds']), 'seed')} each",
        "runs": counts_of(counts) or "none",
        "excluded": "; ".join(f"{numbers_of('run', ids)} ({why})" for why, ids in excluded.items()),
        "tags": " ".join(sweep["tags"]),
        "notes": notes_in_words(sweep["notes"]),
        "tables": ", ".join(sweep["tables"]),
        "evaluations": ", ".join(sweep["evaluations"]),
    }


def _row(view: CellView, axes: Sequence[str], with_metric: bool) -> tuple[Any, ...]:
    done = sum(run.record.state is RunState.COMPLETED for run in view.runs)
    metric, best = view.cell.spec.selection_metric, view.selected
    run = (best.id, str(best.seed)) if best else (None, None)
    scores = [shown_score(score, metric) for score in (best.valid_score, best.test_score)] if best else [None, None]
    named = [metric.partition("/")[2]] * with_metric
    choices = (view.cell.labels.get(axis, "–") for axis in axes)
    return view.cell.id[:8], *choices, f"{done} of {len(view.runs)}", *run, *named, *scores


def _without(cell: Mapping[str, Any], fields: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Return a cell less these dotted fields, and less what is empty then."""
    rest = {}
    for key, value in cell.items():
        if isinstance(value, Mapping):
            if inner := _without(value, fields, f"{prefix}{key}."):
                rest[key] = inner
        elif f"{prefix}{key}" not in fields:
            rest[key] = value
    return rest


def _values(values: Sequence[Any]) -> str:
    words = ["–" if value is None else word("", value) for value in values]
    if len(words) > MOST_VALUES:
        words[MOST_VALUES:] = [f"… ({len(words):,} values)"]
    return ", ".join(words)


def _plan_lines(history: Sequence[PlanRecord]) -> Iterator[str]:
    """Write every plan that a sweep has had, the first one first, each with its grid as written."""
    for number, plan in enumerate(history, 1):
        cells, seeds = count_of(len(plan.cells), "cell"), count_of(len(plan.grid.get("seeds", ())), "seed")
        yield f"plan {number}, {time_in_words(plan.made)} UTC: {cells} × {seeds}"
        if command := plan.grid.get("command"):
            yield f"  by {sanitize(command)}"
        for file, text in plan.sources.items():
            yield f"  {sanitize(file)}:"
            yield from (f"    {spelled_out(line, keep=chr(9))}".rstrip() for line in text.splitlines())
        yield ""
