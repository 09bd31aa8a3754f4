"""No name can drive the terminal or change the text around it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.sanitize import sanitize, sanitize_lines

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
    assert sanitize(name) == told


@given(any_text)
def test_nothing_active_is_left_of_any_text(name: str) -> None:
    told = sanitize(name)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in told)
    assert sanitize(told) == told


@given(st.text())
def test_no_text_can_drive_a_terminal(text):
    told = sanitize_lines(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in told if sign != "\n")
    assert told.count("\n") == text.count("\n")


def test_lines_and_their_indentation_stay(figure):
    told = sanitize_lines("a\n  b\x1b[2J\n")
    assert told == "a\n  b\\x1b[2J\n"
    figure(f"what clears a screen is told as {told[5:-1]}")
