"""The sheet of a table of scores."""

from collections.abc import Iterable
from dataclasses import replace

from kdx.grid.plan import Shown
from kdx.grid.table_layout import Address
from kdx.metrics.decimals import rounded
from kdx.report.selection.cells import Cell
from kdx.report.sheet import Column, Score, Sheet
from kdx.report.sheets.notes import caption
from kdx.report.table.layout import Layout
from kdx.report.tables import Table
from kdx.report.wording import word_of


def scores(table: Table, *, full: bool = False, best: str = "Bold") -> Sheet:
    """The sheet of a table, with a place for each cell.

    Args:
        full: see `kdx.report.sheets.notes.caption`; so is `best`.
    """
    layout = table.layout
    headers = column_headers(layout)
    rows: list[tuple[str | Score, ...]] = []
    for row, names in enumerate(layout.rows):
        rows.append((*names, *(_place(table, (row, column)) for column in range(len(layout.columns)))))
    return Sheet(
        title=layout.name,
        key=(layout.name,),
        headers=(*layout.row_factors, *(header[-1] for header in headers)),
        names=len(layout.row_factors),
        rows=tuple(rows),
        notes=tuple(caption(table, best=best, full=full)),
        above=tuple(header[:-1] for header in headers),
        caption=layout.caption,
        of_scores=True,
    )


def cell_anchor(cell: Cell) -> str:
    """The place of a cell's runs on a page."""
    return f"cell-{cell.id}"


def run_anchor(layout: Layout, cell: Cell, run: int) -> str:
    """The place of a run of a cell on a page: a run has one of its own, and one for each of its evaluations."""
    evaluated = layout.evaluations.get(cell.id)
    return f"run-{run}-{evaluated.evaluation.id[:8]}" if evaluated else f"run-{run}"


def _place(table: Table, at: Address) -> Score:
    cell = table.layout.places.get(at)
    if cell is None:
        return Score()
    # A mean over seeds is no score of one run.
    of_run = cell.run_id is not None and cell.value is not None and cell.value == cell.score
    anchor = run_anchor(table.layout, cell, cell.run_id) if of_run and cell.run_id is not None else cell_anchor(cell)
    shown = words(cell, show_n=table.layout.n is None)
    return replace(shown, mark=table.marks.get(at), value=cell.value, anchor=anchor)


def words(cell: Cell, *, show_n: bool) -> Score:
    """What a cell shows, without its mark."""
    notes = {word: f"{word} {count}/{cell.planned}" for word, count in cell.counts.items()}
    if cell.state in notes:
        return Score(notes.pop(cell.state), note=", ".join(notes.values()))
    value, metric = cell.value, cell.metric.name
    if value is None:
        scoreless = f"without a score {cell.completed}/{cell.planned}" if cell.completed else ""
        return Score("–", note=", ".join(filter(None, (scoreless, *notes.values()))), aligned=True)
    summary, selected = cell.summary, cell.shown is Shown.BEST_SEED
    spread = (summary.sd if selected else cell.half_width) if summary else None
    return Score(
        score=rounded(value, metric),
        mean=rounded(summary.mean, metric) if summary and spread is not None and selected else "",
        sd=rounded(spread, metric) if spread is not None else "",
        n=f"({summary.n})" if summary and show_n else "",
        note=", ".join(notes.values()),
        aligned=True,
    )


def name_columns(layout: Layout, places: Iterable[Address]) -> list[Column]:
    """The columns of a listing that name the cell of each row by its factors."""
    headers = [layout.header(at) for at in places]
    factors = (*layout.row_factors, *layout.column_factors)
    return [(factor, [header[factor] for header in headers]) for factor in factors]


def score_or_dash(value: float | None, metric: str) -> str:
    """A score, rounded; a dash where there is none."""
    return "–" if value is None else rounded(value, metric)


def column_headers(layout: Layout) -> list[tuple[str, ...]]:
    """The levels of each column's header, outermost first.

    A number or `none` is unclear alone, so it is written with the name of its factor. The metric is a level of its own:
    under the task where columns differ in it, else over all columns.
    """
    factors = layout.column_factors
    several = len(set(layout.metrics)) > 1
    level = 0 if not several else factors.index("task") + 1 if "task" in factors else len(factors)
    headers = []
    for column, metric in zip(layout.columns, layout.metrics, strict=True):
        header = [word_of(factor, word) for factor, word in zip(factors, column, strict=True)]
        header.insert(level, str(metric or "score"))
        headers.append(tuple(header))
    return headers
