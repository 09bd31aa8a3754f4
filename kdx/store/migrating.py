"""Bringing a database to the schema of this kdx: once, in one transaction, by whoever opens it to write first."""

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
    """The schema that a database has; None: it is empty.

    Raises:
        DatabaseError: it has no tables of kdx, or those of a newer one.
    """
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
    """Runs the migrations that a database lacks; the copy of it that was made before, if there was anything to copy.

    Raises:
        DatabaseError, StorageError: nothing was changed.
    """
    # Imported here: Alembic costs 0.2 s and is seldom needed.
    from alembic import command
    from alembic.config import Config

    copy: Path | None = None
    try:
        with backend.migrating() as connection:
            # Asked again under the lock, for another process may have come first.
            revision = revision_of(connection, backend)
            if revision == REVISION:
                return None
            if revision is not None:
                copy = backend.keep_copy(REVISION)
            config = Config()
            config.set_main_option("script_location", MIGRATIONS)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except BaseException:
        # Nothing was changed, so the copy is of no use.
        if copy is not None:
            with suppress(OSError):
                copy.unlink()
        raise
    return copy
