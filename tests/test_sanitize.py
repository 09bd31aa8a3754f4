"""No name can drive the terminal or change the text around it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.sanitize import inert

any_text = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Vaswani et al. (2017), Eq. 4", "Vaswani et al. (2017), Eq. 4"),
        ("日本語 → Ελληνικά", "日本語 → Ελληνικά"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("two\nlines\tand\u2028more", "two lines and more"),
        ("bell\a, null\0", "bell\\x07, null\\x00"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_names_come_out_as_one_plain_line(name: str, told: str) -> None:
    assert inert(name) == told


@given(any_text)
def test_nothing_active_is_left_of_any_text(name: str) -> None:
    told = inert(name)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in told)
    assert inert(told) == told
