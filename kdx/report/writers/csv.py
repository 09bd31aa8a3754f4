"""Tables and claims as CSV in long form, with one row for each cell or comparison, for statistics programs.

Columns keep their names and meaning from version to version. Numbers have full precision; a missing value is an empty
field. Names are sanitized, quoted and on one line each (`kdx.report.writers.rows`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kdx.grid.table_layout import SWEEP, Address
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.published_comparison import PublishedPair
from kdx.report.papers.verdicts import Answer
from kdx.report.selection.cells import State
from kdx.report.selection.searched import SearchedCell
from kdx.report.statistics.estimates import LEVEL, Estimate
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparisons import Difference
from kdx.report.table.table import Table
from kdx.report.wording import correction, setting
from kdx.report.writers.json import cell_to_json
from kdx.report.writers.rows import to_csv as lines
from kdx.sanitize import sanitize
from kdx.store.records import SweepRecord


def to_csv(tables: Sequence[Table], sweep: SweepRecord) -> str:
    """Every cell of every table, with the factors of all tables and the axes of the sweep as columns.

    A factor with the name of another column, such as `seed`, has `factor ` before its name. A parameter that a search
    tuned has a column such as `tuned training.learning_rate`, with what was found for the cell.
    """
    records = {cell.id: cell for cell in sweep.cells} | {
        k: v for table in tables for k, v in table.layout.records.items()
    }
    sweeps = {cell.id: {SWEEP: ", ".join(cell.sweeps)} if cell.sweeps else {} for cell in records.values()}
    labels = {cell.id: {"task": cell.spec.task, **cell.labels, **sweeps[cell.id]} for cell in records.values()}
    headers = [
        {**labels[cell.id], **table.layout.header(at)} for table in tables for at, cell in table.layout.places.items()
    ]
    factors = dict.fromkeys(name for header in headers for name in header)
    searched = [one for table in tables for one in table.searches.values()]
    tuned = dict.fromkeys(name for one in searched for name in one.search.space)
    rows = []
    for table in tables:
        differences = {one.at: one for one in table.differences}
        published = {one.at: one for one in table.published.pairs} if table.published else {}
        for at, cell in table.layout.places.items():
            words = {**labels[cell.id], **table.layout.header(at)}
            values = _values(table, at, differences.get(at)) | _published(published.get(at))
            values |= _tuned(table.searches.get(at), tuned)
            rows.append(
                {"table": table.layout.name, **_apart({name: words.get(name) for name in factors}, values), **values}
            )
    return _written(rows)


def claims_to_csv(answers: Sequence[tuple[Paper, Sequence[Answer]]]) -> str:
    """Every comparison that a claim rests on, with the claim's verdict."""
    rows = [
        {
            "paper": paper.name,
            "claim": answer.claim.id,
            "statement": answer.claim.statement,
            "setting": setting(finding.setting),
            "claim_verdict": finding.verdict.value,
            "claim_confounded_by": ", ".join(finding.confounders),
            "a": setting(one.contrast.a),
            "b": setting(one.contrast.b),
            "where": setting(one.contrast.where),
            "expected": one.contrast.expect.value,
            "margin": one.contrast.margin,
            "metric": one.metric.name if one.metric else one.contrast.metric,
            "n": one.n,
            **_estimate(one.estimate, one.metric, one.level),
            "level": one.level if one.estimate else None,
            "verdict": one.verdict.value,
            "confounded_by": ", ".join(one.confounders),
            "more_seeds": one.more,
        }
        for paper, those in answers
        for answer in those
        for finding in answer.settings
        for one in finding.outcomes
    ]
    return _written(rows)


_CELL = (
    *("metric", "direction", "shown", "state", "score", "best", "near_best", "not_compared_with_best", "seed", "run"),
    *("selected_by", "validation", "n", "mean", "sd", "mean_low", "mean_high", "documents", "expected_best"),
    *("expected_best_of", "planned", "completed", "diverged", "pruned", "invalidated", "undertrained", "failed"),
    *("out_of_memory", "unfinished"),
)
"""The columns of a cell, beside those of its difference, in their order."""


def _values(table: Table, at: Address, difference: Difference | None) -> dict[str, Any]:
    cell, draws = table.layout.places[at], max(0, table.layout.fewest - 1)
    low, high = cell.interval or (None, None)
    values = {
        **cell_to_json(cell, table.marks.get(at)),
        "shown": table.layout.shown.value,
        "mean_low": low,
        "mean_high": high,
        "documents": cell.documents.number if cell.documents else None,
        "expected_best": cell.expected(draws),
        "expected_best_of": draws,
    }
    return {
        **{name: int(value) if isinstance(value := values[name], bool) else value for name in _CELL},
        "against": setting(table.layout.header(difference.against)) if difference else None,
        **_difference(table, difference),
        "cell": cell.id,
    }


def _difference(table: Table, one: Difference | None) -> dict[str, float | str | None]:
    estimate = one.estimate if one else None
    over = table.randomisations.get(one.at) if one else None
    return {
        **_estimate(estimate, one.metric if one else None),
        "p": estimate.p if estimate else None,
        "p_corrected": one.p if one else None,
        "p_correction": correction(table) if one else None,
        "effect": estimate.effect if estimate else None,
        "margin": one.margin if one else None,
        "p_equivalent": one.p_equivalent if one else None,
        "sentences_better_by": over.gain if over else None,
        "sentences_p": over.p if over else None,
    }


def _published(pair: PublishedPair | None) -> dict[str, Any]:
    state = None if pair is None else State.DIVERGED.value if pair.published is None else "value"
    return {"published": pair.published if pair else None, "published_state": state}


def _tuned(one: SearchedCell | None, names: Iterable[str]) -> dict[str, Any]:
    """What a search found of each parameter that any cell tunes; anything but a number or a word as JSON."""
    found = one.winner.parameters if one else {}
    its = {f"tuned {name}": found.get(name) for name in names}
    return {
        name: value
        if value is None or (isinstance(value, int | float | str) and not isinstance(value, bool))
        else json.dumps(value)
        for name, value in its.items()
    }


def _estimate(estimate: Estimate | None, metric: Metric | None, level: float = LEVEL) -> dict[str, float | str | None]:
    low, high = estimate.interval(level) if estimate else (None, None)
    return {
        "better_by": estimate.value if estimate else None,
        "better_by_low": low,
        "better_by_high": high,
        "better_by_unit": metric.scale if estimate and metric else None,
    }


def _apart(factors: Mapping[str, str | None], values: Mapping[str, Any]) -> dict[str, str | None]:
    return {f"factor {name}" if name in values or name == "table" else name: word for name, word in factors.items()}


def _written(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows, all of the same columns."""
    if not rows:
        return ""
    values = ([sanitize(value) if isinstance(value, str) else value for value in row.values()] for row in rows)
    return "".join(f"{line}\n" for line in lines([*map(sanitize, rows[0])], values))
