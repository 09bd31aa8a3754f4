"""Whether a file's numbers still are what the database says."""

import json
import math
import re
from dataclasses import replace

import pytest
import trials
from hypothesis import given
from hypothesis import strategies as st
from sweeps import cell, run, scored, sweep

from kdx.errors import KdxError
from kdx.report.check.check import AskedReport, asked_in, compare_file
from kdx.report.check.notes import changes_of_notes
from kdx.report.check.parts import NumberChange
from kdx.report.papers.paper_file import load_paper
from kdx.report.papers.published_comparison import compare_with_published
from kdx.report.statistics.randomisation import Randomisation
from kdx.report.table.build import tables
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.store.records import RunState

SPECS = [
    {"name": "main", "rows": ["kernel"], "baseline": {"kernel": "rbf"}},
    {"name": "loss", "rows": ["kernel"], "metric": "loss"},
]
RBF, LINEAR = cell("a", kernel="rbf"), cell("b", kernel="linear")
BEFORE = [*scored("a", (1.0, 20.0), (3.0, 40.0)), run("b", 0, 5.0, 60.0, id=50), run("b", 1, 4.0, 50.0, id=51)]


def made(runs=BEFORE, cells=(RBF, LINEAR), specs=SPECS):
    return tables(sweep(list(cells), list(runs), tables=specs))


@pytest.fixture
def written(tmp_path):
    def written(shown, name="file.json", around="%s", statistics=False):
        path = tmp_path / name
        if path.suffix == ".json":
            report = {"sweep": "grid", "sweeps": ["grid"], "tables": [to_json(one) for one in shown]}
            text = json.dumps(report).replace("NaN", "null")
        else:
            write = to_latex if path.suffix == ".tex" else to_markdown
            text = "\n".join(write(one, statistics=statistics) for one in shown)
        path.write_text(around % text)
        return path

    return written


FORMATS = pytest.mark.parametrize("name", ["file.json", "paper.md", "paper.tex"])


@FORMATS
def test_what_is_the_same_matches(written, name):
    found = compare_file(written(made(), name), made())
    assert (found.tables, found.absent, found.changes) == (("main", "loss"), (), ())
    assert found.numbers > 3


@FORMATS
def test_a_number_that_changed_is_shown_with_its_place(written, name):
    after = [run("a", 1, 3.0, 41.0) if one.id == 1 else one for one in BEFORE]
    changes = compare_file(written(made(), name), made(after)).changes
    if name == "file.json":
        assert NumberChange("main", "rbf", "value", "40.0", "41.0") in changes
        assert NumberChange("main", "rbf", "mean", "30.0", "30.5") in changes
        assert {"better_by", "p", "p_corrected", "usual_sd"} <= {one.what for one in changes}, (
            "differences and the spread behind them change"
        )
    elif name == "paper.md":
        assert changes[0] == NumberChange("main", "rbf, bleu ↑", "", "40.00 · 30.00† ± 14.14", "41.00 · 30.50† ± 14.85")
    else:
        assert (changes[0].table, changes[0].place) == ("main", r"rbf, bleu $\uparrow$")
        assert ("40.00" in changes[0].was, "41.00" in changes[0].now) == (True, True)
    assert {one.table for one in changes} == {"main"}


def test_a_hole_that_was_filled_is_a_difference(written):
    before = [*BEFORE[:2], run("b", 0, state=RunState.PENDING, id=50)]
    changes = {one.what: (one.was, one.now) for one in compare_file(written(made(before)), made()).changes}
    assert (changes["state"], changes["value"], changes["n"]) == (("hole", "value"), ("null", "60.0"), ("0", "2"))


@FORMATS
def test_places_that_went_and_came_are_differences(written, name):
    one, both = made(BEFORE[:2], [RBF], SPECS[1:]), made(specs=SPECS[1:])
    column = {"file.json": "", "paper.md": ", loss ↓", "paper.tex": r", loss $\downarrow$"}[name]
    assert compare_file(written(both, name), one).changes == (
        NumberChange("loss", f"linear{column}", "", "there", "not there"),
    )
    assert (
        NumberChange("loss", f"linear{column}", "", "not there", "there")
        in compare_file(written(one, name), both).changes
    )


def test_a_table_that_went_from_the_sweep_is_a_difference_unless_one_is_asked_for(written):
    path, left = written(made()), made(specs=SPECS[:1])
    assert compare_file(path, left).changes == (NumberChange("loss", "the whole table", "", "there", "not there"),)
    assert compare_file(path, left, partly=True).changes == ()


def test_a_paper_may_have_text_and_tables_of_others_around_and_titles_of_its_own(written):
    around = "# A paper\n\n%s\n\n| a | b |\n| :--- | ---: |\n| x | 1 |\n"
    path = written(made(), "paper.md", around)
    path.write_text(path.read_text().replace("**main**", "Table 1. Kernels"))
    assert compare_file(path, made()).changes == ()
    assert compare_file(path, [*made(), *made(specs=[{"name": "other", "rows": ["norm", "kernel"]}])]).absent == (
        "other",
    )


def test_a_table_in_latex_may_be_set_otherwise_and_has_nested_headers(written):
    cells = [cell(f"{k}{n}", kernel=k, norm=n) for k in ("rbf", "linear") for n in ("pre", "post")]
    runs = [one for number, of in enumerate(cells) for one in scored(of.id, (1.0, 20.0 + number), (2.0, 21.0))]
    shown = made(runs, cells, [{"name": "two", "rows": ["kernel"], "columns": ["norm"]}])
    path = written(shown, "paper.tex", "\\section{Kernels}\n%s\nSee Table~\\ref{tab:two}.")
    text = path.read_text().replace("\\begin{tabular}", "\\begin{tabularx}{\\linewidth}")
    path.write_text(text.replace("\\end{tabular}", "\\end{tabularx}"))
    found = compare_file(path, shown)
    assert (found.numbers, found.changes) == (4, ())


@pytest.mark.parametrize(
    ("kernels", "norms", "environment"),
    [(2, 9, "table"), (60, 2, "longtable"), (60, 9, "longtable"), (25, 4, "landscape")],
)
def test_a_table_in_latex_that_goes_on_below_is_compared_whole(written, kernels, norms, environment):
    cells = [
        cell(
            f"{k}-{n}",
            labels={"family": f"family {k} of many", "x": f"norm {n}"},
            training={"steps": 1 + 9 * k + n},
        )
        for k in range(kernels)
        for n in range(norms)
    ]
    runs = [one for number, of in enumerate(cells) for one in scored(of.id, (1.0, 20.0 + number / 8), (2.0, 21.0))]
    shown = made(runs, cells, [{"name": "two", "rows": ["family"], "columns": ["x"]}])
    path = written(shown, "paper.tex", statistics=True)
    text = path.read_text()
    assert f"\\begin{{{environment}}}" in text
    found = compare_file(path, shown)
    assert (found.changes, found.left_out) == ((), ())
    assert found.numbers >= len(cells)
    first, last = text.index("21.00"), text.partition("\\label{tab:two:")[0].rindex("21.00")
    for at in (first, last):
        path.write_text(f"{text[:at]}71.00{text[at + 5 :]}")
        (change,) = compare_file(path, shown).changes
        assert "71.00" in change.was and "21.00" in change.now


def test_the_last_bits_of_a_sum_do_not_matter_and_the_tenth_digit_does(written):
    path = written(made())
    path.write_text(path.read_text().replace("30.0", repr(math.nextafter(30.0, 31))))
    assert compare_file(path, made()).changes == ()
    path.write_text(path.read_text().replace(repr(math.nextafter(30.0, 31)), "30.000001"))
    assert compare_file(path, made()).changes


@given(st.floats() | st.none(), st.floats() | st.none())
def test_scores_match_if_and_only_if_they_are_the_same_number(tmp_path_factory, one, other):
    """NaN, infinity and no score at all are one in JSON."""

    def built(score):
        return made([run("a", 0, 1.0, score, id=1)], [RBF], [{"name": "main", "rows": ["kernel"]}])

    path = tmp_path_factory.mktemp("check") / "file.json"
    finite = {"NaN": "null", "-Infinity": "null", "Infinity": "null"}
    text = json.dumps({"sweep": "grid", "sweeps": ["grid"], "tables": [to_json(table) for table in built(one)]})
    for word, null in finite.items():
        text = text.replace(word, null)
    path.write_text(text)
    value = [change for change in compare_file(path, built(other)).changes if change.what == "score"]
    numbers = [x if x is not None and math.isfinite(x) else None for x in (one, other)]
    same = numbers[0] == numbers[1] or (None not in numbers and math.isclose(*numbers, rel_tol=1e-9))
    assert bool(value) != same


def refusal(path, shown=()) -> str:
    with pytest.raises(KdxError) as caught:
        compare_file(path, shown)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(path), "FILE")


def test_a_file_that_is_none_of_kdx_is_refused(tmp_path):
    for text in ("", "[]", "{}", '{"sweep": "a", "tables": [{"name": "x"}]}', "[" * 100_000):
        path = tmp_path / "file.json"
        path.write_text(text)
        assert refusal(path).startswith("FILE: this is no report of kdx in JSON\n  hint: kdx report --json")
    path.write_bytes(b"\xff")
    assert refusal(path) == "FILE: this file is not UTF-8"
    assert refusal(tmp_path / "absent.md") == "FILE: cannot read this file: No such file or directory"
    assert refusal(tmp_path / "paper.docx").startswith("FILE: kdx cannot compare a file named `paper.docx`\n  allowed:")


def test_a_file_without_any_of_the_tables_is_refused(tmp_path, written):
    path = tmp_path / "paper.md"
    path.write_text("| a | b |\n| :--- | ---: |\n| x | 1 |\n\nno more\n")
    message = "FILE: none of these tables stands in the file as kdx writes it\n  allowed: main, loss"
    assert refusal(path, made()).startswith(message)


TWO = [{**one, "baseline": {"kernel": "rbf"}} for one in SPECS]
LOSS = {one.id: {"test/loss": 2.0 + 0.1 * one.id} for one in BEFORE}


def two(**metrics):
    """Two tables with differences from the same baseline."""
    return tables(sweep([RBF, LINEAR], BEFORE, tables=TWO, metrics={**LOSS, **metrics}))


@FORMATS
def test_the_differences_of_every_table_are_compared(written, name):
    shown = two()
    path = written(shown, name)
    assert compare_file(path, shown).changes == compare_file(path, shown).left_out == ()
    for table in shown:
        (one,) = table.differences
        value = repr(one.estimate.value) if name == "file.json" else f"{abs(one.estimate.value):.3f}".rstrip("0")
        built = written([table], name).read_text()
        assert value in built
        falsified = written(shown, name)
        falsified.write_text(falsified.read_text().replace(built.strip(), built.strip().replace(value, "7.77")))
        if name != "file.json":
            assert {change.table for change in compare_file(falsified, shown).changes} == {table.layout.name}


@pytest.mark.parametrize("name", ["paper.md", "paper.tex"])
def test_statistics_in_a_text_are_compared(written, name):
    path = written(made(), name, statistics=True)
    path.write_text(re.sub(r"\b100\.00", "99.99", path.read_text(), count=1))
    (change,) = compare_file(path, made()).changes
    assert change.place.endswith("95\\% interval" if name == "paper.tex" else "95% interval")


def beside_paper(shown):
    paper = load_paper("tsai2019")
    paper = replace(paper, tables=(replace_where(paper.tables[0]),))
    return [
        replace(one, published=compare_with_published(one.layout.places, one.layout.records, paper)) for one in shown
    ]


def replace_where(table):
    cells = [
        one.model_copy(update={"where": {"kernel": kernel}, "value": value, "metric": "bleu"})
        for one, kernel, value in zip(table.cells, ("rbf", "linear"), (12.25, 13.5), strict=False)
    ]
    return table.model_copy(update={"where": {}, "cells": tuple(cells)})


@FORMATS
def test_published_values_are_compared_and_without_them_the_file_does_not_match(written, name):
    shown = beside_paper(made())
    path = written(shown, name)
    assert asked_in(path).paper == "tsai2019"
    assert compare_file(path, shown).changes == compare_file(path, shown).left_out == ()
    (left,) = compare_file(path, made()).left_out
    assert left.strip("*").startswith(("main: ", "tab:main:"))
    falsified = path.read_text().replace("12.25", "12.75")
    path.write_text(falsified)
    assert {("12.75" in one.was, "12.25" in one.now) for one in compare_file(path, shown).changes} == {(True, True)}
    if name == "file.json":
        path.write_text(re.sub(r'"kendall_tau": [-.\d]+', '"kendall_tau": 0.5', written(shown, name).read_text()))
        (change, *_) = compare_file(path, shown).changes
        assert (change.what, change.was) == ("kendall_tau", "0.5")


def resampled(shown):
    over = Randomisation(1.5, 0.01, 1000, 40, "s")
    return [replace(one, randomisations={of.at: over for of in one.differences}) for one in shown]


def test_differences_that_were_written_before_they_had_the_means_beside_them_still_match(written):
    shown = made(specs=[{**SPECS[0], "baseline": {"kernel": "linear"}}])
    path = written(shown, "paper.md")
    text = path.read_text()
    assert "| kernel | mean | better by |" in text
    before, title, after = text.partition("differences from")
    lines = [re.sub(r"^(\|[^|]*)\|[^|]*", r"\1", line) for line in after.split("\n")]
    path.write_text(before + title + "\n".join(lines))
    assert "| kernel | better by |" in path.read_text()
    assert compare_file(path, shown).changes == ()
    path.write_text(path.read_text().replace("| linear | ", "| linear | 9", 1).replace("| rbf | ", "| rbf | 9", 1))
    assert compare_file(path, shown).changes


@FORMATS
def test_a_randomisation_is_compared_where_it_is_made_again_and_told_where_it_is_not(written, name):
    shown = made(specs=SPECS[:1])
    path = written(resampled(shown), name)
    assert asked_in(path).randomisation
    assert compare_file(path, resampled(shown)).changes == compare_file(path, resampled(shown)).left_out == ()
    found = compare_file(path, shown)
    assert (found.changes, found.left_out) == ((), ("main: randomisation of sentences",))
    # One that the file does not show is nobody's business.
    plain = written(shown, name)
    assert not asked_in(plain).randomisation
    assert compare_file(plain, resampled(shown)).changes == compare_file(plain, resampled(shown)).left_out == ()


@FORMATS
def test_a_table_that_stands_twice_is_compared_twice(written, name):
    shown = made()
    path = written([*shown, shown[0]], name)
    assert compare_file(path, shown).changes == ()
    text = path.read_text()
    at = text.rindex("40.0")
    path.write_text(f"{text[:at]}41.0{text[at + 4 :]}")
    assert compare_file(path, shown).changes


def test_tables_that_cannot_be_told_apart_are_not_said_to_match(written):
    specs = [{"name": name, "rows": ["kernel"]} for name in ("one", "two")]
    path = written(made(specs=specs), "paper.md")
    path.write_text(path.read_text().replace("**one**", "Table 1").replace("**two**", "Table 2"))
    with pytest.raises(KdxError, match="none of these tables"):
        compare_file(path, made(specs=specs))
    more = [*specs, {"name": "main", "rows": ["kernel"], "metric": "loss"}]
    path = written(made(specs=more), "paper.md")
    path.write_text(path.read_text().replace("**one**", "Table 1").replace("**two**", "Table 2"))
    found = compare_file(path, made(specs=more))
    assert found.tables == ("main",) and {"Table 1", "Table 2"} <= set(found.left_out)


def test_what_belongs_to_a_table_of_another_sweep_is_left_alone(written):
    other = made(
        [*scored("a", (1.0, 1.0), (3.0, 4.0)), *BEFORE[2:]], specs=[{"name": "other", "rows": ["norm", "kernel"]}]
    )
    path = written([*made(), *other], "paper.md", statistics=True)
    found = compare_file(path, made())
    assert (found.changes, found.left_out) == ((), ())


def test_a_report_in_json_names_its_sweep(written):
    assert asked_in(written(made())) == AskedReport(("grid",), None, False)
    assert asked_in(written(made(), "paper.md")) == AskedReport((), None, False)


def test_a_report_in_json_names_all_its_sweeps(written):
    path = written(made())
    path.write_text(json.dumps({**json.loads(path.read_text()), "sweep": "a, b", "sweeps": ["a", "b"]}))
    assert asked_in(path).sweeps == ("a", "b")


CAPTIONED = [{**SPECS[0], "caption": "Kernels"}, SPECS[1]]


@FORMATS
def test_a_caption_of_other_words_is_a_difference(written, name):
    (main, loss), (now, _) = made(specs=CAPTIONED), made(specs=[{**CAPTIONED[0], "caption": "Kernels, all"}, SPECS[1]])
    changes = compare_file(written([main, loss], name), [now, loss]).changes
    assert [(one.table, one.place, one.was, one.now) for one in changes] == [
        ("main", "caption", changes[0].was, "Kernels, all")
    ]
    assert changes[0].was.startswith("Kernels")


@FORMATS
def test_notes_that_tell_other_numbers_are_a_difference(written, name):
    path = written(made(), name)
    assert "times the perplexity" not in path.read_text()
    path.write_text(path.read_text().replace("n = 2", "n = 5"))
    # The other has no score to speak of.
    assert {(one.table, one.place) for one in compare_file(path, made()).changes} == {("main", "notes")}


@pytest.mark.parametrize("name", ["paper.md", "paper.tex"])
def test_a_note_that_has_come_or_gone_is_a_difference_and_a_text_may_leave_all_out(written, name):
    path = written(made(), name)
    text = path.read_text()
    path.write_text(re.sub(r"(?m)^The smallest difference.*$", "", text))
    assert [(one.place, one.was) for one in compare_file(path, made()).changes] == [("notes", "not there")]
    path.write_text(re.sub(r"(?m)^(The smallest difference|Per cell|–:).*$", "Words of the paper.", text))
    assert compare_file(path, made()).changes == ()
    path.write_text(text.replace("The smallest difference", r"Spread over seeds: 7.\par The smallest difference"))
    if name == "paper.tex":
        assert [(one.place, one.now) for one in compare_file(path, made()).changes] == [("notes", "not there")]


def test_a_key_that_was_taken_out_of_a_report_is_a_difference(written):
    path = written(made())
    report = json.loads(path.read_text())
    del report["tables"][0]["cells"][0]["sd"]
    path.write_text(json.dumps(report))
    (found,) = compare_file(path, made()).changes
    assert (found.what, found.was) == ("sd", "not there")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("paper.tex", "tabular}", "tblr}"),
        ("paper.md", "| kernel |", "kernel:"),
    ],
)
def test_a_table_that_was_rewritten_under_its_name_could_not_be_compared(written, name, old, new):
    path = written(made(), name)
    main, loss = path.read_text().split("loss", 1)
    path.write_text(f"{main}loss{loss.replace(old, new)}")
    assert "loss" in compare_file(path, made()).left_out


@FORMATS
@pytest.mark.parametrize("statistics", [False, True])
def test_what_searches_found_is_compared_too(written, name, statistics):
    before, again = trials.search("rbf"), trials.search("exponential")
    shown = trials.table(before, again)
    path = written([shown], name, statistics=statistics)
    same = compare_file(path, [shown])
    assert (same.changes, same.left_out) == ((), ())
    won = before.trials[1]._replace(parameters={trials.RATE: 9.9e-3, trials.DROPOUT: 0.0})
    other = before._replace(trials=(before.trials[0], won, before.trials[2]))
    changes = compare_file(path, [trials.table(other, again)]).changes
    assert any("rbf" in one.place and "0.0099" in one.now for one in changes)


def test_a_row_that_stands_twice_in_markdown_is_a_difference(written):
    path = written(made(), "paper.md")
    row = next(line for line in path.read_text().splitlines() if line.startswith("| rbf"))
    path.write_text(path.read_text().replace(f"{row}\n", f"{row}\n{row}\n", 1))
    assert [one.place for one in compare_file(path, made()).changes] == ["rbf, bleu ↑"]


def test_the_short_caption_in_latex_is_compared(written):
    path = written(made(specs=CAPTIONED), "paper.tex")
    path.write_text(path.read_text().replace("\\caption[Kernels]", "\\caption[Kernel]"))
    (change,) = compare_file(path, made(specs=CAPTIONED)).changes
    assert (change.place, change.was, change.now) == ("short caption", "Kernel", "Kernels")


def test_a_note_is_known_whatever_the_numbers_at_its_beginning_are():
    full = ["95% intervals of the mean over seeds."]
    (change,) = changes_of_notes("t", ["05% intervals of the mean over seeds."], full, full)
    assert change.was.startswith("05%")
