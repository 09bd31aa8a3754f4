"""Text as LaTeX prints it."""

import re

import pytest
from hypothesis import example, given
from test_latex import HOSTILE, any_text

from kdx.grid.load import load_grid
from kdx.grid.shipped import names
from kdx.report.writers.tex import breakable_tex, tex

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
