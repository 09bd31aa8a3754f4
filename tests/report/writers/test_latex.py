"""LaTeX: a table that can be pasted into a paper and compiles, whatever its names are."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sweeps import cell, run, scored, seeded, sweep
from typeset import set_by_latex

from kdx.grid.load import load_grid
from kdx.grid.shipped import names
from kdx.report.sheet import Sheet
from kdx.report.tables import Table, tables
from kdx.report.writers.latex import sheet_to_latex, to_latex
from kdx.report.writers.tex import breakable_tex, tex
from kdx.store.records import RunState

SLACK = 3.0
"""By how much a line may be too long, in points: a millimetre."""

HOSTILE = [
    "\\end{tabular}\\end{table}\\end{document}",
    "\\input{/etc/passwd} \\write18{id} ^^5cinput",
    "100% & more \\\\ $x_1^2$ #1 {open ~tilde~ }close{",
    "[optional] * starred",
    "-- --- '' ``quotes'' \"a <<>> | ?`!`",
    "café Ångström Żółć naïve Ørsted straße ŒUVRE ṩ",
    "α β ω Σ Λ ο ς",
    "日本語 🙂 ﷽ \ud800 \U0010ffff ½ ² ™",
    "esc\x1b[31m nul\0 bidi\u202e zero\u200bwidth\u2028line\rreturn\ttab",
    "± × ≥ ∞ − – — … § † ↑ ↓ ‘’ “”",
]

any_text = st.text(st.characters(codec=None, categories=None))


def both_tasks(kernels: Sequence[str] = ("exponential", "rbf"), row: str = "position", column: str = "kernel") -> Table:
    cells = [
        cell(f"{task}-{kernel}-{position}", task, kernel=kernel, position=position)
        for task in ("translation", "prediction")
        for kernel in kernels
        for position in ("none", "product")
    ]
    runs = []
    for index, each in enumerate(cells):
        good = 5.0 + 6 * (index % 4)
        runs += scored(each.id, (good, good + 0.31), (good - 1, good - 0.7), (good - 2, good + 0.1))
    spec = {"name": "both tasks", "caption": "Kernels", "rows": [row], "columns": ["task", column]}
    return tables(sweep(cells, runs, tables=[spec]))[0]


def test_headers_are_nested_and_numbers_line_up() -> None:
    (body,) = re.findall(r"\\toprule\n(.*?)\\bottomrule", to_latex(both_tasks()), re.DOTALL)
    assert (
        body
        == """\
 & \\multicolumn{6}{c}{translation} & \\multicolumn{6}{c}{prediction} \\\\
\\cmidrule(lr){2-7}\\cmidrule(lr){8-13}
 & \\multicolumn{6}{c}{BLEU $\\uparrow$} & \\multicolumn{6}{c}{perplexity $\\downarrow$} \\\\
\\cmidrule(lr){2-7}\\cmidrule(lr){8-13}
position & \\multicolumn{3}{c}{exponential} & \\multicolumn{3}{c}{rbf} & \\multicolumn{3}{c}{exponential} & \
\\multicolumn{3}{c}{rbf} \\\\
\\midrule
none & 5.31 & 4.90 & $\\pm$ 0.53 & 17.31 & 16.90 & $\\pm$ 0.53 & 5.10 & \\textbf{4.90} & $\\pm$ 0.53 & 17.10 & \
\\textbf{16.90} & $\\pm$ 0.53 \\\\
product & 11.31 & \\textbf{10.90} & $\\pm$ 0.53 & 23.31 & \\textbf{22.90} & $\\pm$ 0.53 & 11.10 & 10.90 & \
$\\pm$ 0.53 & 23.10 & 22.90 & $\\pm$ 0.53 \\\\
"""
    )


@pytest.mark.parametrize(
    ("rows", "columns", "environment", "pieces"),
    [
        (3, 4, "begin{table}", 1),
        (3, 6, "begin{sidewaystable}", 1),
        (3, 9, "begin{sidewaystable}", 2),
        (60, 3, "begingroup", 1),
        (60, 4, "begin{landscape}", 1),
        (60, 6, "begin{landscape}", 2),
    ],
)
def test_what_is_too_wide_is_turned_and_goes_on_below_if_it_is_too_wide_for_that(
    rows: int, columns: int, environment: str, pieces: int
) -> None:
    text = to_latex(large(rows, columns))
    assert text.startswith(f"\\{environment}")
    assert text.count("\\endlastfoot" if rows > 9 else "\\end{tabular}") == pieces


def test_the_caption_is_short_and_the_notes_stand_below_in_small_type() -> None:
    text = to_latex(both_tasks())
    assert text.startswith(
        "\\begin{table}[!ht]\n\\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}"
        "\\setlength{\\tabcolsep}{4pt}\n\\caption[Kernels]{Kernels.}\n\\label{tab:both-tasks}\n{\\centering\n\\resizebox"
    )
    above, _, below = text.rpartition("\\end{tabular}")
    assert "Per cell" not in above
    assert below.startswith(
        "\n}\n\\par\\smallskip}\n{\\footnotesize\\sloppy\\parindent=0pt\nPer cell, the test score of"
    )
    assert below.endswith("\\par\n}\n\\end{table}\n")


def every_kind_of_place() -> Table:
    names = ("full", "some", "hole", "memory", "gone")
    cells = [cell(name, labels={"approach": name}, training={"steps": 10 + i}) for i, name in enumerate(names)]
    diverged, failed = RunState.DIVERGED, RunState.FAILED
    runs = [
        *scored("full", (8.0, 9.5), (7.0, 9.25)),
        *(run("some", 0, 30.0, 30.5), run("some", 1, state=diverged)),
        run("memory", 0, state=failed, error="torch.OutOfMemoryError: CUDA out of memory."),
        *(run("gone", 0, state=diverged), run("gone", 1, state=failed)),
    ]
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["approach"]}]))[0]


def test_places_without_a_number_stand_over_all_of_their_columns() -> None:
    lines = to_latex(every_kind_of_place()).splitlines()
    assert [line for line in lines if line.startswith(("full", "some", "hole", "memory", "gone"))] == [
        "full & 9.50 & 9.38 & $\\pm$ 0.18 (2) \\\\",
        "some & 30.50 &  & \\phantom{0} \\phantom{0}\\phantom{0}\\phantom{0}\\phantom{0} (1) \\\\",
        "hole & – &  &  \\\\",
        "memory & \\multicolumn{3}{l}{out of memory 1/1} \\\\",
        "gone & \\multicolumn{3}{l}{diverged 1/2, failed 1/2} \\\\",
    ]
    some = next(at for at, line in enumerate(lines) if line.startswith("some"))
    assert lines[some + 1] == " & \\multicolumn{3}{l}{diverged 1/2} \\\\", "below its number"


def test_outer_names_are_not_repeated_and_what_is_near_the_best_is_marked() -> None:
    cells = [cell(f"{k}{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [*seeded("rbfpre", 30.0, 31.0, 32.0), *seeded("rbfpost", 30.5, 31.0, 31.0)]
    text = to_latex(tables(sweep(cells, runs, axes=["kernel", "norm"]))[0])
    assert (
        "\nrbf & pre & 32.00 & \\textbf{31.00} & $\\pm$ 1.00 \\\\\n & post & 31.00 & 30.83\\rlap{$^\\dagger$} & "
        in text
    )
    assert "\n\\addlinespace\nexponential & pre & " in text
    assert "$\\dagger$: " in text.partition("\\footnotesize")[2]


def test_a_negative_score_has_a_minus() -> None:
    specs = [{"name": "t", "rows": ["kernel"]}]
    text = to_latex(tables(sweep([cell("a", kernel="rbf")], seeded("a", -1.5), tables=specs))[0])
    assert "\nrbf & $-$1.50 \\\\\n" in text


def test_statistics_and_published_values_are_tables_of_their_own() -> None:
    text = to_latex(both_tasks(), statistics=True)
    assert text.count("\\caption[") == 3
    assert (
        "{Each cell over its seeds, $n$ = 3 (Table~\\ref{tab:both-tasks}).}" in text and "\n95\\% interval of" in text
    )
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(labels) == 3 == len(set(labels))


def test_symbols_of_statistics_are_set_as_such_and_names_are_not() -> None:
    text = to_latex(both_tasks(), statistics=True)
    (head,) = (line for line in text.splitlines() if "& unit &" in line)
    assert head.endswith("& unit & 95\\% interval & ratio & $p$ & corrected $p$ & effect \\\\")
    assert "\n95\\% interval, $p$: of each" in text and "\ncorrected $p$: one-sided" in text
    assert "deviation over $n$ = 3 seeds" in text
    named = to_latex(
        tables(sweep([cell("a", labels={"n": "p"})], seeded("a", 1.0), tables=[{"name": "t", "rows": ["n"]}]))[0]
    )
    assert "\nn & " in named and "\np & " in named


def test_notes_are_as_many_as_one_asks_for() -> None:
    none, short, full = (to_latex(both_tasks(), statistics=True, notes=notes) for notes in ("none", "short", "full"))
    assert "Bold: best" not in none and "(Hedges" not in none and "$n$ = 3" in none
    assert none.count("\\par\n") == 0 < short.count("\\par\n") < full.count("\\par\n")


def large(rows: int, columns: int, name: str = "approach {}") -> Table:
    cells = [
        cell(
            f"{r}-{c}",
            labels={"approach": name.format(r), "steps": f"setting {c}"},
            training={"steps": 99 + 100 * r + c},
        )
        for r in range(rows)
        for c in range(columns)
    ]
    runs = [
        run(each.id, seed, score, score, id=10 * at + seed)
        for at, each in enumerate(cells)
        for seed, score in enumerate((20 + at / 100, 21 - at / 1000))
    ]
    spec = {"name": "large", "rows": ["approach"], "columns": ["steps"]}
    return tables(sweep(cells, runs, tables=[spec]))[0]


def scores_of(table: Table) -> list[str]:
    return [f"{cell.value:.2f}" for cell in table.layout.cells if cell.value is not None]


def scores_in(text: str, table: Table) -> list[str]:
    """The scores on the pages, which stand before a mean and its spread."""
    return re.findall(r"(\d+\.\d\d)\s+\d+\.\d\d†?\s*± ", text)


@pytest.mark.slow
def test_two_hundred_rows_break_across_pages_and_none_is_lost(tmp_path: Path, figure) -> None:
    table = large(200, 2)
    pages = set_by_latex(to_latex(table), tmp_path)
    rows = re.findall(r"^ *approach (\d+) .*±", pages.text, re.MULTILINE)
    assert rows == [str(row) for row in range(200)]
    assert sorted(scores_in(pages.text, table)) == sorted(scores_of(table))
    sheets = pages.text.split("\f")
    assert pages.text.count("Table 1, continued") == pages.text.count("continued on the next page") >= 3
    assert all("setting 0" in sheet for sheet in sheets if "±" in sheet), "each page has the head"
    assert pages.overfull <= SLACK
    figure(f"{len(rows)} rows on {len(sheets) - 1} pages, overfull by {pages.overfull} pt at most")


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(6, 20), (60, 8), (3, 5)])
def test_many_columns_go_on_below_and_none_is_lost(tmp_path: Path, rows: int, columns: int) -> None:
    table = large(rows, columns)
    pages = set_by_latex(to_latex(table), tmp_path)
    assert sorted(scores_in(pages.text, table)) == sorted(scores_of(table))
    assert len(re.findall(r"Table \d+:", pages.text)) == 1
    assert pages.overfull <= SLACK


@pytest.mark.slow
def test_a_table_of_sixteen_cells_with_its_statistics_takes_two_pages(tmp_path: Path) -> None:
    table = both_tasks(("linear", "polynomial", "exponential", "rbf"), "kernel", "position")
    pages = set_by_latex(to_latex(table, statistics=True), tmp_path)
    assert pages.text.count("\f") == 2 and "continued" not in pages.text and pages.overfull <= SLACK
    words = {"polynomial", "exponential", "translation", "prediction", "perplexity", "interval", "corrected"}
    assert words <= set(re.findall(r"\w+", pages.text))


@pytest.mark.slow
@pytest.mark.parametrize("length", [900, 4000, 20_000])
def test_notes_of_any_length_stand_below_in_full(tmp_path: Path, length: int) -> None:
    words = " ".join(f"note{number:05}" for number in range(length // 10))
    signature = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"
    table = replace(large(6, 2), notes=(f"{words} {signature}.",))
    pages = set_by_latex(to_latex(table), tmp_path)
    assert re.findall(r"note\d{5}", pages.text) == words.split()
    assert pages.overfull <= SLACK


@pytest.mark.slow
def test_names_of_any_length_are_folded(tmp_path: Path) -> None:
    for name in ("Vaswani et al. (2017), Eq. 4, with words that go on and on and on, number {}", "x" * 150 + "{}"):
        pages = set_by_latex(to_latex(large(4, 2, name), statistics=True), tmp_path)
        assert pages.overfull <= SLACK


@pytest.mark.slow
def test_claims_stand_below_their_heading_and_within_the_text(tmp_path: Path) -> None:
    headers = ("a over b", "expected", "difference", "interval", "n", "verdict", "more seeds")
    row = ("product symmetric over lookup asymmetric, without-position", "no worse than 0.2")
    rows = tuple((*row, "+0.17", "−0.04 to 0.39", "3", "does not hold", "none in sight") for _ in range(3))
    notes = ("Source: Sec. 3.5.", "Differences of means, paired by seed. " * 8)
    claims = [
        Sheet(f"A{at}: holds: " + "words " * 20, ("claim", f"A{at}"), headers, 2, rows, notes) for at in range(12)
    ]
    alone = Sheet("B1: cannot tell: nothing", ("B1",), headers, 2, (), ("No cells here for it.",))
    assert not any("\\ref" in sheet_to_latex(claim) for claim in claims)
    body = "\n".join(("\\section*{First}", *map(sheet_to_latex, claims), "\\section*{Second}", sheet_to_latex(alone)))
    pages = set_by_latex(body, tmp_path)
    assert pages.overfull <= SLACK
    assert pages.text.count("No cells here for it.") == 1
    captions = re.findall(r"Table (\d+): A(\d+)", pages.text)
    assert [(int(number) - 1, int(claim)) for number, claim in captions] == [(at, at) for at in range(12)]
    assert pages.text.index("First") < pages.text.index("Table 1:")


@pytest.mark.slow
def test_all_of_it_compiles_with_the_most_hostile_names(tmp_path: Path, figure) -> None:
    labels = [{"approach": name, "[x]": name[::-1]} for name in HOSTILE]
    cells = [cell(f"c{i}", labels=label, training={"steps": i + 1}) for i, label in enumerate(labels)]
    runs = [run for each in cells for run in seeded(each.id, 1.0, 2.0)]
    specs = [
        {"name": name, "caption": name, "rows": ["approach", "[x]"], "columns": ["training.steps"]}
        for name in HOSTILE[:2]
    ]
    hostile = tables(sweep(cells, runs, tables=specs))
    body = "\n".join(
        [
            *(to_latex(table, statistics=True) for table in (*hostile, both_tasks(), every_kind_of_place())),
            sheet_to_latex(Sheet("a claim", ("a claim",), ("a",), 1, (), ("No cells.",))),
            to_latex(tables(sweep([], [], name="empty"))[0]),
        ]
    )
    set_by_latex(body, tmp_path)
    commands = sum(body.count(command) for command in ("\\input", "\\write", "\\end{document}", "^^"))
    assert commands == 0
    figure(f"{len(HOSTILE)} hostile names, {len(body):,} characters compile, {commands} commands of theirs")


WRITTEN = re.compile(
    r"""(?: [A-Za-z0-9 .,:;!?/()=+@-] | [–—‘’“”…§\u00C0-\u017F]
        | '
        | \\[{}$&\#_%]
        | \\[A-Za-z]+\{\} | \\symbol\{34\} | \{[\[\]*]\} | \{\}
        | \$\\?[A-Za-z-]+\$
        )*""",
    re.VERBOSE,
)


def test_numbers_of_a_list_are_not_broken() -> None:
    numbers = "parameters (10,943, 10,719, 11,167, 11,391)."
    assert breakable_tex(numbers) == numbers


@given(any_text)
@example("".join(HOSTILE))
def test_any_text_is_written_with_nothing_but_letters_and_signs_of_ours(name: str) -> None:
    assert WRITTEN.fullmatch(tex(name)), tex(name)
    assert WRITTEN.fullmatch(breakable_tex(name))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Vaswani et al. (2017), Eq. 4", "Vaswani et al. (2017), Eq. 4"),
        ("d_model = 50%", "d\\_model = 50\\%"),
        ("a -- b''", "a -{}- b'{}'"),
        ("Kendall's τ ≥ 1", "Kendall's $\\tau$ $\\ge$ 1"),
        ("Ångström", "Ångström"),
        ("Wąż", "WU+0105ż"),
        ("W_q ≠ W_k", "W\\_q $\\ne$ W\\_k"),
        ("日", "U+65E5"),
        ("\x1b", "\\textbackslash{}x1b"),
    ],
)
def test_names_stay_readable(name: str, written: str) -> None:
    assert tex(name) == written


def test_every_label_of_a_shipped_grid_is_set_without_numbers_of_letters() -> None:
    plans = [load_grid(name) for name in names()]
    labels = {label for plan in plans for cell in plan.cells for label in cell.labels.values()}
    labels |= {table.caption for plan in plans for table in plan.tables}
    assert len(labels) > 100 and not [label for label in labels if "U+" in tex(label)]
