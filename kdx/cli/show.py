"""`kdx show`: shows a run, a cell or a sweep."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, say
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import is_grid_file, known_sweep
from kdx.cli.shown import Panel, Shown
from kdx.cli.shown_run import shown_run
from kdx.cli.shown_sweep import show_plans, shown_sweep
from kdx.cli.wording import count_of
from kdx.errors import KdxError, did_you_mean
from kdx.report.figures.plot import NamedCurve, Plot, curves_plot
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.report.figures.vega import FORMATS, figure
from kdx.report.folder import write_new_file
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.find import CellFound, Found, RunFound, SweepFound, find
from kdx.store.reading import curves_of, metric_names


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
    conditions = [word for word in words or () if "=" in word]
    metrics = [word for word in words or () if "=" not in word]
    draws = curves or to is not None
    if metrics and not draws:
        raise KdxError(f"`{metrics[0]}` is no condition", allowed="KEY=VALUE", hint="--curves draws a metric")
    with context.read() as database:
        named = known_sweep(database, what, context) if what and is_grid_file(what) else find(database, what)
        if plans:
            if not isinstance(named, SweepFound) or words or draws:
                raise KdxError("--plans are those of a sweep as a whole", allowed="kdx show SWEEP --plans")
            show_plans(database, named.id, named.name, context)
            return
        shown = _shown(database, named, conditions, context)
        drawn = _curves(database, shown, metrics) if draws else []
    if to is not None:
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
