"""What the schema, its views and its trigger say in the words of PostgreSQL."""

from typing import Any

from sqlalchemy.ext.compiler import compiles

from kdx.store.schema import is_object, now
from kdx.store.views import FINAL_STATE_TRIGGER, FINAL_STATES, VIEWS


@compiles(now, "postgresql")
def _now(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(is_object, "postgresql")
def _is_object(element: is_object, compiler: Any, **options: Any) -> str:
    return f"json_typeof({element.column}) = 'object'"


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


VIEW_STATEMENTS = tuple(view.statement(PostgresqlDialect()) for view in VIEWS)

TRIGGER = f"""
CREATE FUNCTION {FINAL_STATE_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a run never leaves a final state' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER {FINAL_STATE_TRIGGER} BEFORE UPDATE OF state ON run FOR EACH ROW
WHEN (OLD.state IN {FINAL_STATES} AND NEW.state <> OLD.state) EXECUTE FUNCTION {FINAL_STATE_TRIGGER}()
"""
