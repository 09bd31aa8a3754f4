"""LaTeX: a table that can be pasted into a paper and compiles, whatever its names are."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sweeps import cell, run, scored, seeded, sweep
from typeset import set_by_latex

from kdx.report.latex import listing_to_latex, tex, to_latex
from kdx.report.listings import Listing
from kdx.report.table import Table
from kdx.report.tables import tables
from kdx.store.records import RunState

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


def both_tasks() -> Table:
    cells = [
        cell(f"{task}-{kernel}-{position}", task, kernel=kernel, position=position)
        for task in ("translation", "prediction")
        for kernel in ("exponential", "rbf")
        for position in ("none", "product")
    ]
    runs = []
    for index, each in enumerate(cells):
        good = 5.0 + 6 * (index % 4)
        runs += scored(each.id, (good, good + 0.31), (good - 1, good - 0.7), (good - 2, good + 0.1))
    asked = {"name": "both tasks", "caption": "Kernels", "rows": ["position"], "columns": ["task", "kernel"]}
    return tables(sweep(cells, runs, tables=[asked]))[0]


def test_headers_are_nested_and_numbers_line_up() -> None:
    body = to_latex(both_tasks()).partition("\\toprule\n")[2].partition("\\bottomrule")[0]
    assert (
        body
        == """\
 & \\multicolumn{4}{c}{translation} & \\multicolumn{4}{c}{prediction} \\\\
\\cmidrule(lr){2-5}\\cmidrule(lr){6-9}
 & \\multicolumn{4}{c}{bleu $\\uparrow$} & \\multicolumn{4}{c}{perplexity $\\downarrow$} \\\\
\\cmidrule(lr){2-5}\\cmidrule(lr){6-9}
position & \\multicolumn{2}{c}{exponential} & \\multicolumn{2}{c}{rbf} & \\multicolumn{2}{c}{exponential} & \
\\multicolumn{2}{c}{rbf} \\\\
\\midrule
none & 5.31 & \\phantom{0}4.90 $\\pm$ 0.53 & 17.31 & 16.90 $\\pm$ 0.53 & \\textbf{5.10} & \
\\phantom{0}4.90 $\\pm$ 0.53 & \\textbf{17.10} & 16.90 $\\pm$ 0.53 \\\\
product & \\textbf{11.31} & 10.90 $\\pm$ 0.53 & \\textbf{23.31} & 22.90 $\\pm$ 0.53 & 11.10 & \
10.90 $\\pm$ 0.53 & 23.10 & 22.90 $\\pm$ 0.53 \\\\
"""
    )


def test_the_caption_says_what_markdown_says_and_the_table_has_a_label() -> None:
    text = to_latex(both_tasks())
    assert text.startswith(
        "\\begin{table}\n\\centering\n\\caption[Kernels]{\\textbf{both tasks}: Kernels. Per cell, the test score of "
        "the seed with the best valid/bleu (translation) or valid/perplexity (prediction); beside it mean $\\pm$ "
        "standard deviation over n = 3 seeds. Bold: best mean of its column. The smallest difference that "
    )
    assert "\n\\label{tab:both-tasks}\n" in text


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


def test_places_without_a_number_stand_over_both_of_their_columns() -> None:
    lines = to_latex(every_kind_of_place()).splitlines()
    assert [line for line in lines if line.startswith(("full", "some", "hole", "memory", "gone"))] == [
        "full & 9.50 & 9.38 $\\pm$ 0.18 (2) \\\\",
        "some & 30.50 & \\phantom{0}\\phantom{0}\\phantom{0}\\phantom{0} \\phantom{0} "
        "\\phantom{0}\\phantom{0}\\phantom{0}\\phantom{0} (1)  1/2 not converge \\\\",
        "hole & \\textendash{} &  \\\\",
        "memory & \\multicolumn{2}{l}{out of memory (1/1)} \\\\",
        "gone & \\multicolumn{2}{l}{not converge (1/2), 1/2 failed} \\\\",
    ]


def test_outer_names_are_not_repeated_and_what_is_near_the_best_is_marked() -> None:
    cells = [cell(f"{k}{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [*seeded("rbfpre", 30.0, 31.0, 32.0), *seeded("rbfpost", 30.5, 31.0, 31.0)]
    text = to_latex(tables(sweep(cells, runs, axes=["kernel", "norm"]))[0])
    assert "\nrbf & pre & \\textbf{32.00} & 31.00 $\\pm$ 1.00 \\\\\n & post & 31.00\\rlap{$^\\dagger$} & " in text
    assert "\n\\addlinespace\nexponential & pre & " in text
    assert "$\\dagger$: not distinguishable from it" in text


def test_a_negative_score_has_a_minus() -> None:
    asked = [{"name": "t", "rows": ["kernel"]}]
    text = to_latex(tables(sweep([cell("a", kernel="rbf")], seeded("a", -1.5), tables=asked))[0])
    assert "\nrbf & $-$1.50 \\\\\n" in text


def test_statistics_and_published_values_are_floats_of_their_own() -> None:
    text = to_latex(both_tasks(), statistics=True)
    assert text.count("\\begin{table}") == 3
    assert ": each cell over its seeds. 95\\% interval of" in text
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(labels) == 3 == len(set(labels))


def test_all_of_it_compiles_with_the_most_hostile_names(tmp_path: Path, figure) -> None:
    labels = [{"approach": name, "[x]": name[::-1]} for name in HOSTILE]
    cells = [cell(f"c{i}", labels=label, training={"steps": i + 1}) for i, label in enumerate(labels)]
    runs = [one for each in cells for one in seeded(each.id, 1.0, 2.0)]
    asked = [
        {"name": name, "caption": name, "rows": ["approach", "[x]"], "columns": ["training.steps"]}
        for name in HOSTILE[:2]
    ]
    hostile = tables(sweep(cells, runs, tables=asked))
    body = "\n".join(
        [
            *(to_latex(one, statistics=True) for one in (*hostile, both_tasks(), every_kind_of_place())),
            listing_to_latex(Listing("a claim", ("a claim",), ("a",), 1, (), ("No cells.",))),
            to_latex(tables(sweep([], [], name="empty"))[0]),
        ]
    )
    set_by_latex(body, tmp_path)
    commands = sum(body.count(command) for command in ("\\input", "\\write", "\\end{document}", "^^"))
    assert commands == 0
    figure(f"{len(HOSTILE)} hostile names, {len(body):,} characters compile, {commands} commands of theirs")


WRITTEN = re.compile(
    r"""(?: [A-Za-z0-9 .,:;!?/()=+@-]
        | '
        | \\[{}$&\#_%]
        | \\[A-Za-z]+\{\} | \\symbol\{34\} | \{[\[\]*]\} | \{\}
        | \$\\?[A-Za-z-]+\$
        | (?:\{\\(?:[`'^~=."]|[uvHrdc][ ]))+ (?:[A-Za-z]|\\i\{\}) \}+
        )*""",
    re.VERBOSE,
)


@given(any_text)
@example("".join(HOSTILE))
def test_any_text_is_written_with_nothing_but_letters_and_signs_of_ours(name: str) -> None:
    assert WRITTEN.fullmatch(tex(name)), tex(name)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Vaswani et al. (2017), Eq. 4", "Vaswani et al. (2017), Eq. 4"),
        ("d_model = 50%", "d\\_model = 50\\%"),
        ("a -- b''", "a -{}- b'{}'"),
        ("Kendall's τ ≥ 1", "Kendall's $\\tau$ $\\ge$ 1"),
        ("Ångström", '{\\r A}ngstr{\\"o}m'),
        ("日", "U+65E5"),
        ("\x1b", "\\textbackslash{}x1b"),
    ],
)
def test_names_stay_readable(name: str, written: str) -> None:
    assert tex(name) == written
