"""Rows go to PostgreSQL and come back as they are stored, as far as that can be seen without one."""

from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql

from kdx.store.postgresql import expressions  # noqa: F401, since it teaches SQLAlchemy
from kdx.store.schema import metric, run
from kdx.store.verbatim import FromUtf8, KeysGoOn, Utf8


def sql(statement: object) -> str:
    return str(statement.compile(dialect=postgresql.dialect()))  # type: ignore[attr-defined]


def test_texts_are_written_from_their_bytes_and_json_as_such():
    text = sql(update(metric).values(name=FromUtf8("new_name", metric.c.name.type)))
    assert text == "UPDATE metric SET name=convert_from(%(new_name)s, 'UTF8')"
    text = sql(update(run).values(data_facts=FromUtf8("new_facts", run.c.data_facts.type)))
    assert text == "UPDATE run SET data_facts=CAST(convert_from(%(new_facts)s, 'UTF8') AS JSON)"


def test_texts_are_read_as_bytes():
    assert "convert_to(CAST(run.data_facts AS TEXT), 'UTF8')" in sql(select(Utf8(run.c.data_facts)))


def test_a_sequence_follows_the_keys_that_are_there():
    assert sql(KeysGoOn(run.c.id)) == (
        "SELECT setval(pg_get_serial_sequence('run', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM run), false)"
    )
