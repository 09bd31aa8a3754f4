"""Migrates a database to the schema of this kdx, in one transaction of the first process that opens it to write."""

import re
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from kdx.errors import DatabaseError
from kdx.store.backend import Backend, another_application
from kdx.store.version import REVISION, VERSION_TABLE

MIGRATIONS = "kdx.store:migrations"
"""Where Alembic finds the scripts."""


def revision_of(connection: Connection, backend: Backend) -> str | None:
    """The schema of a database; None if the database is empty.

    Raises:
        DatabaseError: the database has no tables of kdx, or those of a newer kdx, or what could act in their place.
    """
    backend.refuse_foreign(connection)
    tables = backend.tables(connection)
    if not tables:
        return None
    if VERSION_TABLE not in tables:
        raise another_application(backend.name)
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()
    if len(found) != 1 or not re.fullmatch(r"\d{4}", str(found[0]), re.ASCII):
        raise another_application(backend.name)
    revision = str(found[0])
    if revision > REVISION:
        raise DatabaseError(
            f"written by a newer kdx: its schema is {revision}, this kdx knows {REVISION}; nothing was changed",
            place=backend.name,
            hint="upgrade kdx",
        )
    return revision


def migrate(backend: Backend) -> Path | None:
    """Runs the missing migrations and returns the copy that was made before, if there was anything to copy.

    Raises:
        DatabaseError, StorageError: nothing was changed.
    """
    copy: Path | None = None
    try:
        with backend.migrating() as connection:
            # Checked again under the lock, since another process may have been first.
            revision = revision_of(connection, backend)
            if revision == REVISION:
                return None
            if revision is not None:
                copy = backend.keep_copy(REVISION)
            run_migrations(connection)
    except BaseException:
        # Nothing was changed, so the copy is of no use.
        if copy is not None:
            with suppress(OSError):
                copy.unlink()
        raise
    return copy


def run_migrations(connection: Connection, revision: str = "head") -> None:
    """Runs the missing migrations up to this schema, in the transaction of the connection."""
    # Imported here, since Alembic takes 0.2 s to import and is seldom needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
