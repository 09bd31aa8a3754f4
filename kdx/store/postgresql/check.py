"""Checks a database below the rows of its tables."""

from collections.abc import Iterator
from typing import Any

import psycopg
from sqlalchemy import Connection, ForeignKeyConstraint, and_, exists, func, select

from kdx.store.postgresql.engines import driver_of
from kdx.store.postgresql.objects import has_final_state_trigger, objects
from kdx.store.postgresql.views import VIEW_STATEMENTS
from kdx.store.schema import metadata
from kdx.store.views import FINAL_STATE_TRIGGER


def faults(connection: Connection, most: int) -> Iterator[str]:
    """Describes references to missing rows, and a missing trigger; at most `most` references.

    The server checks its pages itself when it reads them, if its cluster was made with checksums.
    """
    if not has_final_state_trigger(driver_of(connection)):
        yield f"the trigger {FINAL_STATE_TRIGGER}, which keeps final states final, is missing"
    there = objects(driver_of(connection))
    tables = [table for table in metadata.sorted_tables if table.name in there]
    references = (one for table in tables for one in table.foreign_key_constraints if one.referred_table in tables)
    described = (fault for one in references if (fault := _lost(connection, one)))
    yield from (fault for _, fault in zip(range(most), described, strict=False))


_OTHER_VIEWS = """
SELECT name FROM unnest(%s::text[]) AS each (name)
WHERE pg_get_viewdef(to_regclass(quote_ident(current_schema()) || '.' || name))
    IS DISTINCT FROM pg_get_viewdef(to_regclass('pg_temp.' || name))
"""


def other_views(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Describes views that are not as kdx makes them, unless the user may not make temporary views.

    How a server writes the text of a view depends on its version. So the views are made again, for a moment and in this
    session alone, and the server writes both.

    Args:
        connection: one without a transaction.
    """
    try:
        with connection.transaction(force_rollback=True):
            for view in VIEW_STATEMENTS.values():
                connection.execute(view.replace("CREATE VIEW", "CREATE TEMPORARY VIEW", 1).encode())
            found = connection.execute(_OTHER_VIEWS, [list(VIEW_STATEMENTS)]).fetchall()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
        return
    for (name,) in found:
        yield f"the view {name} is not as kdx makes it"


def _lost(connection: Connection, reference: ForeignKeyConstraint) -> str | None:
    table, other = reference.table, reference.referred_table
    named = and_(*(element.parent.is_not(None) for element in reference.elements))
    there = exists().where(*(element.column == element.parent for element in reference.elements))
    count = connection.scalar(select(func.count()).select_from(table).where(named, ~there))
    return f"{count} rows of {table.name} name a row of {other.name} that is not there" if count else None
