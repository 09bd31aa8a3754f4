"""Data to stdout, talk to stderr, and nothing that can drive a terminal."""

import json
import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.cli.console import error, inert, out, out_json, say
from kdx.errors import DatabaseError, Faults, KdxError


@given(st.text())
def test_no_text_can_drive_a_terminal(text):
    told = inert(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in told if sign != "\n")
    assert told.count("\n") == text.count("\n")


def test_lines_and_their_indentation_stay(figure):
    told = inert("a\n  b\x1b[2J\n")
    assert told == "a\n  b\\x1b[2J\n"
    figure(f"what clears a screen is told as {told[5:-1]}")


def test_talk_goes_to_stderr_and_data_to_stdout(capsys):
    say("talk\x07")
    out("data")
    out("line\n")
    assert capsys.readouterr() == ("data\nline\n", "talk\\x07\n")


def test_a_table_is_drawn_without_a_terminal_in_plain_text(capsys):
    from rich.table import Table

    table = Table("a", box=None)
    table.add_row("b")
    out(table)
    told = capsys.readouterr().out
    assert [line.strip() for line in told.splitlines()] == ["a", "b"] and "\x1b" not in told


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


def nulled(value):
    if isinstance(value, dict):
        return {key: nulled(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [nulled(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(json_values)
def test_json_is_json_with_null_for_what_is_no_number(value):
    with pytest.MonkeyPatch.context() as patch:
        told = []
        patch.setattr("kdx.cli.console.out", told.append)
        out_json(value)
    assert json.loads(told[0], parse_constant=pytest.fail) == nulled(value)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (KdxError("wrong", hint="mend it"), "error: wrong\n  hint: mend it\n"),
        (DatabaseError("absent", place="runs.db"), "error: runs.db: absent\n"),
        (Faults([KdxError("one", place="g:1:1"), KdxError("two", place="g:2:1")]), "g:1:1: one\ng:2:1: two\n"),
        (Faults([KdxError("one", place="g:1:1", hint="h")]), "g:1:1: one\n  hint: h\n"),
    ],
)
def test_one_problem_is_an_error_and_those_of_a_grid_lead_with_their_places(capsys, fault, told):
    error(fault)
    assert capsys.readouterr() == ("", told)
