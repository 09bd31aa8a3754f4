"""The page: what the template shows, in words."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from math import isfinite
from typing import Any

import yaml
from jinja2 import Environment
from markupsafe import Markup, escape

from kdx import __version__
from kdx.grid.table_layout import Address
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.render.html.charts import MANY, Point, forest, learning_curve, overlay, scale, scatter
from kdx.report.render.html.curves import Band, band
from kdx.report.render.listings import claim, listings
from kdx.report.render.wording import (
    LEVELS,
    beside_scores,
    caption,
    column_headers,
    place,
    rounded,
    setting,
    sign,
    spans,
    told,
    words,
)
from kdx.report.selection.cells import Cell, Seed
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparisons import Mark
from kdx.report.table.table import Table
from kdx.sanitize import sanitize, sanitize_lines
from kdx.store.records import Curve, Provenance, RunRecord, SweepRecord

Curves = Mapping[int, Mapping[str, Curve]]
"""Run id → metric → curve."""

LOSS = "train/loss"

_DIGIT = "\u2007"  # a blank as wide as a digit
_MOST_STEPS, _FEWEST_STEPS, _ALL_STEPS = 120, 30, 12_000
"""Of a curve at most and at least, and of all curves of the page: the more cells, the coarser."""
_MOST_GROUPS = 24
"""So many rows are told apart in a scatter."""
_PARTS = 5000
"""Strings of the template that are one part of the page."""


def curves_wanted(sweep: SweepRecord) -> set[str]:
    """The metrics whose curves a page of its tables shows."""
    return {LOSS, *(cell.spec.selection_metric for cell in sweep.cells)}


def to_html(tables: Sequence[Table], sweep: SweepRecord, curves: Curves) -> Iterator[str]:
    """The parts of one page: every table with its figures, the learning curves of each cell, and every run.

    Args:
        curves: of `curves_wanted`.
    """
    cells: dict[str, tuple[Cell, str]] = {}
    for table in tables:
        for at, cell in table.layout.places.items():
            cells.setdefault(cell.id, (cell, place(table.layout, at)))
    runs = {run.id: run for run in sweep.runs}
    environments = _Environments()
    specs = {cell.id: cell.spec.plain for cell in sweep.cells}
    shown = [_table(table, f"table-{index}") for index, table in enumerate(tables, 1)]
    groups = _curves(cells, runs, curves)
    sections = [{"id": one["id"], "title": one["name"]} for one in shown]
    sections += [{"id": "curves", "title": "Learning curves"}] if groups else []
    sections += [{"id": "runs", "title": "Runs"}] if cells else []
    return _rendered(
        title=sweep.name,
        lead=_lead([cell for cell, _ in cells.values()]),
        sections=sections,
        tables=shown,
        curves=groups,
        curves_note="Line: the selected seed; dot: the step whose weights were tested. Band: from the lowest to the "
        "highest value of all seeds. Axes are the same for all cells of a metric, and logarithmic over three decades.",
        # One at a time: a hundred thousand runs are as many rows.
        cells=(
            _cell(cell, title, runs, sweep.provenance, environments, specs[cell.id]) for cell, title in cells.values()
        )
        if cells
        else None,
        environments=environments.told,
    )


def claims_to_html(answers: Sequence[tuple[Paper, Sequence[Answer]]], lead: str) -> Iterator[str]:
    """The parts of one page with every claim, its verdict and the comparisons behind it."""
    title = " · ".join(paper.title or paper.name for paper, _ in answers)
    return _rendered(
        title=title, lead=lead, claims=[section for _, those in answers for one in those for section in _claim(one)]
    )


def _claim(answer: Answer) -> Iterator[dict[str, Any]]:
    """What each setting says: the verdict before it, and that of each comparison in the first column."""
    for found, listing in zip(answer.settings, claim(answer), strict=True):
        at = listing.headers.index("verdict")
        headers, *rows = ((line[at], *line[:at], *line[at + 1 :]) for line in (listing.headers, *listing.rows))
        yield {
            "verdict": str(found.verdict),
            "told": str(found),
            "title": listing.title.replace(f": {found}", "", 1),
            "listing": replace(listing, headers=headers, rows=tuple(rows), names=listing.names + 1),
        }


def _rendered(**shown: Any) -> Iterator[str]:
    folder = files(__package__)
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    environment = Environment(
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else sanitize(str(value)),
    )
    template = environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    page = template.stream(
        **shown,
        version=__version__,
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
    )
    page.enable_buffering(_PARTS)
    return page


def _hash(text: str) -> str:
    """As a Content-Security-Policy names what it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _lead(cells: Sequence[Cell]) -> str:
    states = Counter(seed.state for cell in cells for seed in cell.seeds)
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}" + (
        f", {sum(states.values())} runs: {told}" if told else ""
    )


def _table(table: Table, id: str) -> dict[str, Any]:
    headers = column_headers(table.layout)
    levels = max(map(len, headers), default=1)
    columns = [_column(table, index) for index in range(len(table.layout.columns))]
    rows = []
    for index, names in enumerate(table.layout.rows):
        before = table.layout.rows[index - 1] if index else ()
        again = [names[: level + 1] == before[: level + 1] for level in range(len(names))]
        rows.append(
            {
                "again": again[0],
                "names": [{"word": word, "again": same} for word, same in zip(names, again, strict=True)],
                "places": [column[index] for column in columns],
            }
        )
    return {
        "id": id,
        "name": table.layout.name,
        "caption": table.layout.caption,
        "factors": table.layout.row_factors,
        "levels": [
            {
                "innermost": level == levels - 1,
                "headers": [{"word": word, "count": count} for word, count in spans(headers, level)],
            }
            for level in range(levels)
        ],
        "rows": rows,
        "notes": caption(table, best="Bold", full=True),
        "figures": [*_scatters(table), *_forests(table)],
        "listings": list(listings(table, statistics=True)),
    }


def _column(table: Table, index: int) -> list[dict[str, Any]]:
    cells = table.layout.column(index)
    marks = [table.marks.get((row, index)) for row in range(len(cells))]
    parts = [words(cell, show_n=table.layout.n is None) for cell in cells]
    return [
        {
            "score": part.score,
            # Words of kdx's own, whose blanks make them line up.
            "beside": escape(beside),
            "aligned": part.aligned,
            "value": "" if cell is None or cell.value is None else repr(cell.value),
            "best": mark is Mark.BEST,
            "mark": sign(mark),
            "href": _link(cell) if cell else "",
        }
        for cell, mark, part, beside in zip(cells, marks, parts, beside_scores(parts, blank=_DIGIT), strict=True)
    ]


def _link(cell: Cell) -> str:
    """The run whose score stands there, or the cell where no single one's does."""
    return f"#run-{cell.run_id}" if cell.value is not None and cell.value == cell.score else f"#cell-{cell.id}"


def _scatters(table: Table) -> Iterator[dict[str, Any]]:
    svgs = []
    groups = _groups(table)
    for test, validation in dict.fromkeys((cell.metric, cell.selected_by) for cell in table.layout.cells):
        its = [
            cell for cell in table.layout.places.items() if (cell[1].metric, cell[1].selected_by) == (test, validation)
        ]
        seeds = [
            (at, cell, one)
            for at, cell in its
            for one in cell.seeds
            if one.validation is not None and one.score is not None
            if isfinite(one.validation) and isfinite(one.score)
        ]
        points = [
            Point(
                # Of many, only the selected ones are links with words of their own.
                _label(table, at, one, test, validation, selected=one.run_id == cell.run_id)
                if len(seeds) <= MANY or one.run_id == cell.run_id
                else "",
                f"#run-{one.run_id}",
                one.run_id == cell.run_id,
                one.validation or 0.0,
                one.score or 0.0,
                group=groups[at[0]],
            )
            for at, cell, one in seeds
        ]
        # A table of validation scores has nothing to set against them.
        if points and test != validation:
            svgs.append(Markup(scatter(points, str(validation), str(replace(test, name=test.recorded)))))
    if svgs:
        told = "The score on validation and on test, a point a seed; large and filled: the one selected in its cell."
        yield {"caption": told, "svgs": svgs, "narrow": True}


def _label(table: Table, at: Address, one: Seed, test: Metric, validation: Metric, *, selected: bool) -> str:
    assert one.validation is not None and one.score is not None
    return (
        f"{place(table.layout, at)}, seed {one.seed}: {rounded(one.validation, validation.name)} on validation, "
        f"{rounded(one.score, test.name)} on test{', selected' if selected else ''}"
    )


def _groups(table: Table) -> list[str]:
    """What each row's points are told apart by: its names, or where these are too many the outermost ones."""
    for levels in range(len(table.layout.row_factors), 0, -1):
        groups = [
            LEVELS.join(
                told(factor, word) for factor, word in zip(table.layout.row_factors, row[:levels], strict=False)
            )
            for row in table.layout.rows
        ]
        if len(set(groups)) <= _MOST_GROUPS:
            return groups
    return [""] * len(table.layout.rows)


def _forests(table: Table) -> Iterator[dict[str, Any]]:
    svgs = []
    for metric in dict.fromkeys(one.metric for one in table.differences):
        its = [one for one in table.differences if one.metric == metric and one.estimate]
        headers = [table.layout.header(one.at) for one in its]
        # What they all have in common need not be told on every line.
        varying = [factor for factor in headers[0] if len({header[factor] for header in headers}) > 1] if its else []
        points = [
            Point(
                LEVELS.join(told(factor, header[factor]) for factor in varying or header),
                f"#cell-{table.layout.places[one.at].id}",
                one.told_apart,
                one.estimate.value,
                0.0,
                *one.estimate.interval(),
            )
            for one, header in zip(its, headers, strict=True)
            if one.estimate and isfinite(one.estimate.value)
        ]
        if points:
            svgs.append(Markup(forest(points, f"better by ({metric.unit})")))
    if svgs:
        against = setting(table.baseline) or "the best of the column"
        yield {
            "caption": f"Difference of each cell's mean from {against}, with the 95% interval of this one comparison; "
            "right of 0 is better. Filled: told apart from 0 after Holm's correction over the table.",
            "svgs": svgs,
        }


def _curves(
    cells: Mapping[str, tuple[Cell, str]], runs: Mapping[int, RunRecord], curves: Curves
) -> list[dict[str, Any]]:
    """Cells of the same validation metric, each with that metric and the training loss over training."""
    groups: dict[Metric, list[tuple[Cell, str]]] = {}
    for cell, title in cells.values():
        groups.setdefault(cell.selected_by, []).append((cell, title))
    most = max(_FEWEST_STEPS, min(_MOST_STEPS, _ALL_STEPS // max(1, 2 * len(cells))))
    sections = []
    for metric, its in groups.items():
        figures: dict[str, list[Any]] = {cell.id: [] for cell, _ in its}
        bands = {
            name: {cell.id: found for cell, _ in its if (found := _band(cell, name, curves, most))}
            for name in (metric.name, LOSS)
        }
        drawn = [one for those in bands.values() for one in those.values()]
        steps = scale([step for one in drawn for step in (*one.steps, *(at for at, _ in one.line))])
        overlays = []
        for number, (name, those) in enumerate(bands.items()):
            title = str(metric) if name == metric.name else name
            span = scale([value for one in those.values() for value in (*one.low, *one.high)])
            for cell, _ in its:
                if cell.id in those and span and steps:
                    best = _best(cell, runs) if name == metric.name else None
                    figures[cell.id].append(_numbered(learning_curve(those[cell.id], title, span, steps, best), number))
            if len(those) > 1 and span and steps:
                overlays.append(_numbered(overlay(title, span, steps), number))
        shown = [
            {"href": f"#cell-{cell.id}", "caption": title, "told": _fate(cell), "svgs": figures[cell.id]}
            for cell, title in its
            if figures[cell.id]
        ]
        sections += [{"title": metric, "figures": shown, "overlays": overlays}] if shown else []
    return sections


def _numbered(svg: str, number: int) -> Markup:
    """A chart that the page's script finds again by its number among the metrics of its cell."""
    return Markup(svg.replace("<svg", f'<svg data-metric="{number}"', 1))


def _band(cell: Cell, name: str, curves: Curves, most: int) -> Band | None:
    its = [curves[one.run_id][name] for one in cell.seeds if name in curves.get(one.run_id, ())]
    selected = curves.get(cell.run_id, {}).get(name) if cell.run_id is not None else None
    return band(its, selected, most)


def _best(cell: Cell, runs: Mapping[int, RunRecord]) -> tuple[float, float] | None:
    run = runs.get(cell.run_id) if cell.run_id is not None else None
    if run is None or run.valid_step is None or run.valid_score is None or not isfinite(run.valid_score):
        return None
    return float(run.valid_step), run.valid_score


def _fate(cell: Cell) -> str:
    """What became of the seeds that did not complete."""
    states = Counter(seed.state for seed in cell.seeds if seed.score is None)
    return ", ".join(f"{count}/{cell.planned} {state}" for state, count in states.items())


def _cell(
    cell: Cell,
    title: str,
    runs: Mapping[int, RunRecord],
    provenance: Mapping[int, Provenance],
    environments: "_Environments",
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    states = Counter(seed.state for seed in cell.seeds)
    # Runs share their origins; each is told once.
    origins = {id(one): one for seed in cell.seeds if (one := provenance.get(seed.run_id))}.values()
    facts: dict[str, dict[Any, None]] = {"cell": {cell.id: None}}
    for one in origins:
        facts.setdefault("data", {})[one.data] = None
        facts.setdefault("code", {})[one.code] = None
        facts.setdefault("environment", {})[one.environment and environments.link(one.environment)] = None
        for name, text in {**(one.definitions or {}), **(one.facts or {})}.items():
            facts.setdefault(name, {})[str(text)] = None
    return {
        "id": f"cell-{cell.id}",
        "title": title,
        "told": ", ".join(f"{count} {state}" for state, count in states.items()),
        "headers": [
            *("seed", "run", "state", cell.selected_by, cell.metric.recorded, "tested step", "steps", "seconds"),
            *("generation", "attempts"),
        ],
        "runs": [{"id": f"run-{one.run_id}", "words": _run(cell, one, runs[one.run_id])} for one in cell.seeds],
        "errors": [f"Run {run.id}: {run.error}" for one in cell.seeds if (run := runs[one.run_id]).error],
        "facts": [(name, known) for name, those in facts.items() if (known := [*filter(None, those)])],
        "spec": escape(sanitize_lines(_yaml(spec))),
    }


def _run(cell: Cell, seed: Seed, run: RunRecord) -> list[str]:
    def number(value: float | None, metric: str) -> str:
        return "–" if value is None else rounded(value, metric)

    return [
        f"{seed.seed}{' (selected)' if run.id == cell.run_id else ''}",
        str(run.id),
        str(run.state),
        number(seed.validation, cell.selected_by.name),
        number(seed.score, cell.metric.name),
        "–" if run.valid_step is None else str(run.valid_step),
        str(run.progress_step),
        "–" if run.seconds is None else f"{run.seconds:.0f}",
        str(run.generation),
        str(run.attempt),
    ]


class _Environments:
    """Where runs were computed, each told once and linked from the cells."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def link(self, environment: Mapping[str, Any]) -> Markup:
        """A link to it, in words."""
        number = self._numbers.setdefault(_yaml(environment), len(self._numbers) + 1)
        return Markup('<a href="#environment-{0}">environment {0}</a>').format(number)

    def told(self) -> list[dict[str, Any]]:
        """Those that were linked to."""
        return [
            {"id": f"environment-{number}", "title": f"Environment {number}", "text": escape(sanitize_lines(text))}
            for text, number in self._numbers.items()
        ]


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100).rstrip()
