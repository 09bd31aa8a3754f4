"""CSV: one row a cell, every number as it is, and no formula."""

import csv
import io
import math
import unicodedata
from dataclasses import replace
from statistics import mean

import pytest
import trials
from hypothesis import example, given
from hypothesis import strategies as st
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.papers.paper_file import Paper, PublishedTable
from kdx.report.papers.published_comparison import compare_with_published
from kdx.report.table.bleu_randomisation import Randomisation
from kdx.report.tables import tables
from kdx.report.writers.csv import to_csv
from kdx.store.records import RunState, SweepRecord


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def written(record: SweepRecord) -> list[dict[str, str]]:
    return read(to_csv(tables(record)))


def test_one_row_a_cell_with_its_factors_and_its_numbers_in_full() -> None:
    cells = [cell("a", kernel="rbf", norm="pre"), cell("b", kernel="exponential", norm="pre")]
    runs = [*seeded("a", 1 / 3, 2 / 3, 0.4), *seeded("b", 0.5, 0.25)]
    first, second = written(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}]))
    assert [*first][:5] == ["table", "task", "kernel", "norm", "metric"]
    assert (first["kernel"], first["norm"], first["task"]) == ("rbf", "pre", "translation")
    assert (first["score"], first["best"], first["seed"], first["metric"]) == (repr(2 / 3), "1", "1", "test/bleu")
    assert float(first["mean"]) == pytest.approx(mean((1 / 3, 2 / 3, 0.4)), rel=1e-15)
    assert float(first["mean_low"]) < float(first["mean"]) < float(first["mean_high"])
    assert (second["against"], second["n"], second["near_best"]) == ("rbf", "2", "1")
    assert float(second["better_by_low"]) < float(second["better_by"]) < float(second["better_by_high"])
    assert float(second["p_corrected"]) > 0.05
    assert second["p_correction"] == "one-sided, of being no worse, times the number of comparisons in its column"
    assert float(second["p"]) == pytest.approx(2 * float(second["p_corrected"]))
    assert (first["better_by_unit"], second["better_by_unit"]) == ("", "bleu")
    perplexities = [cell("a", "prediction", kernel="rbf"), cell("b", "prediction", kernel="exponential")]
    assert written(sweep(perplexities, runs, axes=["kernel"]))[0]["better_by_unit"] == "nats"


def test_the_cells_of_a_column_stand_together_as_they_are_compared() -> None:
    cells = [cell(f"{task}-{k}", task, kernel=k) for k in ("rbf", "linear") for task in ("translation", "prediction")]
    rows = written(sweep(cells, [], tables=[{"name": "t", "rows": ["kernel"], "columns": ["task"]}]))
    assert [(row["task"], row["kernel"]) for row in rows] == [
        *(("translation", kernel) for kernel in ("rbf", "linear")),
        *(("prediction", kernel) for kernel in ("rbf", "linear")),
    ]


def test_a_place_without_a_score_is_empty_and_says_why() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [run("a", 0, state=RunState.DIVERGED), run("a", 1, state=RunState.FAILED)]
    first, second = written(sweep(cells, runs, axes=["kernel"]))
    assert (first["state"], first["diverged"], first["failed"], first["planned"]) == ("diverged", "1", "1", "2")
    assert second["state"] == "missing"
    assert first["score"] == first["mean"] == first["run"] == second["score"] == second["better_by"] == ""


PUBLISHED = {
    "table": "Table 1",
    "cells": [
        {"where": {"kernel": "rbf"}, "metric": "bleu", "value": 33.5},
        {"where": {"kernel": "linear"}, "metric": "bleu", "value": "not converge"},
    ],
}


def test_what_was_asked_for_beside_the_scores_is_there() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", kernel="linear")]
    runs = [*seeded("a", 30.0, 31.0, 30.5), *seeded("b", 29.5, 30.0, 30.2), *seeded("c", 1.0, 2.0, 2.5)]
    spec = {"name": "t", "rows": ["kernel"], "baseline": {"kernel": "exponential"}, "margin": {"bleu": 2.0}}
    record = sweep(cells, runs, tables=[spec])
    (table,) = tables(record)
    first, _ = table.differences
    over = Randomisation(1.25, 0.01, 1000, 40, "s")
    paper = Paper(name="p", title="P", tables=(PublishedTable.model_validate(PUBLISHED),))
    published = compare_with_published(table.layout.places, table.layout.records, paper)
    table = replace(table, differences=(first,), randomisations={first.at: over}, published=published)
    rbf, exponential, linear = read(to_csv([table]))
    assert first.estimate and float(rbf["effect"]) == first.estimate.effect
    assert (float(rbf["margin"]), float(rbf["p_equivalent"])) == (2.0, first.p_equivalent)
    assert (rbf["sentences_better_by"], rbf["sentences_p"], exponential["sentences_p"]) == ("1.25", "0.01", "")
    # The best of two of 30, 30.5 and 31.
    assert (float(rbf["expected_best"]), rbf["expected_best_of"]) == (pytest.approx((30.5 + 31 + 31) / 3), "2")
    assert [(row["published"], row["published_state"]) for row in (rbf, exponential, linear)] == [
        ("33.5", "value"),
        ("", ""),
        ("", "diverged"),
    ]


def test_tables_of_other_factors_stand_under_one_header() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    specs = [{"name": "one", "rows": ["kernel"]}, {"name": "two", "rows": ["norm"], "columns": ["kernel"]}]
    rows = written(sweep(cells, scored("a", (1.0, 2.0)), tables=specs))
    assert [(row["table"], row["norm"], row["kernel"]) for row in rows] == [
        ("one", "", "rbf"),
        ("one", "", "exponential"),
        ("two", "post", "rbf"),
        ("two", "post", "exponential"),
    ]


def test_a_factor_named_like_a_column_stands_apart_from_it() -> None:
    record = sweep([cell("a", labels={"seed": "mine", "table": "wood"})], scored("a", (1.0, 2.0)), axes=["seed"])
    (row,) = written(record)
    assert (row["factor seed"], row["seed"], row["factor table"], row["table"]) == ("mine", "0", "wood", "grid")


def test_without_cells_nothing_is_left_to_write() -> None:
    record = sweep([], [])
    assert to_csv(tables(record)) == ""


FORMULA = ("=", "+", "-", "@", "\t", "\r")
any_text = st.text(st.characters(codec="utf-8"), max_size=30)  # neither a grid nor a database holds lone surrogates


@given(any_text, any_text, st.floats())
@example('=HYPERLINK("http://x","y")', "@SUM(A1)", -0.5)
@example("\t=1+1", "\r\n-2+3", 1e-300)
@example(";=cmd|' /C calc'!A0", 'a","=1+1', math.inf)
@example("＝1+1", "\u202e=1", math.nan)
@example("-inf", "+1e5x", -0.0)
def test_no_name_is_a_formula_or_breaks_out_of_its_field(axis: str, word: str, score: float) -> None:
    axis = axis or "x"
    record = sweep([cell("a", labels={axis: word})], scored("a", (1.0, score)), axes=[axis], name=word or "x")
    text = to_csv(tables(record))
    assert text.count("\n") == 2
    (row,) = read(text)
    assert row["cell"] == "a"
    read_back = float(row["score"])
    assert read_back == score or (math.isnan(read_back) and math.isnan(score))
    for field in (
        *row,
        row["table"],
        *(value for name, value in row.items() if name not in ("score", "mean")),
    ):
        first = unicodedata.normalize("NFKC", field[:1])
        assert first not in FORMULA or float(field) is not None, field
        assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in field)


def test_what_a_search_found_has_a_column_a_parameter() -> None:
    shown = trials.table(trials.search("rbf"), plain=("linear",))
    searched, plain = read(to_csv([shown]))
    assert list(searched)[-2:] == [f"tuned {trials.RATE}", f"tuned {trials.DROPOUT}"]
    assert (searched[f"tuned {trials.RATE}"], searched[f"tuned {trials.DROPOUT}"]) == ("0.0095", "0.0")
    assert (plain[f"tuned {trials.RATE}"], plain[f"tuned {trials.DROPOUT}"]) == ("", "")
