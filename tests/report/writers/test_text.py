"""The terminal's table: looks like a paper's, keeps its shape whatever the names and the width."""

import io
import json
import re
import unicodedata
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.selection.cells import Cell
from kdx.report.sheet import Sheet
from kdx.report.sheets.listings import listings
from kdx.report.sheets.notes import caption
from kdx.report.tables import Table, tables
from kdx.report.writers.csv import to_csv
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.report.writers.text import TextSheet, text_table
from kdx.store.records import RunState


def drawn(table: Table, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(text_table(table))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def styled(table: Table) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80, force_terminal=True, color_system="truecolor").print(text_table(table))
    return stream.getvalue()


def both_tasks() -> Table:
    cells = [
        cell(f"{task}-{kernel}-{position}", task, kernel=kernel, position=position)
        for task in ("translation", "prediction")
        for kernel in ("exponential", "rbf")
        for position in ("none", "product")
    ]
    runs = []
    for index, each in enumerate(cells):
        good = 12.0 + 6 * (index % 4)
        runs += scored(each.id, (good, good + 0.31), (good - 1, good - 0.7), (good - 2, good + 0.1))
    return tables(sweep(cells, runs, axes=["task", "kernel", "position"], name="dissect"))[0]


def body_of(text: str) -> str:
    """What stands above the notes."""
    return text[: text.rindex("──") + 2]


def below(text: str) -> str:
    return text[text.rindex("──") + 2 :].lstrip("\n")


def test_a_table_of_two_tasks_fits_eighty_columns_one_line_a_row() -> None:
    assert (
        body_of(drawn(both_tasks()))
        == """\
dissect
───────────────────────────────────────────────────────────────────
                        translation            prediction
kernel       position   BLEU ↑                 perplexity ↓
───────────────────────────────────────────────────────────────────
exponential  none       12.31  11.90  ± 0.53   12.10  11.90* ± 0.53
             product    18.31  17.90  ± 0.53   18.10  17.90  ± 0.53
rbf          none       24.31  23.90  ± 0.53   24.10  23.90  ± 0.53
             product    30.31  29.90* ± 0.53   30.10  29.90  ± 0.53
───────────────────────────────────────────────────────────────────"""
    )


def test_the_notes_stand_below_folded_to_the_table_or_to_eighty_columns() -> None:
    table = both_tasks()
    notes = below(drawn(table, 120)).splitlines()
    assert " ".join(notes) == " ".join(caption(table, best="* and bold"))
    assert max(map(cell_len, notes)) <= 80


def test_holes_divergence_failures_and_unequal_seeds_are_told_in_their_places() -> None:
    names = ("full", "some", "hole", "broke", "memory", "gone", "fail")
    cells = [cell(name, labels={"approach": name}, training={"steps": 10 + i}) for i, name in enumerate(names)]
    diverged, failed, pending = RunState.DIVERGED, RunState.FAILED, RunState.PENDING
    runs = [
        *scored("full", (8.0, 9.5), (7.0, 9.25)),
        *(run("some", 0, 30.0, 30.5), run("some", 1, state=diverged)),
        *(run("hole", 0, state=pending), run("hole", 1, state=failed)),
        run("broke", 0, state=failed, error="ValueError: no"),
        run("memory", 0, state=failed, error="torch.OutOfMemoryError: CUDA out of memory."),
        *(run("gone", 0, state=diverged), run("gone", 1, state=diverged)),
        *(run("fail", 0, 9.0, 9.0), run("fail", 1, state=failed)),
    ]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "caption": "What can happen", "rows": ["approach"]}]))
    assert (
        body_of(drawn(table))
        == """\
t: What can happen
───────────────────────────────────────────────
approach   BLEU ↑
───────────────────────────────────────────────
full        9.50  9.38 ± 0.18 (2)
some       30.50              (1)  diverged 1/2
hole           –                   failed 1/2
broke      failed 1/1
memory     out of memory 1/1
gone       diverged 2/2
fail        9.00              (1)  failed 1/2
───────────────────────────────────────────────"""
    )


def test_a_table_wider_than_the_console_goes_on_below_without_losing_a_number() -> None:
    wide, narrow = drawn(both_tasks(), 120), drawn(both_tasks(), 50)
    assert narrow.count("exponential  none") == 2
    for number in ("30.31  29.90* ± 0.53", "12.10  11.90* ± 0.53"):
        assert number in wide and number in narrow
    assert max(map(cell_len, narrow.splitlines())) <= 50


def test_the_best_mean_is_bold_and_neither_its_score_nor_its_spread_is() -> None:
    assert "30.31  \x1b[1m29.90*\x1b[0m ± 0.53" in styled(both_tasks())


def test_what_is_near_the_best_is_marked_without_disturbing_the_numbers() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", kernel="polynomial")]
    runs = [*seeded("a", 30.0, 31.0, 32.0), *seeded("b", 30.5, 31.0, 31.0), *seeded("c", 3.0, 4.0, 3.0)]
    mean = {"name": "t", "rows": ["kernel"], "cell": "mean"}
    best, means = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}, mean]))
    assert drawn(best).splitlines()[4:7] == [
        "rbf           32.00  31.00* ± 1.00",
        "exponential   31.00  30.83† ± 0.29",
        "polynomial     4.00   3.33  ± 0.58",
    ]
    assert drawn(means).splitlines()[4:7] == [
        "rbf           31.00* ± 2.48",
        "exponential   30.83† ± 0.72",
        "polynomial     3.33  ± 1.43",
    ]


def test_listings_follow_the_table_and_fold_rather_than_cut() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*seeded("a", 30.0, 31.0, 32.0), *seeded("b", 30.5, 31.0, 31.0)]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}]))
    stream = io.StringIO()
    Console(file=stream, width=60, color_system=None).print(text_table(table, statistics=True))
    text = stream.getvalue()
    assert ": each cell over its seeds" in text and ": differences from the best of the column" in text
    assert "Each cell" not in drawn(table)
    assert max(map(cell_len, text.splitlines())) <= 60


CLAIM = Sheet(
    "A1: cannot tell: Positions enter best as a product",
    ("A1",),
    ("a over b", "expected", "difference", "interval", "n", "verdict", "more seeds"),
    2,
    (
        ("product symmetric over direct-sum", "better", "+6.09", "−2.99 to 15.17", "3", "cannot tell", "7"),
        ("product symmetric over lookup", "no worse than 0.2", "+0.17", "−0.04 to 0.39", "3", "holds", ""),
        ("exponential over polynomial", "within 0.25", "−0.17", "−0.36 to 0.01", "3", "does not hold", "none in sight"),
    ),
    ("Source: Sec. 3.5.",),
)


def listed(listing: Sheet, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(TextSheet(listing))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_a_contrast_takes_one_line_at_120_columns_and_at_most_three_at_80() -> None:
    assert (
        listed(CLAIM, 120).splitlines()[2:7]
        == """\
a over b                           expected           difference        interval  n  verdict           more seeds
─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
product symmetric over direct-sum  better                  +6.09  −2.99 to 15.17  3  cannot tell                7
product symmetric over lookup      no worse than 0.2       +0.17   −0.04 to 0.39  3  holds
exponential over polynomial        within 0.25             −0.17   −0.36 to 0.01  3  does not hold  none in sight
""".splitlines()
    )
    narrow = listed(CLAIM, 80).splitlines()
    rules = [index for index, line in enumerate(narrow) if line.startswith("───")]
    assert len(rules) == 3 and rules[2] - rules[1] - 1 <= 3 * len(CLAIM.rows)
    assert max(map(cell_len, narrow)) <= 80


@pytest.mark.parametrize("width", [80, 120])
def test_no_word_and_no_number_of_statistics_or_of_a_claim_is_broken(width: int) -> None:
    approaches = ("No position", "Vaswani et al. (2017), Eq. 4", "Tsai et al. (2019), Eq. 9")
    cells = [
        cell(
            f"{task}{kernel}{at}", task, {"task": task, "kernel": kernel, "approach": name}, training={"steps": 9 + at}
        )
        for task in ("translation", "prediction")
        for kernel in ("exponential", "rbf")
        for at, name in enumerate(approaches)
    ]
    runs = [run for index, each in enumerate(cells) for run in seeded(each.id, 20.0 + index, 21.0, 22.0 - index)]
    spec = {"name": "t", "rows": ["approach", "kernel"], "columns": ["task"]}
    (table,) = tables(sweep(cells, runs, tables=[spec]))
    for sheet in (*listings(table, statistics=True), CLAIM):
        text = listed(sheet, width)
        assert max(map(cell_len, text.splitlines())) <= width
        # A word may end in the slash behind which it was broken.
        written = set(text.split())
        assert {word for row in (sheet.headers, *sheet.rows) for text in row for word in text.split()} <= written
        for text_of_number in (word for row in sheet.rows for word in row if word[:1].isdigit() or " to " in word):
            assert text_of_number in text


def test_a_long_name_is_folded_not_cut() -> None:
    name = "A name of an approach that does not fit any terminal that is forty columns wide"
    spec = {"name": "t", "rows": ["approach", "norm"]}
    (table,) = tables(sweep([cell("a", labels={"approach": name})], scored("a", (1.0, 2.0)), tables=[spec]))
    assert (
        drawn(table, 40).split(" valid")[0]
        == """\
t
────────────────────────────────────────
approach                   norm   BLEU ↑
────────────────────────────────────────
A name of an approach      post   2.00
that does not fit any
terminal that is forty
columns wide
────────────────────────────────────────
Per cell, the test score of the seed
with the best"""
    )


def test_markup_of_the_terminal_library_is_plain_text() -> None:
    spec = {"name": "[link=http://x]t", "rows": ["approach"]}
    (table,) = tables(sweep([cell("a", labels={"approach": "[bold red]x[/] :smile:"})], [], tables=[spec]))
    assert "[bold red]x[/] :smile:" in drawn(table)
    assert "[link=http://x]t" in drawn(table)


# A grid is read as UTF-8, so no name holds half a surrogate pair.
names = st.text(max_size=30)


@settings(deadline=None)
@given(names, names, names, st.integers(50, 160))
def test_any_names_leave_no_control_character_and_the_shape_of_the_table(
    title: str, first: str, second: str, width: int
) -> None:
    labels = [{"approach": first, "way": "one"}, {"approach": second, "way": "two"}]
    cells = [cell(f"c{i}", labels=label, training={"steps": i + 1}) for i, label in enumerate(labels)]
    runs = [*scored("c0", (1.0, 12.25), (2.0, 23.50)), *scored("c1", (1.0, 34.25), (2.0, 45.50))]
    spec = {"name": title or "t", "caption": title, "rows": ["way"], "columns": ["approach"]}
    for rows, columns in ((["way", "approach"], []), (["way"], ["approach"])):
        (table,) = tables(sweep(cells, runs, tables=[{**spec, "rows": rows, "columns": columns}]))
        text = drawn(table, width)
        assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in text if sign != "\n")
        assert max(map(cell_len, text.splitlines())) <= width
        for number in ("23.50", "17.88 ± 7.95", "45.50", "39.88 ± 7.95"):
            assert number in re.sub("[†*]", "", text)


def test_a_sweep_without_cells_still_draws() -> None:
    assert drawn(tables(sweep([], [], name="empty"))[0]).splitlines()[0] == "empty"


def test_scores_against_a_length_follow_the_table_and_no_other_format_has_them() -> None:
    lengths = (128, 256)
    cells = [cell(f"{at}", "prediction", labels={}, evaluation={"length": at}) for at in lengths]
    runs = [run for each in cells for run in seeded(each.id, 20.0, 21.0)]
    spec = {"name": "t", "rows": ["evaluation.length"]}
    record = sweep(cells, runs, tables=[spec])
    (table,) = tables(record)
    (title,) = [line for line in drawn(table).splitlines() if line.endswith("against the length")]
    assert drawn(table).index(title) > drawn(table).index("Per cell")
    others = (to_markdown(table), to_latex(table), to_csv([table]), json.dumps(to_json(table)))
    assert not any("against the length" in other or "●" in other for other in others)


@pytest.mark.parametrize("written", [lambda table: drawn(table, 200), to_latex], ids=["text", "latex"])
def test_each_name_of_a_row_and_each_cell_is_read_a_few_times_however_many_rows_there_are(monkeypatch, written):
    """A table may have thousands of rows."""
    read: Counter[str] = Counter()

    class Word(str):
        def __str__(self) -> str:
            read["name"] += 1
            return str.__str__(self)

    value = Cell.value
    monkeypatch.setattr(Cell, "value", property(lambda cell: read.update(["value"]) or value.__get__(cell)))
    reads = []
    for rows in (10, 40):
        cells = [cell(f"{row}", labels={"variant": f"variant {row}"}) for row in range(rows)]
        runs = [each for row in range(rows) for each in seeded(f"{row}", 20.0 + row, 21.0 + row)]
        (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["variant"]}]))
        layout = replace(table.layout, rows=tuple((Word(name),) for (name,) in table.layout.rows))
        read.clear()
        written(replace(table, layout=layout))
        reads.append(dict(read))
    few, many = reads
    # Four times as many rows; a long table may be written in two pieces.
    assert few["name"] and few["value"] and all(many[what] <= 8 * few[what] for what in few)
