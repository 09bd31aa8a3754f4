"""What a column holds is said alike in SQL and in Python: one refuses to write what the other would refuse to read."""

import json
import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from kdx.store.columns import Hash, Json, Number, OneWordOf, Packed, ShortText, Time, UnexpectedValueError, Whole
from kdx.store.records import RunState
from kdx.store.sqlite.expressions import condition_of

TYPES = {
    "whole": Whole(0, 1000),
    "bits": Whole(-(2**63)),
    "number": Number(),
    "time": Time(),
    "words": ShortText(5),
    "hash": Hash(4),
    "word": OneWordOf(RunState, "lost"),
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
        (stored, holds) = connection.execute(f"SELECT x, coalesce({condition_of(kind, 'x')}, 0) FROM t").fetchone()
    try:
        kind.check(stored)
        read = True
    except UnexpectedValueError:
        read = False
    assert read == bool(holds)
