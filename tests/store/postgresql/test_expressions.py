"""What a column holds is said alike in SQL and in Python: one refuses to write what the other would refuse to read."""

import json

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgresql_server import PostgresqlServer
from sqlalchemy import select
from sqlalchemy.dialects import postgresql

from kdx.store.columns import Flag, Hash, Json, Number, OneWordOf, Packed, ShortText, Time, UnexpectedValueError, Whole
from kdx.store.postgresql.connecting import adapters
from kdx.store.postgresql.expressions import condition_of
from kdx.store.records import RunState
from kdx.store.schema import now

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
objects = st.dictionaries(st.text("ab", max_size=2), st.integers(0, 9)).map(json.dumps)
TYPES = {
    "whole": (Whole(0, 1000), "bigint", st.integers(-2, 1002) | st.integers(-(2**63), 2**63 - 1)),
    "bits": (Whole(-(2**63)), "bigint", st.integers(-(2**63), 2**63 - 1)),
    "number": (Number(), "double precision", st.floats()),
    "time": (Time(), "double precision", st.floats() | st.floats(-1, 1e12)),
    "flag": (Flag(), "boolean", st.booleans()),
    "words": (ShortText(5), "text", texts),
    "hash": (Hash(4), "varchar", st.text("0123456789abcdefg\n", max_size=6)),
    "word": (OneWordOf(RunState, "lost"), "varchar", st.sampled_from(["lost", "completed", "other", ""])),
    "packed": (Packed(5), "bytea", st.binary(max_size=8)),
    "json": (Json(20, lambda found: True, "an object"), "json", objects | st.sampled_from(["[]", "1", "null"])),
}


@pytest.fixture(scope="module")
def connection(postgresql_server: PostgresqlServer):
    where = {"host": "127.0.0.1", "port": postgresql_server.port, "user": "kdx", "dbname": "postgres"}
    with psycopg.connect(**where, autocommit=True, context=adapters()) as connection:
        yield connection


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
def test_sql_and_python_hold_the_same_of_every_value(connection, name: str, data):
    kind, type_, values = TYPES[name]
    value = data.draw(values)
    statement = f"SELECT x, coalesce({condition_of(kind, 'x')}, false) FROM (SELECT %s::{type_} AS x) AS t"
    stored, holds = connection.execute(statement, [value]).fetchone()
    try:
        kind.check(stored)
        read = True
    except UnexpectedValueError:
        read = False
    assert read == bool(holds)


def test_a_type_without_a_condition_is_a_fault():
    with pytest.raises(TypeError, match="there is no condition"):
        condition_of(object(), "x")


def test_the_time_is_of_the_moment():
    assert "clock_timestamp" in str(select(now()).compile(dialect=postgresql.dialect()))
