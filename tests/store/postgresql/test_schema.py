"""The migrations make on PostgreSQL what the metadata says, down to conditions, defaults and keys."""

from typing import Any

import pytest
from postgresql_server import PostgresqlServer
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql as dialects
from sqlalchemy.schema import CreateTable

from kdx.store.backends import backend_of
from kdx.store.postgresql import expressions  # noqa: F401, since it registers PostgreSQL's SQL with SQLAlchemy
from kdx.store.schema import metadata
from kdx.store.version import VERSION_TABLE

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
    (SELECT collname FROM pg_collation WHERE oid = a.attcollation)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> %s
"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> %s
"""
INDICES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> %s"


def described(server: PostgresqlServer, address: str) -> dict[str, list[Any]]:
    with server.connected(address.rpartition("/")[2]) as connection:
        return {
            statement: sorted(map(str, connection.execute(statement, [VERSION_TABLE]).fetchall()))
            for statement in (COLUMNS, CONSTRAINTS, INDICES)
        }


def test_migrations_make_what_the_metadata_says(postgresql_server: PostgresqlServer, database, address):
    migrated = described(postgresql_server, address)
    database.close()
    postgresql_server.execute(
        f"DROP DATABASE {address.rpartition('/')[2]} WITH (FORCE)", f"CREATE DATABASE {address.rpartition('/')[2]}"
    )
    url, arguments = backend_of(address).url()
    engine = create_engine(url, **arguments)
    metadata.create_all(engine)
    engine.dispose()
    whole = described(postgresql_server, address)
    for statement in whole:
        assert migrated[statement] == whole[statement]
    assert len(migrated[CONSTRAINTS]) > 150


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_is_made_without_words_of_another_dialect(table):
    made = str(CreateTable(table).compile(dialect=dialects.dialect()))
    assert "ROWID" not in made and "typeof(" not in made.replace("json_typeof(", "")
