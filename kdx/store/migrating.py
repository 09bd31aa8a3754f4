"""Creates the tables and views of a database, or brings those of an earlier schema to the one of this kdx.

Both happen in one transaction of the first process that opens the database to write.
"""

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, insert

from kdx.errors import DatabaseError
from kdx.store.backend import Database
from kdx.store.refusals import another_application
from kdx.store.schema import identity, metadata
from kdx.store.version import REVISION, VERSION_TABLE

MIGRATIONS = "kdx.store:migrations"
"""The place of the scripts, as Alembic names it."""


def revision_of(connection: Connection, database: Database) -> str | None:
    """Return the schema of a database; None if the database is empty.

    Raises:
        DatabaseError: the database has no tables of kdx, or those of a newer kdx, or what could act in their place.
    """
    tables = database.objects(connection)
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise another_application(database.name)
    recorded = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()
    if len(recorded) != 1 or not re.fullmatch(r"\d{4}", str(recorded[0]), re.ASCII):
        raise another_application(database.name)
    revision = str(recorded[0])
    if revision > REVISION:
        raise DatabaseError(
            f"written by a newer kdx: its schema is {revision}, this kdx knows {REVISION}; nothing was changed",
            place=database.name,
            hint="upgrade kdx",
        )
    return revision


def migrate(database: Database) -> Path | None:
    """Bring the database to the schema of this kdx, and return the copy that was made before; None if it made none.

    Raises:
        DatabaseError, StorageError: nothing was changed.
    """
    copy: Path | None = None
    try:
        with database.migrating() as connection:
            # Checked again under the lock, since another process may have been first.
            revision = revision_of(connection, database)
            if revision is None:
                create(connection, database.trigger, database.views.values())
            elif revision != REVISION:
                copy = database.keep_copy(REVISION)
                _upgrade(connection, database)
    except BaseException:
        # Nothing was changed, so the copy is of no use.
        if copy is not None:
            with suppress(OSError):
                copy.unlink()
        raise
    return copy


def create(connection: Connection, trigger: str, views: Iterable[str]) -> None:
    """Make the tables, the trigger and the views of a new database, and mark it with the schema of this kdx."""
    metadata.create_all(connection)
    for statement in (trigger, *views):
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=secrets.token_hex(16)))
    # As Alembic makes and reads it.
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISION}')")


def _upgrade(connection: Connection, database: Database) -> None:
    """Run the missing revisions. Views are made anew after them, so no revision needs to know their text."""
    # Imported here, since Alembic takes 0.2 s to import and is seldom needed.
    from alembic import command
    from alembic.config import Config

    for name in database.views:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    for statement in database.views.values():
        connection.exec_driver_sql(statement)
