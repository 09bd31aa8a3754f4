"""Creates the tables and views of a database, or brings those of an earlier schema to the one of this kdx.

Both happen in one transaction of the first process that opens the database to write.
"""

import re
import secrets
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, insert

from kdx.errors import DatabaseError
from kdx.store.backend import Backend, another_application
from kdx.store.schema import identity, metadata
from kdx.store.version import REVISION, VERSION_TABLE

MIGRATIONS = "kdx.store:migrations"
"""The place of the scripts, as Alembic names it."""


def revision_of(connection: Connection, backend: Backend) -> str | None:
    """Return the schema of a database; None if the database is empty.

    Raises:
        DatabaseError: the database has no tables of kdx, or those of a newer kdx, or what could act in their place.
    """
    backend.refuse_foreign(connection)
    tables = backend.tables(connection)
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise another_application(backend.name)
    recorded = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()
    if len(recorded) != 1 or not re.fullmatch(r"\d{4}", str(recorded[0]), re.ASCII):
        raise another_application(backend.name)
    revision = str(recorded[0])
    if revision > REVISION:
        raise DatabaseError(
            f"written by a newer kdx: its schema is {revision}, this kdx knows {REVISION}; nothing was changed",
            place=backend.name,
            hint="upgrade kdx",
        )
    return revision


def migrate(backend: Backend) -> Path | None:
    """Bring the database to the schema of this kdx, and return the copy that was made before; None if it made none.

    Raises:
        DatabaseError, StorageError: nothing was changed.
    """
    copy: Path | None = None
    try:
        with backend.migrating() as connection:
            # Checked again under the lock, since another process may have been first.
            revision = revision_of(connection, backend)
            if revision is None:
                _create(connection, backend)
            elif revision != REVISION:
                copy = backend.keep_copy(REVISION)
                _upgrade(connection, backend)
    except BaseException:
        # Nothing was changed, so the copy is of no use.
        if copy is not None:
            with suppress(OSError):
                copy.unlink()
        raise
    return copy


def _create(connection: Connection, backend: Backend) -> None:
    metadata.create_all(connection)
    for statement in (backend.trigger, *backend.views.values()):
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=secrets.token_hex(16)))
    # As Alembic makes and reads it.
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISION}')")


def _upgrade(connection: Connection, backend: Backend) -> None:
    """Run the missing revisions. Views are made anew after them, so no revision needs to know their text."""
    # Imported here, since Alembic takes 0.2 s to import and is seldom needed.
    from alembic import command
    from alembic.config import Config

    for name in backend.views:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    for statement in backend.views.values():
        connection.exec_driver_sql(statement)
