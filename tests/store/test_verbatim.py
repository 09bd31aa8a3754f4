"""Rows are read and written as they are stored."""

import math

import pytest
from filled import QUIET_NAN, fill
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update
from stored import add_cell

from kdx.errors import DatabaseError
from kdx.store import verbatim
from kdx.store.database import Database
from kdx.store.schema import bits_of, cell, metadata, metric, note, run, search


def rows_of(connection, table) -> list[verbatim.Row]:
    return [row for rows in verbatim.read(connection, table) for row in rows]


def test_rows_that_are_written_again_are_the_same(database: Database, plan_of):
    fill(database, plan_of())
    with database.write() as connection:
        for table in metadata.sorted_tables:
            before = rows_of(connection, table)
            assert before, f"fill leaves {table.name} empty"
            unchanged = connection.begin_nested()
            for other in reversed(metadata.sorted_tables):  # what refers to rows goes first
                connection.execute(delete(other))
                if other is table:
                    break
            assert rows_of(connection, table) == []
            verbatim.write(connection, table, before)
            digests = [verbatim.Digest(table), verbatim.Digest(table)]
            digests[0].add(before)
            digests[1].add(reversed(rows_of(connection, table)))
            assert digests[0] == digests[1], table.name
            assert digests[0].hexdigest() == digests[1].hexdigest()
            unchanged.rollback()


def test_json_keeps_its_spelling(database: Database):
    spelling = b'{"b":1.50,  "a": {"x":1e2}, "a": {}}'
    with database.write() as connection:
        verbatim.write(connection, search, [(b"0" * 32, 1.0, spelling)])
        assert rows_of(connection, search) == [(b"0" * 32, 1.0, spelling)]
        assert connection.scalar(select(search.c.search)) == {"b": 1.5, "a": {}}


def test_a_row_is_replaced(database: Database, sweep_id: int):
    with database.write() as connection:
        first, second, *_ = sorted(rows_of(connection, run))
        places = {column.name: place for place, column in enumerate(run.c)}
        changed = list(first)
        changed[places["error"]] = "zu groß".encode()
        verbatim.replace(connection, run, [tuple(changed)])
        assert sorted(rows_of(connection, run))[:2] == [tuple(changed), second]


def test_what_sqlite_has_no_number_for_is_read_as_its_bits_say(database: Database, plan_of):
    fill(database, plan_of())
    with database.read() as connection:
        numbers = {bits: value for *_, value, bits, _, _ in rows_of(connection, metric)}
    assert math.isnan(numbers[bits_of(QUIET_NAN)])
    assert numbers[bits_of(math.inf)] == math.inf


def test_what_kdx_never_writes_is_refused_with_its_place(database: Database, backend, address):
    add_cell(database)
    backend.execute(address, "UPDATE cell SET id = 'xyz'")
    with pytest.raises(DatabaseError, match=r"cell.id is 'xyz', which kdx never writes there"), database.read() as read:
        rows_of(read, cell)


def test_keys_follow_those_that_were_given(database: Database):
    with database.write() as connection:
        verbatim.write(connection, note, [(41, 1.0, None, None, b"first")])
        verbatim.keys_go_on(connection, metadata.sorted_tables)
        connection.execute(insert(note).values(made=2.0, text="second"))
        assert sorted(connection.scalars(select(note.c.id))) == [41, 42]


ROWS = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=2)), max_size=6)


@given(ROWS, st.randoms())
def test_a_digest_knows_rows_in_any_order(rows, random):
    one, other = verbatim.Digest(cell), verbatim.Digest(cell)
    shuffled = list(rows)
    random.shuffle(shuffled)
    one.add(rows)
    other.add(shuffled)
    assert one == other


@given(ROWS, ROWS)
def test_other_rows_have_another_digest(rows, others):
    one, other = verbatim.Digest(cell), verbatim.Digest(cell)
    one.add(rows)
    other.add(others)
    assert (one == other) == (sorted(rows) == sorted(others))


def test_an_update_of_one_bit_is_another_digest(database: Database, plan_of):
    fill(database, plan_of())
    digests = []
    with database.write() as connection:
        for bits in (bits_of(0.1), bits_of(0.1) + 1):
            connection.execute(update(metric).where(metric.c.name == "odd/5").values(bits=bits))
            digests.append(verbatim.Digest(metric))
            digests[-1].add(rows_of(connection, metric))
    assert digests[0] != digests[1]
