"""Whether a file still has what kdx writes now, and where not."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
import trials
from sweeps import cell, run, scored, sweep

from kdx.cli.console import as_json
from kdx.errors import KdxError
from kdx.report.check.comparison import Kind, compare
from kdx.report.check.documents import Document, documents, find_tables
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.papers.published_comparison import compare_with_published
from kdx.report.tables import tables
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.store.records import RunState

SPECS = [
    {"name": "main", "caption": "Kernels", "rows": ["kernel"], "baseline": {"kernel": "rbf"}},
    {"name": "loss", "rows": ["kernel"], "metric": "loss"},
]
RBF, LINEAR = cell("a", kernel="rbf"), cell("b", kernel="linear")
BEFORE = [*scored("a", (1.0, 20.0), (3.0, 40.0)), run("b", 0, 5.0, 60.0, id=50), run("b", 1, 4.0, 50.0, id=51)]
SUFFIXES = (".json", ".md", ".tex")
FORMATS = pytest.mark.parametrize("suffix", SUFFIXES)
TEXTS = pytest.mark.parametrize("suffix", SUFFIXES[1:])


def both_tables(runs=BEFORE, cells=(RBF, LINEAR), specs=SPECS):
    metrics = {run.id: {"test/loss": 2.0 + 0.1 * run.id} for run in runs}
    return tables(sweep(list(cells), list(runs), tables=specs, metrics=metrics))


def written(table, suffix, comment=False):
    made_by = str(MadeBy(("grid",), table.layout.name, statistics=True)) if comment else ""
    if suffix == ".json":
        return as_json(to_json(table, made_by))
    return (to_latex if suffix == ".tex" else to_markdown)(table, statistics=True, made_by=made_by)


def file(shown, suffix, comment=True):
    texts = [written(table, suffix, comment) for table in shown]
    return (
        f'{{"tables": [{", ".join(texts)}]}}' if suffix == ".json" else "Words.\n\n" + "\n\nMore words.\n\n".join(texts)
    )


def results(text, shown, suffix):
    now = {table.layout.name: table for table in shown}
    in_file = find_tables([Document(Path(f"file{suffix}"), text)], list(now))
    return [
        compare(table, written(now[table.name], suffix), now[table.name].layout)
        for table in in_file
        if table.name in now
    ]


def changes(text, shown, suffix):
    return [change for result in results(text, shown, suffix) for change in result.changes]


@FORMATS
def test_what_is_the_same_matches_with_and_without_the_comment(suffix):
    shown = both_tables()
    for comment in (True, False) if suffix != ".json" else (True,):
        compared = results(file(shown, suffix, comment), shown, suffix)
        assert [(table.changes, table.own, table.left_out) for table in compared] == [((), (), ())] * 2
        assert all(table.numbers > 10 for table in compared)


@FORMATS
@pytest.mark.parametrize("comment", [True, False])
def test_every_number_that_is_changed_is_found_in_its_place(suffix, comment):
    if suffix == ".json" and not comment:
        pytest.skip("JSON has its key")
    shown = both_tables()
    text = file(shown, suffix, comment)
    layout = ("kdx report", "\\cmidrule", "\\begin{t", "\\setlength", "\\label", "footnotesize", '"run')
    places = [
        number.end() - 1
        for number in re.finditer(r"(?<![\d.{])\d(?:\.?\d){0,7}(?!em)", text)
        if not any(
            word in text[text.rfind("\n", 0, number.start()) : text.find("\n", number.start())] for word in layout
        )
    ]
    assert len(places) > 60
    for at in random.Random(1).sample(places, 60):
        falsified = f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"
        (change,) = changes(falsified, shown, suffix)
        assert change.line == text.count("\n", 0, at) + 1
        assert change.column <= at - text.rfind("\n", 0, at) < change.column + len(change.was)


@FORMATS
def test_a_score_that_changed_is_shown_with_both_values(suffix):
    after = both_tables([run("a", 1, 3.0, 41.0) if record.id == 1 else record for record in BEFORE])
    pairs = {
        (change.was.rstrip("0"), change.now.rstrip("0"))
        for change in changes(file(both_tables(), suffix), after, suffix)
    }
    assert ("40.", "41.") in pairs and ("30.", "30.5") in pairs
    assert {change.table for change in changes(file(both_tables(), suffix), after, suffix)} == {"main"}
    if suffix == ".json":
        keys = {change.key for change in changes(file(both_tables(), suffix), after, suffix)}
        assert {"value", "mean", "better_by", "p", "usual_sd"} <= keys
    places = {change.place for change in changes(file(both_tables(), suffix), after, suffix) if change.was[:3] == "40."}
    assert places == {"rbf" if suffix == ".json" else "rbf, BLEU ↑"}


@TEXTS
def test_what_stands_below_a_number_belongs_to_its_row(suffix):
    lost = [run("a", seed, state=RunState.FAILED, id=30 + seed) for seed in (2, 3)]
    shown = both_tables([*BEFORE, *lost])
    for now, was, place in (("failed 2/4", "failed 3/4", "rbf, BLEU ↑"), ("60.00", "70.00", "linear, BLEU ↑")):
        (change,) = changes(file(shown, suffix).replace(now, was, 1), shown, suffix)
        assert change.place == place


@FORMATS
def test_rows_that_came_and_went_are_changes(suffix):
    few, both = both_tables(BEFORE[:2], [RBF]), both_tables()
    for then, now in ((few, both), (both, few)):
        (result, _) = results(file(then, suffix), now, suffix)
        assert result.left_out or any("linear" in change.was + change.now for change in result.changes)


@TEXTS
def test_a_row_that_stands_twice_is_a_change(suffix):
    text = file(both_tables(), suffix)
    for name in ("rbf", "linear"):
        row = next(line for line in text.splitlines() if re.match(rf"(\| )?{name} ", line))
        (change, *more) = changes(text.replace(f"{row}\n", f"{row}\n{row}\n", 1), both_tables(), suffix)
        assert (change.now, more, change.kind) == ("not there", [], Kind.ROWS)


@TEXTS
def test_an_author_may_have_a_caption_and_notes_of_ones_own(suffix):
    text = file(both_tables(), suffix)
    title = r"\\caption\[Kernels\]\{.*\}" if suffix == ".tex" else r"\*\*main\*\*: Kernels"
    notes = r"(?m)^.*\\par$" if suffix == ".tex" else r"(?m)^(?![|*<]).+$"
    own = re.sub(title, r"\\caption{How similarity is measured}", re.sub(notes, "", text))
    own += "\nOur seeds are 5, 6 and 7.\n"
    (main, _) = results(own, both_tables(), suffix)
    assert main.changes == () and main.own[0].startswith("caption")


@TEXTS
def test_a_caption_is_changed_if_it_is_still_that_of_kdx_and_so_are_notes(suffix):
    text = file(both_tables(), suffix)
    now = both_tables(specs=[{**SPECS[0], "caption": "Kernels, all"}, SPECS[1]])
    assert {change.kind for change in changes(text, now, suffix)} == {Kind.CAPTION}
    if suffix == ".tex":
        (change,) = changes(text.replace("\\caption[Kernels]", "\\caption[Kernel]"), both_tables(), suffix)
        assert (change.kind, change.was, change.now) == (Kind.CAPTION, "Kernel", "Kernels")
    (change,) = changes(re.sub(r"(over \$?n\$? =) 2", r"\1 5", text, count=1), both_tables(), suffix)
    assert (change.kind, change.was, change.now) == (Kind.NOTE, "5", "2")
    (change,) = changes(re.sub(r"(, \$?n\$? =) 2", r"\1 5", text, count=1), both_tables(), suffix)
    assert (change.kind, change.was, change.now) == (Kind.CAPTION, "5", "2"), "what all rows have in common"
    gone = re.sub(r"(?m)^The smallest difference.*$", "", text, count=1)
    assert changes(gone, both_tables(), suffix) == []
    more = re.sub(r"(?m)^The smallest", "A remark of the 2 authors.\n\nThe smallest", text)
    assert changes(more, both_tables(), suffix) == []


def test_a_table_in_latex_may_be_set_otherwise():
    text = file(both_tables(), ".tex").replace("\\begin{tabular}", "\\begin{tabularx}{\\linewidth}")
    text = text.replace("\\end{tabular}", "\\end{tabularx}").replace("\\toprule", "\\hline")
    assert changes(text.replace("\\par\\smallskip", "\\smallskip"), both_tables(), ".tex") == []
    assert changes(re.sub(r"(?m)^ *", "    ", text), both_tables(), ".tex") == []


@pytest.mark.parametrize(("kernels", "norms"), [(2, 9), (60, 2), (25, 4)])
def test_a_table_that_continues_below_is_compared_whole(kernels, norms):
    cells = [
        cell(
            f"{k}-{n}",
            labels={"family": f"family {k} of many", "x": f"norm {n}"},
            training={"steps": 1 + 9 * k + n},
        )
        for k in range(kernels)
        for n in range(norms)
    ]
    runs = [run for number, of in enumerate(cells) for run in scored(of.id, (1.0, 20.0 + number / 8), (2.0, 21.0))]
    both = [{"name": name, "rows": ["family"], "columns": ["x"]} for name in ("two", "three")]
    for shown in (both_tables(runs, cells, both), both_tables(runs, cells, both[:1])):
        for comment in (True, False):
            text = file(shown, ".tex", comment)
            compared = [(result.changes, result.own, result.left_out) for result in results(text, shown, ".tex")]
            assert compared == [((), (), ())] * len(shown)
    first, last = text.index("21.00"), text.partition("\\label{tab:two:")[0].rindex("21.00")
    for at, k, n in ((first, 0, 0), (last, kernels - 1, norms - 1)):
        (change,) = changes(f"{text[:at]}71.00{text[at + 5 :]}", shown, ".tex")
        assert (change.was, change.now, change.place) == ("71.00", "21.00", f"family {k} of many, BLEU ↑ / norm {n}")


def test_the_last_bits_of_a_sum_do_not_matter_and_other_digits_do():
    text = file(both_tables(), ".json")
    assert changes(text.replace('"mean": 30.0', '"mean": 30.000000000000004'), both_tables(), ".json") == []
    (change,) = changes(text.replace('"mean": 30.0', '"mean": 30.000001', 1), both_tables(), ".json")
    assert (change.key, change.now) == ("mean", "30.0")


def test_a_key_that_was_taken_out_of_json_is_a_change():
    report = json.loads(file(both_tables(), ".json"))
    del report["tables"][0]["cells"][0]["sd"]
    assert [change.was for change in changes(as_json(report), both_tables(), ".json")] == ["not there"]


@FORMATS
def test_a_table_that_was_rewritten_is_not_compared(suffix):
    text = file(both_tables(), suffix)
    other = "x" if suffix == ".json" else "\\begin{tabular}{lr}\nnothing & 1 \\\\\n\\end{tabular}\n"
    if suffix == ".json":
        text = re.sub(r'"name": "main".*?"definitions"', '"name": "main", "definitions"', text, flags=re.DOTALL)
        assert [change.now for change in changes(text, both_tables(), suffix)] != []
        return
    pattern = r"(?s)\\begin\{tabular\}.*?\\end\{tabular\}\n" if suffix == ".tex" else r"(?m)(^\|.*\n)+"
    (main, _) = results(re.sub(pattern, lambda _: other, text, count=1), both_tables(), suffix)
    assert main.left_out == ("main: most of its rows have changed",)


@FORMATS
def test_published_values_and_searches_are_compared(suffix):
    paper = load_paper("tsai2019")
    table = paper.tables[0]
    cells = [
        published.model_copy(update={"where": {"kernel": kernel}, "value": value, "metric": "bleu"})
        for published, kernel, value in zip(table.cells, ("rbf", "linear"), (12.25, 13.5), strict=False)
    ]
    table = table.model_copy(update={"where": {}, "cells": tuple(cells)})
    paper = paper.model_copy(update={"tables": (table,)})
    beside = [
        replace(table, published=compare_with_published(table.layout.places, table.layout.records, paper))
        for table in both_tables()
    ]
    text = file(beside, suffix)
    assert changes(text, beside, suffix) == []
    assert any(change.was == "12.75" for change in changes(text.replace("12.25", "12.75"), beside, suffix))
    if suffix != ".json":
        assert results(text, both_tables(), suffix)[0].left_out != (), "nobody asks for the published values"
    shown = [trials.table(trials.search("rbf"), trials.search("exponential"))]
    text = file(shown, suffix)
    assert changes(text, shown, suffix) == [] and changes(text.replace("0.0095", "0.0099"), shown, suffix)


@TEXTS
def test_a_table_that_stands_twice_is_compared_twice(suffix):
    shown = both_tables()
    text = file([*shown, shown[0]], suffix)
    at = text.rindex("40.00")
    (change,) = changes(f"{text[:at]}41.00{text[at + 5 :]}", shown, suffix)
    assert (change.was, change.now) == ("41.00", "40.00")


def test_a_file_that_is_none_of_kdx_is_refused(tmp_path):
    def refusal(name: str, content: bytes | None = None) -> str:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(KdxError) as caught:
            find_tables(documents(path), ["main"])
        assert caught.value.exit_code == 2
        return str(caught.value).replace(str(path), "FILE")

    for text in ("", "[]", "| a | b |\n| :--- | ---: |\n| x | 1 |\n"):
        (tmp_path / "file.md").write_text(text)
        assert find_tables(documents(tmp_path / "file.md"), ["main"]) == []
    broken = file(both_tables(), ".json")[:-9].encode()
    assert ": this is no JSON: Unterminated string" in refusal("file.json", broken)
    assert refusal("file.json", b'{\n"a": 1,\n}').startswith("FILE:3:1: this is no JSON: ")
    assert refusal("file.tex", b"\xff") == "FILE: this file is not UTF-8"
    assert refusal("absent.md") == "FILE: cannot read this file: No such file or directory"
