"""Renders the page from its template."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from typing import Any, TypedDict, Unpack

from jinja2 import Environment, FunctionLoader
from markupsafe import Markup, escape

from kdx.report.figures.charts import AttentionMap, mapped, plotted
from kdx.report.figures.plot import Plot
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.selection.cells import INVALIDATED, Cell, Seed
from kdx.report.sheet import DIGIT, Score, Sheet, lined_up, spans
from kdx.report.sheets.claims import heading
from kdx.report.sheets.listings import listings
from kdx.report.sheets.notes import further
from kdx.report.sheets.scores import cell_anchor, run_anchor, score_or_dash, scores
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.report.tables import Table
from kdx.report.writers.html.claims import badge_of, sections
from kdx.report.writers.html.figures import figures
from kdx.report.writers.html.learning import Curves, figures_of_curves
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize, sanitize_lines, spelled_out
from kdx.store.records import Provenance, RunRecord, SweepRecord
from kdx.vocabulary import Direction

Linked = tuple[str, str]
"""A text of a live page, and the address that it leads to, if it is not empty."""


def to_html(
    tables: Sequence[Table],
    sweep: SweepRecord,
    curves: Curves,
    maps: Sequence[tuple[str, Sequence[AttentionMap]]] = (),
) -> str:
    """Return one page: every table with its figures, the learning curves of each cell, and every run.

    Args:
        curves: of `curves_wanted`.
        maps: what a run read, with its maps.
    """
    report = _report(tables, sweep, curves)
    if maps:
        report["sections"].insert(-1, {"id": "attention", "title": "Attention"})
        report["maps"] = [
            {"title": title, "svgs": [(each.name, Markup(mapped(each))) for each in of_run]} for title, of_run in maps
        ]
    return _rendered(title=sweep.name, **report)


def report_part(tables: Sequence[Table], sweep: SweepRecord, curves: Curves) -> Markup:
    """Return what `to_html` shows, to stand on a page of `live_page`."""
    return Markup(_templates().get_template("main.html").render(live=True, **_report(tables, sweep, curves)))


def claims_part(answers: Sequence[tuple[Paper, Sequence[Answer]]]) -> Markup:
    """Return what `claims_to_html` shows, to stand on a page of `live_page`."""
    return Markup(_templates().get_template("main.html").render(papers=_claims(answers, "")))


def curves_part(plots: Iterable[Plot]) -> Markup:
    """Return plots of curves, to stand on a page of `live_page`."""
    drawn = Markup("").join(Markup(plotted(spanned)) for plot in plots if (spanned := plot.spanned()) is not None)
    return Markup('<h2>Curves</h2><div class="figures">{}</div>').format(drawn) if drawn else drawn


class Live(TypedDict, total=False):
    """What a page of `kdx serve` may show beside its title and texts."""

    lead: str
    done: int
    """Runs that have ended, of `total`."""
    total: int
    lists: Sequence[Mapping[str, Any]]
    """Each with `title`, `headers` and `rows` of `Linked`."""
    report: Markup
    revision: str
    """Changes when the report does."""


def live_page(
    title: str, links: Sequence[Linked], *, texts: Sequence[tuple[str, str]] = (), **shown: Unpack[Live]
) -> str:
    """Return a page of `kdx serve`, which asks for itself anew while somebody looks at it.

    Args:
        links: to other pages.
        texts: title and lines.
    """
    inert = [(name, escape(spelled_out(lines, keep="\n\t"))) for name, lines in texts]
    return _rendered("live.html", "page.js", "live.js", title=title, links=links, texts=inert, **shown)


def _report(tables: Sequence[Table], sweep: SweepRecord, curves: Curves) -> dict[str, Any]:
    cells: dict[str, tuple[Cell, str]] = {}
    layouts: dict[str, Layout] = {}
    for table in tables:
        for at, cell in table.layout.places.items():
            cells.setdefault(cell.id, (cell, table.layout.place(at)))
            layouts.setdefault(cell.id, table.layout)
    runs = {run.id: run for run in sweep.runs}
    shown = [_table(table, sweep, f"table-{index}") for index, table in enumerate(tables, 1)]
    # An evaluation has no curves of its own.
    trained = {key: cell for key, cell in cells.items() if key not in layouts[key].evaluations}
    baselines = {
        table.layout.places[difference.against].id
        for table in tables
        if table.baseline
        for difference in table.differences
    }
    groups = figures_of_curves(trained, runs, curves, baselines)
    sections = [{"id": table["id"], "title": table["scores"]["title"]} for table in shown]
    sections += [{"id": "curves", "title": "Learning curves"}] if groups else []
    sections += [{"id": "runs", "title": "Runs"}] if cells else []
    origins = sweep.provenance
    # Evaluations are of cells and runs that count once.
    counted = [runs[run_id] for run_id in {seed.run_id for cell, _ in cells.values() for seed in cell.seeds}]
    states = Counter(run.state.value if run.invalidated is None else INVALIDATED for run in counted)
    count = len({layouts[key].trained(cell) for key, (cell, _) in cells.items()})
    return {
        "lead": f"{count} cell{'' if count == 1 else 's'}"
        + (f", {states.total()} runs: {_in_words(states)}" if states else ""),
        "sections": sections,
        "tables": shown,
        "curves": groups,
        "curves_note": "Line: the selected seed, or the first while none is; large dot: the step whose weights were "
        "tested. Band: from the lowest to the highest value of all seeds. Axes of single cells are the same for all "
        "cells of a metric, and logarithmic over three decades.",
        "cells": [_runs_of_cell(layouts[cell.id], cell, title, runs, origins) for cell, title in cells.values()],
    }


def claims_to_html(answers: Sequence[tuple[Paper, Sequence[Answer]]], lead: str, options: str) -> str:
    """Return one page with every claim, its verdict and the comparisons behind it.

    Args:
        options: of commands that would test the others, such as ` --db FILE`.
    """
    return _rendered(title="Claims", lead=lead, papers=_claims(answers, options))


def _claims(answers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> dict[str, list[dict[str, Any]]]:
    """The heading of each paper → its claims."""
    return {
        heading(paper): [{**section, "sheet": _sheet(section["sheet"])} for section in sections(of_paper, options)]
        for paper, of_paper in answers
    }


def fragment(sheet: Sheet) -> str:
    """Return one table with its style, to stand on somebody else's page, such as a notebook."""
    # Nothing outside of the element that holds the style is styled by it.
    style = Markup(_text("page.css").replace(":root", ":scope"))
    macros: Any = _templates().get_template("sheet.html").module
    title = escape(sanitize(f"{sheet.title}: {sheet.caption}" if sheet.caption else sheet.title))
    page = "background: var(--paper); color: var(--ink); padding: .5rem"
    return f'<div style="{page}"><style>@scope {{ {style} }}</style><p>{title}</p>{macros.sheet(_sheet(sheet))}</div>'


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _templates() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else sanitize(str(value)),
    )
    environment.filters["badge"] = badge_of
    return environment


def _rendered(template: str = "page.html", *scripts: str, **shown: Any) -> str:
    style, script = _text("page.css"), "".join(map(_text, scripts or ("page.js",)))
    return (
        _templates()
        .get_template(template)
        .render(
            **shown,
            version=version("kdx"),
            style=Markup(style),
            style_hash=_hash(style),
            script=Markup(script),
            script_hash=_hash(script),
        )
    )


def _hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows a script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _in_words(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _table(table: Table, sweep: SweepRecord, id: str) -> dict[str, Any]:
    return {
        "id": id,
        "scores": {
            **_sheet(scores(table)),
            "best_is_highest": [_best_is_highest(metric) for metric in table.layout.metrics],
        },
        "figures": [*figures(table, sweep)],
        "listings": [_sheet(listing) for listing in listings(table, statistics=True, full=True)],
        "further": further(table),
    }


def _best_is_highest(metric: Metric | None) -> bool:
    """Whether the highest score of a column is the best."""
    return metric is not None and metric.direction is Direction.MAX


def _sheet(sheet: Sheet) -> dict[str, Any]:
    """A sheet as the template lays it out: a score takes two columns."""
    names, count = sheet.names, len(sheet.headers)
    headers = [sheet.levels(at) for at in range(names, count)]
    columns = [_places(sheet.scores(at)) if sheet.of_scores else sheet.texts(at) for at in range(names, count)]
    rows = []
    for index, (row, row_names) in enumerate(zip(sheet.rows, sheet.row_names(), strict=True)):
        again = [word == "" != str(name) for word, name in zip(row_names, row, strict=False)]
        rows.append(
            {
                "again": sheet.of_scores and again[0],
                "names": [*zip(row[:names], again, strict=True)],
                "places": [column[index] for column in columns],
            }
        )
    return {
        "title": sheet.title,
        "caption": sheet.caption,
        "factors": sheet.headers[:names],
        "levels": [spans(headers, level) for level in range(max(map(len, headers), default=1))],
        "across": 2 if sheet.of_scores else 1,
        "words": [sheet.is_of_words(at) for at in range(names, count)],
        "rows": rows,
        "notes": sheet.notes,
    }


def _places(column: Sequence[Score]) -> list[tuple[Score, Markup, Markup]]:
    """Each score with the texts to its right, which are of kdx alone; their blanks align them."""
    return [(score, escape(mean), escape(more)) for score, mean, more in lined_up(column, blank=DIGIT)]


def _runs_of_cell(
    layout: Layout, cell: Cell, title: str, runs: Mapping[int, RunRecord], provenance: Mapping[int, Provenance]
) -> dict[str, Any]:
    """The runs of a cell as the template takes them, with their settings and origins."""
    # Runs share their origins; each origin is shown once.
    origins = {id(origin): origin for seed in cell.seeds if (origin := provenance.get(seed.run_id))}.values()
    facts: dict[str, dict[Any, None]] = {"cell": {cell.id: None}}
    for origin in origins:
        environment = ", ".join(f"{name} {value}" for name, value in (origin.environment or {}).items())
        known = {"data": origin.data, "code": origin.code, "environment": environment}
        for name, text in {**known, **(origin.definitions or {}), **(origin.facts or {})}.items():
            if text:
                facts.setdefault(name, {})[str(text)] = None
    return {
        "id": cell_anchor(cell),
        "title": title,
        "states": _in_words(Counter(seed.outcome for seed in cell.seeds)),
        "headers": [
            *("seed", "run", "state", *map(str, _metrics_of(cell)), "tested step", "steps", "seconds"),
            *("generation", "attempts"),
        ],
        "runs": [
            {"id": run_anchor(layout, cell, seed.run_id), "words": _run(cell, seed, runs[seed.run_id])}
            for seed in cell.seeds
        ],
        "errors": [
            *(f"Run {run.id}: {run.error}" for seed in cell.seeds if (run := runs[seed.run_id]).error),
            *(f"Run {seed.run_id} is excluded: {seed.invalidated}" for seed in cell.seeds if seed.invalidated),
        ],
        "facts": list(facts.items()),
        "spec": escape(sanitize_lines(as_yaml(layout.records[cell.id].spec.plain).rstrip())),
    }


def _metrics_of(cell: Cell) -> list[Metric]:
    """The metric of the selection, and that of the table where it is another one."""
    shown = replace(cell.metric, name=cell.metric.recorded)
    return [cell.selected_by, *([shown] if shown.name != cell.selected_by.name else [])]


def _run(cell: Cell, seed: Seed, run: RunRecord) -> list[str]:
    scores = zip((seed.validation, seed.score), _metrics_of(cell), strict=False)
    return [
        f"{seed.seed}{' (selected)' if run.id == cell.run_id else ''}",
        str(run.id),
        seed.outcome,
        *(score_or_dash(score, metric.name) for score, metric in scores),
        "–" if run.valid_step is None else str(run.valid_step),
        str(run.progress_step),
        "–" if run.seconds is None else f"{run.seconds:.0f}",
        str(run.generation),
        str(run.attempt),
    ]
