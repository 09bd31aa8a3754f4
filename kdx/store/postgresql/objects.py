"""The objects of a database of PostgreSQL: how the schema is worded, what is there, and which objects kdx refuses."""

from collections.abc import Iterator
from typing import Any

import psycopg
from sqlalchemy.ext.compiler import compiles

from kdx.errors import DatabaseError
from kdx.store.schema import among, is_object, metadata, now
from kdx.store.views import FINAL_STATE_TRIGGER, FINAL_STATES

_OF_NO_EXTENSION = """
    NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
"""
_OBJECTS = f"""
SELECT c.relname, c.relkind::text FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OF_NO_EXTENSION}
"""
_TRIGGERS = """
SELECT t.tgname, c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND c.relname = ANY(%s)
"""
_RULES = """
SELECT r.rulename, c.relname FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
WHERE c.relnamespace = current_schema()::regnamespace AND r.rulename <> '_RETURN' AND c.relname = ANY(%s)
"""
_CONSTRAINTS = """
SELECT conname FROM pg_constraint WHERE convalidated AND connamespace = current_schema()::regnamespace
"""
_KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}

# Indices of some of the rows have the condition that the schema gives them for SQLite.
for _table in metadata.tables.values():
    for _index in _table.indexes:
        _index.dialect_options["postgresql"]["where"] = _index.dialect_options["sqlite"]["where"]


@compiles(now, "postgresql")
def _now(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(is_object, "postgresql")
def _is_object(element: is_object, compiler: Any, **options: Any) -> str:
    return f"json_typeof({element.column}) = 'object'"


@compiles(among, "postgresql")
def _among(element: among, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({column} = ANY ({values}))"


class PostgresqlDialect:
    """Implements `kdx.store.views.Dialect`.

    A column has one type here, so a number is NULL where there is anything else, such as a word of a newer kdx.
    """

    join = "JOIN"

    def parsed(self, column: str) -> str:
        return f"{column}::json"

    def word(self, column: str, path: str) -> str:
        return f"{_at(column, path)} #>> '{{}}'"

    def whole(self, column: str, path: str) -> str:
        return _number(_at(column, path), "bigint")

    def real(self, column: str, path: str) -> str:
        return _number(_at(column, path), "double precision")

    def joined(self, column: str, path: str, separator: str) -> str:
        at = _at(column, path)
        return f"""coalesce(CASE json_typeof({at})
        WHEN 'array' THEN (
            SELECT string_agg(word, '{separator}' ORDER BY place)
            FROM json_array_elements_text({at}) WITH ORDINALITY AS listed (word, place)
        )
        ELSE {at} #>> '{{}}'
    END, 'none')"""


def _at(column: str, path: str) -> str:
    """The JSON at a path."""
    return f"({column} #> '{{{path.replace('.', ',')}}}')"


def _number(at: str, kind: str) -> str:
    return f"CASE json_typeof({at}) WHEN 'number' THEN ({at} #>> '{{}}')::numeric::{kind} END"


TRIGGER = f"""
CREATE FUNCTION {FINAL_STATE_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a run never leaves a final state' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER {FINAL_STATE_TRIGGER} BEFORE UPDATE OF state ON run FOR EACH ROW
WHEN (OLD.state IN {FINAL_STATES} AND NEW.state <> OLD.state) EXECUTE FUNCTION {FINAL_STATE_TRIGGER}()
"""


def objects(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Name → kind of every table and view of the schema in which kdx works, but for those of extensions."""
    return {name: _KINDS[kind] for name, kind in connection.execute(_OBJECTS).fetchall()}


def refuse_foreign_objects(
    connection: psycopg.Connection[Any], tables: frozenset[str], views: frozenset[str], place: str
) -> None:
    """Check that tables are tables and views are views, and that no trigger or rule of somebody else acts on them.

    What a view says is not checked: who may replace it owns the tables that it reads. On SQLite, anybody may have made
    the file.

    Raises:
        DatabaseError: something is not as kdx makes it.
    """
    for name, kind in objects(connection).items():
        if (name in tables and kind != "table") or (name in views and kind != "view"):
            raise _foreign(place, f"its `{name}` is a {kind}")
    for what, statement in (("trigger", _TRIGGERS), ("rule", _RULES)):
        for name, table in connection.execute(statement, [sorted(tables | views)]).fetchall():
            if (what, name, table) != ("trigger", FINAL_STATE_TRIGGER, "run"):
                raise _foreign(place, f"its {what} `{name[:60]}` on {table} is not one that kdx makes")


def missing(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Describes what a database lacks of the tables, trigger and checks of kdx. Views are made anew."""
    known = objects(connection)
    yield from (f"the table {name} is missing" for name in metadata.tables if name not in known)
    if (FINAL_STATE_TRIGGER, "run") not in connection.execute(_TRIGGERS, [["run"]]).fetchall():
        yield f"the trigger {FINAL_STATE_TRIGGER}, which keeps final states final, is missing"
    there = {name for (name,) in connection.execute(_CONSTRAINTS).fetchall()}
    checks = {
        f"{table.name}_{column.name}" for table in metadata.tables.values() for column in table.c if column.constraints
    }
    if lost := sorted(checks - there):
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield f"column checks are missing: {lost[0]}{more}"


def _foreign(place: str, problem: str) -> DatabaseError:
    return DatabaseError(
        f"this database was not made by kdx alone: {problem}",
        place=place,
        hint="do not use it; if it is yours, drop what is not of kdx, or take the database back from a copy",
    )
