"""What a column holds is said once: SQL refuses to write what Python would refuse to read."""

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.store.columns import Hash, Json, Number, Packed, Time, UnexpectedValueError, Whole, Word, Words, checked
from kdx.store.records import RunState
from kdx.store.schema import run

TYPES = {
    "whole": Whole(0, 1000),
    "bits": Whole(-(2**63)),
    "number": Number(),
    "time": Time(),
    "words": Words(5),
    "hash": Hash(4),
    "word": Word(RunState, "lost"),
    "packed": Packed(5),
    "json": Json(20, lambda found: True, "an object"),
}
values = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 1002),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.text("0123456789abcdefg", max_size=6),
    st.binary(max_size=8),
    st.sampled_from(["lost", "completed", "{}", '{"a": 1}', "[]", "1", '{"a": NaN}', "{", "null"]),
    st.dictionaries(st.text("ab", max_size=2), st.integers(0, 9)).map(json.dumps),
)


@given(st.sampled_from(sorted(TYPES)), values)
def test_sql_and_python_hold_the_same_of_every_value(name, value):
    kind = TYPES[name]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (x)")  # of no type, so that the value stays what it is
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        (stored, holds) = connection.execute(f"SELECT x, coalesce({kind.condition('x')}, 0) FROM t").fetchone()
    try:
        kind.check(stored)
        read = True
    except UnexpectedValueError:
        read = False
    assert read == bool(holds)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0/../../precious", "'0/../../precious'"),
        (-1, "-1"),
        (2.0, "2.0"),
        ("x" * 1000, f"'{'x' * 59}…"),
        (b"\0", r"b'\x00'"),
    ],
)
def test_a_refusal_names_column_value_and_what_is_allowed(value, told):
    with pytest.raises(UnexpectedValueError) as caught:
        checked(run.c.generation, value)
    assert str(caught.value) == (
        f"run.generation is {told}, which kdx never writes there; allowed: a whole number from 0 to 1,000,000,000"
    )


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{", "[]", '{"a": Infinity}', 3, None])
def test_json_that_is_none_or_no_object_is_refused(text):
    with pytest.raises(UnexpectedValueError):
        Json(10**6, lambda found: True, "an object").check(text)


def test_json_of_another_form_is_refused():
    kind = Json(100, lambda found: "a" in found, "an object with a")
    assert kind.check('{"a": 1}') == {"a": 1}
    with pytest.raises(UnexpectedValueError, match="allowed: an object with a"):
        kind.check('{"b": 1}')
