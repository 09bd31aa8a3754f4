"""What the schema, its views and its trigger say in the words of SQLite."""

from typing import Any

from sqlalchemy.ext.compiler import compiles

from kdx.store.schema import is_object, now
from kdx.store.views import FINAL_STATE_TRIGGER, FINAL_STATES, VIEWS


@compiles(now, "sqlite")
def _now(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(is_object, "sqlite")
def _is_object(element: is_object, compiler: Any, **options: Any) -> str:
    column = element.column
    return f"CASE WHEN json_valid({column}) THEN json_type({column}) = 'object' ELSE {column} IS NULL END"


class SqliteDialect:
    """Implements `kdx.store.views.Dialect`. SQLite gives a value of JSON the type that it has there."""

    # Crossed, SQLite joins in this order; left to itself it may scan all runs for each cell.
    join = "CROSS JOIN"

    def parsed(self, column: str) -> str:
        return column

    def word(self, column: str, path: str) -> str:
        return f"json_extract({column}, '{_json_path(path)}')"

    whole = real = word

    def joined(self, column: str, path: str, separator: str) -> str:
        listed = f"SELECT group_concat(value, '{separator}') FROM json_each({column}, '{_json_path(path)}')"
        return f"coalesce(({listed}), 'none')"


def _json_path(path: str) -> str:
    return "$" + "".join(f'."{step}"' for step in path.split("."))


VIEW_STATEMENTS = tuple(view.statement(SqliteDialect()) for view in VIEWS)
"""Create the views; SQLite keeps them word by word."""

TRIGGER = (
    f"CREATE TRIGGER {FINAL_STATE_TRIGGER} BEFORE UPDATE OF state ON run "
    f"WHEN OLD.state IN {FINAL_STATES} AND NEW.state <> OLD.state "
    "BEGIN SELECT RAISE(ABORT, 'a run never leaves a final state'); END"
)
