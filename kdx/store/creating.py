"""Creates the tables and views of a new database, and refuses a database with another schema."""

import re
import secrets
from collections.abc import Iterable

from sqlalchemy import Connection, insert

from kdx.errors import DatabaseError
from kdx.store.backend import Database
from kdx.store.refusals import another_application
from kdx.store.schema import identity, metadata
from kdx.store.version import REVISION, VERSION_TABLE


def is_new(connection: Connection, database: Database) -> bool:
    """Return whether a database is empty.

    Raises:
        DatabaseError: it has no tables of kdx, or those of another schema, or what could act in their place.
    """
    tables = database.objects(connection)
    if not tables:
        return True
    if VERSION_TABLE not in tables:
        raise another_application(database.name)
    recorded = connection.exec_driver_sql(f"SELECT revision FROM {VERSION_TABLE}").scalars().all()
    if len(recorded) != 1 or not re.fullmatch(r"\d{4}", str(recorded[0]), re.ASCII):
        raise another_application(database.name)
    if recorded[0] != REVISION:
        raise DatabaseError(
            f"written by another version of kdx: its schema is {recorded[0]}, this kdx knows {REVISION};"
            " nothing was changed",
            place=database.name,
            hint="use the kdx that wrote it",
        )
    return False


def create(connection: Connection, statements: Iterable[str]) -> None:
    """Make the tables of a new database, and mark it with the schema of this kdx.

    Args:
        statements: make what else there is, such as the views.
    """
    metadata.create_all(connection)
    for statement in statements:
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=secrets.token_hex(16)))
    # As Alembic makes and reads it, so that it can bring later schemas up to date.
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (revision VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISION}')")
