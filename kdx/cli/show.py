"""`kdx show`: what a run, a cell or a sweep is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import out, out_json, out_lines, say
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.cli.plan_history import PlanHistory
from kdx.cli.shown import Shown
from kdx.cli.shown_run import ShownRun
from kdx.cli.shown_sweep import ShownSweep
from kdx.cli.sweep_argument import plan_in_file
from kdx.errors import KdxError, did_you_mean
from kdx.report.figures.plot import NamedCurve, curves_plot
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.report.figures.vega import FORMATS, figure
from kdx.report.folder import write_new_file
from kdx.sanitize import sanitize
from kdx.store.database import Database, open_database
from kdx.store.find import CellFound, RunFound, SweepFound, find
from kdx.store.reading import curves_of, metric_names

if TYPE_CHECKING:
    from kdx.cli.shown_cell import ShownCell


def show(
    what: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.anything,
            metavar="[RUN|CELL|SWEEP]",
            help="A run's number, at least four digits of a cell's id, a sweep's name, or its grid file; the sweep "
            "planned last if not said.",
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.choices_and_metrics,
            metavar="[KEY=VALUE|METRIC]…",
            help="Only runs that have this, as for kdx status; and with --curves the metrics to draw, such as "
            "valid/loss.",
        ),
    ] = None,
    curves: Annotated[
        bool, typer.Option("--curves", help="Draw curves instead: of a run, of a cell's seeds, or of a sweep's cells.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.svg|png|pdf", help="Draw them into this new file instead.")
    ] = None,
    plans: Annotated[
        bool,
        typer.Option("--plans", help="Show every plan that a sweep has had, its grid as written, and what changed."),
    ] = False,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Show a run, a cell or a sweep in full.

    Curves of a sweep are those of its cells' selected runs, or of each
    cell's first run while none of its runs is completed. A cell that a
    search tried has its trials, with --curves their scores against each
    parameter.

    Example: kdx show 7

    Example: kdx show quickstart kernel=rbf --curves valid/loss

    Example: kdx show quickstart --plans
    """
    if to is not None and json:
        raise KdxError("--to and --json exclude each other", hint="--curves --json has the numbers of the curves")
    if to is not None:
        _refuse_format(to)
    conditions = [word for word in chosen or () if "=" in word]
    metrics = [word for word in chosen or () if "=" not in word]
    draws = curves or to is not None
    if metrics and not draws:
        raise KdxError(f"`{metrics[0]}` is no condition", allowed="KEY=VALUE", hint="--curves draws a metric")
    plan = plan_in_file(what, "show")
    with open_database(db, write=False) as database, database.read():
        if plan and what:
            # What reads a grid takes longer to load than all that a run needs.
            from kdx.cli.planned import record_of

            found: RunFound | CellFound | SweepFound = SweepFound(record_of(database, plan, what, db).id, plan.name)
        else:
            found = find(database, what)
        if plans:
            _show_plans(database, found, with_more=bool(chosen or draws), json=json)
            return
        shown: Shown
        cell: ShownCell | None = None
        if isinstance(found, RunFound):
            if conditions:
                raise KdxError(f"`{conditions[0]}` chooses among runs, and run {found.id} is one")
            shown = ShownRun(database, found.id)
        elif isinstance(found, CellFound):
            # It takes as long to load as all that a run needs.
            from kdx.cli import shown_cell

            shown = cell = shown_cell.ShownCell(database, found.id, conditions)
        else:
            shown = ShownSweep(database, found.id, conditions)
        drawn = _curves(database, shown, metrics) if draws else {}
    if to is not None:
        _write(to, drawn)
    elif json:
        plain = shown.plain()
        out_json({**plain, "curves": _plain_curves(drawn)} if draws else plain)
    elif draws:
        out(sanitize(shown.title))
        _draw(drawn)
        if cell is not None and not metrics:
            _draw_trials(cell)
    else:
        out_lines(shown.lines(db))


def _show_plans(database: Database, found: RunFound | CellFound | SweepFound, *, with_more: bool, json: bool) -> None:
    if not isinstance(found, SweepFound) or with_more:
        raise KdxError("--plans are those of a sweep as a whole", allowed="kdx show SWEEP --plans")
    history = PlanHistory(database, found.id)
    if json:
        out_json({"sweep": found.name, "plans": history.plain()})
    else:
        out_lines(history.lines())


def _curves(database: Database, shown: Shown, metrics: Sequence[str]) -> dict[str, list[NamedCurve]]:
    """Metric → the curves to draw.

    Raises:
        KdxError: no run has recorded anything, or a metric that is asked for.
    """
    drawn = shown.drawn[:MOST_SERIES]
    ids = [record.id for _, record in drawn]
    known = metric_names(database, ids)
    if not known:
        raise KdxError("there is no curve yet", place=shown.title, hint="a run records numbers once it trains")
    for name in metrics:
        if name not in known:
            raise KdxError(f"no run has recorded `{name}`", allowed=known, hint=did_you_mean(name, known))
    if len(shown.drawn) > len(drawn):
        say(f"the first {len(drawn)} of {len(shown.drawn)} curves; KEY=VALUE chooses others")
    names = metrics or [name for name in shown.metrics if name in known]
    found = curves_of(database, ids, names)
    return {
        name: [NamedCurve(legend, found[one.id][name]) for legend, one in drawn if name in found.get(one.id, ())]
        for name in names
    }


def _plain_curves(drawn: Mapping[str, Sequence[NamedCurve]]) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "of": one.name, "steps": list(one.curve.steps), "values": list(one.curve.values)}
        for metric, its in drawn.items()
        for one in its
    ]


def _draw(drawn: Mapping[str, Sequence[NamedCurve]]) -> None:
    for metric, its in drawn.items():
        out("")
        out(TextPlot(curves_plot(metric, its)))


def _draw_trials(shown: "ShownCell") -> None:
    """Where a search found the cell, or tried it: the score against each parameter."""
    # Tables of the report, for which no run and no sweep waits.
    from kdx.report.figures.series import over_parameters

    for one in shown.searches:
        for plot in over_parameters(one):
            out("")
            out(TextPlot(plot))


def _refuse_format(to: Path) -> None:
    if to.suffix.lower() not in FORMATS:
        hint = did_you_mean(to.suffix.lower(), FORMATS) if to.suffix else f"such as {to.name}.svg"
        raise KdxError(f"--to `{to}` names no format that kdx draws", allowed=FORMATS, hint=hint)


def _write(to: Path, drawn: Mapping[str, Sequence[NamedCurve]]) -> None:
    write_new_file(to.expanduser(), figure([curves_plot(*each) for each in drawn.items()], to.suffix.lower()))
    out(str(to))
    say(f"drew {count_of(sum(map(len, drawn.values())), 'curve')} of {', '.join(drawn)}")
