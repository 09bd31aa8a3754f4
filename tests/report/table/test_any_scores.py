"""Whatever the scores are, every format writes them, and no mark stands behind what is not finite."""

import csv
import io
import json
import re
from math import inf, isfinite, isnan, nan
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from sweeps import cell, run, sweep

from kdx.report.papers.paper_file import Claim, Paper
from kdx.report.papers.verdicts import answers
from kdx.report.sheets.claims import claim
from kdx.report.tables import tables
from kdx.report.writers.csv import to_csv
from kdx.report.writers.html.page import claims_to_html, to_html
from kdx.report.writers.json import claim_to_json, to_json
from kdx.report.writers.latex import sheet_to_latex, to_latex
from kdx.report.writers.markdown import sheet_to_markdown, to_markdown
from kdx.report.writers.text import TextSheet, text_table
from kdx.store.records import SweepRecord

KERNELS = ("rbf", "exponential", "linear")
METRICS = {"translation": "bleu", "prediction": "perplexity"}
TABLES: list[dict[str, Any]] = [
    {"name": "best", "rows": ["kernel"], "columns": ["task"]},
    {"name": "mean", "rows": ["kernel"], "columns": ["task"], "cell": "mean"},
    *(
        {
            "name": f"{task} {margin}",
            "rows": ["kernel"],
            "where": {"task": task},
            "baseline": {"kernel": "rbf"},
            "margin": {metric: margin},
        }
        for task, metric in METRICS.items()
        for margin in (0.5, "1%")
    ),
]
MARKED = re.compile(
    r"(?:nan|∞|\\infty\$?|[–-]|textendash\{\})(?:†|‡|\*(?!\*)|\\rlap)|\*\*-?(?:nan|∞)|textbf\{[$-]*(?:nan|\\infty)"
)

SPECIAL = [nan, inf, -inf, 0.0, -0.0, 1e308, -1e308, 1.7e308, 5e-324, 1e-310, 1e155, 1.0, -1.0]
number = st.sampled_from(SPECIAL) | st.floats() | st.floats(1, 100)
seeds = st.lists(st.tuples(number, number), min_size=1, max_size=4)
"""Validation and test scores of a cell's seeds."""


def recorded(scores: list[list[tuple[float, float]]]) -> SweepRecord:
    """Three cells of each of two tasks."""
    places = [(task, kernel) for task in METRICS for kernel in KERNELS]
    cells = [cell(f"{task} {kernel}", task, kernel=kernel) for task, kernel in places]
    runs = [
        run(values.id, seed, *pair, id=10 * index + seed)
        for index, (values, pairs) in enumerate(zip(cells, scores, strict=True))
        for seed, pair in enumerate(pairs)
    ]
    return sweep(cells, runs, tables=TABLES)


def drawn(what: Any) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100, color_system=None).print(what)
    return stream.getvalue()


any_scores = given(st.lists(seeds, min_size=6, max_size=6))
huge = example([[(1.0, 1.7e308), (2.0, -1.7e308)]] * 6)
tiny = example([[(1.0, 5e-324), (2.0, 1e-310)], [(1.0, 1e308), (1.0, 1e-308)]] * 3)
signs = example([[(1.0, -1.0), (2.0, 1.0)], [(1.0, 2.0), (2.0, 3.0)], [(nan, 4.0), (nan, 5.0)]] * 2)
mixed = example([[(1.0, 2.0), (2.0, inf)], [(1.0, 2.0), (2.0, 3.0)], [(1.0, nan), (2.0, 2.5)]] * 2)
lone = example([[(1.0, inf)], [(1.0, 2.0), (2.0, 3.0)], [(1.0, nan), (2.0, nan)]] * 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@settings(deadline=None, max_examples=40)
@any_scores
@huge
@tiny
@signs
@mixed
@lone
def test_any_scores_are_written_in_every_format_of_a_text_and_only_finite_ones_are_marked(
    scores: list[list[tuple[float, float]]],
) -> None:
    record = recorded(scores)
    shown = tables(record)
    for table in shown:
        for at in table.marks:
            value = table.layout.places[at].value
            assert value is not None and isfinite(value)
        for text in (
            drawn(text_table(table, statistics=True, notes="full")),
            to_markdown(table, statistics=True, notes="full"),
            to_latex(table, statistics=True, notes="full"),
        ):
            assert not MARKED.search(text), MARKED.search(text)
        json.dumps(to_json(table))
    rows = list(csv.DictReader(io.StringIO(to_csv(shown), newline="")))
    assert len(rows) == sum(len(table.layout.cells) for table in shown)
    by_column = ((table, at) for table in shown for at in sorted(table.layout.places, key=lambda at: (at[1], at[0])))
    for row, (table, at) in zip(rows, by_column, strict=True):
        result = table.layout.places[at]
        message = float(row["score"]) if row["score"] else None
        assert message == result.score or (message is not None and isnan(message) and isnan(result.score or 0.0))


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@settings(deadline=None, max_examples=8)
@any_scores
@huge
@tiny
@signs
@mixed
@lone
def test_any_scores_are_shown_on_the_page_and_only_finite_ones_are_marked(
    scores: list[list[tuple[float, float]]],
) -> None:
    record = recorded(scores)
    assert not re.search(r"(?:nan|∞|–)(?:<[^>]*>)*[†‡]", "".join(to_html(tables(record)[:2], record, {})))


CLAIMS = [
    Claim.model_validate(
        {
            "id": f"{expect} {margin}",
            "statement": "It works.",
            "holds": {
                quantifier: [
                    {"a": {"kernel": kernel}, "b": {"kernel": "rbf"}, "expect": expect, "margin": margin}
                    for kernel in KERNELS[1:]
                ]
            },
        }
    )
    for quantifier in ("any", "all")
    for expect, margin in (("better", None), ("no-worse", 0.5), ("equivalent", "1%"))
]


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@settings(deadline=None, max_examples=20)
@any_scores
@huge
@tiny
@signs
@mixed
@lone
def test_any_scores_are_answers_to_claims_in_every_format(scores: list[list[tuple[float, float]]]) -> None:
    answer = answers(CLAIMS, [recorded(scores)])
    paper = Paper(name="p", title="Paper", claims=tuple(CLAIMS))
    for each in answer:
        json.dumps(claim_to_json(each))
        for listing in claim(each):
            drawn(TextSheet(listing))
            sheet_to_markdown(listing)
            sheet_to_latex(listing)
    assert "".join(claims_to_html([(paper, answer)], "", ""))
