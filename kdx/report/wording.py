"""How the parts of a table read, in every format: rounded numbers, headers and notes as words."""

from dataclasses import dataclass
from math import isfinite, isnan

from kdx.report.tables import Cell, State, Table

_DECIMALS = {"loss": 3, "bits_per_dimension": 3, "length_ratio": 3}
_LONGEST = 1e6
"""From here on a number is written with an exponent: a perplexity can be astronomical."""


@dataclass(frozen=True)
class Words:
    """One place; a part that is not told is empty."""

    score: str = ""
    """The selected test score; `–` or `not converge (k/n)` where there is none."""
    mean: str = ""
    sd: str = ""
    n: str = ""
    note: str = ""
    """What kept some seeds out, such as `1/3 failed`."""
    aligned: bool = False
    """Whether `score` lines up with the numbers of its column."""


def rounded(value: float, metric: str) -> str:
    """`value` with 3 decimals for a loss and what is as close to 1, else 2."""
    if not isfinite(value):
        return "nan" if isnan(value) else "∞" if value > 0 else "-∞"
    return f"{value:.2e}" if abs(value) >= _LONGEST else f"{value:z.{_DECIMALS.get(metric.rpartition('/')[2], 2)}f}"


def words(cell: Cell | None, *, show_n: bool) -> Words:
    """The cell as words; nothing at all for a place that the grid does not plan."""
    if cell is None:
        return Words()
    failed = f"{cell.failed}/{cell.planned} failed" if cell.failed else ""
    if cell.state is State.NOT_CONVERGE:
        return Words(f"not converge ({cell.diverged}/{cell.planned})", note=failed)
    diverged = f"{cell.diverged}/{cell.planned} not converge" if cell.diverged else ""
    if cell.state is State.HOLE or cell.score is None:
        scoreless = f"{cell.completed}/{cell.planned} without a score" if cell.completed else ""
        return Words("–", note=", ".join(filter(None, (scoreless, diverged, failed))), aligned=True)
    summary = cell.summary
    spread = summary is not None and summary.sd is not None
    return Words(
        score=rounded(cell.score, cell.metric.name),
        mean=rounded(summary.mean, cell.metric.name) if summary and spread else "",
        sd=rounded(summary.sd, cell.metric.name) if summary and summary.sd is not None else "",
        n=f"({summary.n})" if summary and show_n else "",
        note=", ".join(filter(None, (diverged, failed))),
        aligned=True,
    )


def column_headers(table: Table) -> list[tuple[str, ...]]:
    """The levels of each column's header, outermost first.

    A word that does not say what it is, a number or `none`, takes its factor's name with it. The metric is a level of
    its own, under the task, where columns differ in it or where nothing else heads the column.
    """
    factors = table.column_factors
    level = factors.index("task") + 1 if "task" in factors else len(factors)
    headers = []
    for column, metric in zip(table.columns, table.metrics, strict=True):
        header = [_told(factor, word) for factor, word in zip(factors, column, strict=True)]
        if len(set(table.metrics)) > 1 or not factors:
            header.insert(level, str(metric or "score"))
        headers.append(tuple(header))
    return headers


def _told(factor: str, word: str) -> str:
    return f"{factor.rpartition('.')[2]} {word}" if word in ("none", "–") or word[:1].isdecimal() else word
