"""A module counts by what its statements are, not by how they are written."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.fingerprint import imports_of, tree_text


def told(source: str) -> str:
    return tree_text(ast.parse(source))


@pytest.mark.parametrize(
    "other",
    [
        "x = 1  # one\n\n\ndef f(a, b=2):\n    return a + b\n",
        '"""Of the module."""\nx = 1\ndef f(a, b=2):\n    """Of f."""\n    return a + b\n',
        "x = (1)\ndef f(a,\n      b=2):\n    return (a\n            + b)",
        'x = 1\n"""Of x."""\ndef f(a, b=2): return a + b',
    ],
)
def test_comments_docstrings_and_layout_do_not_count(other):
    assert told(other) == told("x = 1\ndef f(a, b=2):\n    return a + b\n")


@pytest.mark.parametrize(
    "other", ["x = 2\ndef f(a, b=2):\n    return a + b", "x = 1\ndef f(a, b=2):\n    return a - b", "x = 1", "x = 1.0"]
)
def test_a_statement_counts(other):
    assert told(other) != told("x = 1\ndef f(a, b=2):\n    return a + b\n")


@given(st.sampled_from(["1", "1.0", "True", "'1'", "b'1'", "None", "...", "1j"]), st.data())
def test_constants_of_different_kinds_are_different(one, data):
    other = data.draw(st.sampled_from(["1", "1.0", "True", "'1'", "b'1'", "None", "...", "1j"]))
    assert (told(f"x = {one}") == told(f"x = {other}")) is (one == other)


def test_imports_are_found_wherever_they_stand_but_for_types():
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from kdx.report import text
else:
    import kdx.version
import kdx.files
def f():
    try:
        from kdx.attention import smoother
    except ImportError:
        import kdx.errors
"""
    result = set(imports_of(ast.parse(source)))
    assert result == {"kdx.files", "kdx.version", "kdx.attention", "kdx.attention.smoother", "kdx.errors"}
