"""What messages on databases of every kind have in common, and how a user names a database."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

from kdx.errors import DatabaseError

POSTGRESQL = "postgresql+psycopg://USER@HOST/DATABASE"

FILES = "KDX_FILES"
"""Environment variable with the folder that holds a folder of run files for each database, such as one that all
machines share."""

ADDRESSES = f"a file, sqlite:///FILE, {POSTGRESQL}"
"""The addresses that `kdx.store.database.database_at` understands, in words."""

OTHER_DATABASE = "nothing was changed; name the results database with --db or KDX_DB"


class DamagedDatabaseError(DatabaseError):
    """The database is one of kdx, but its parts contradict each other, or some are missing."""


class TransactionLostError(DatabaseError):
    """A transaction was broken off from outside: nothing of it stands, or, at its commit, all of it may."""


def without_password(address: str | Path) -> str:
    """An address without its password, so that it may be shown."""
    # Not by a URL parser, since text that is no URL may have a password too.
    hidden = re.sub(r"(://[^:/@]*:).*(?=@)", r"\1***", str(address))
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)


def set_password_apart(address: str) -> str:
    """The address of a server without its password, which goes to PGPASSWORD for this process and its children.

    So no message, log or record that has the address has the password too.
    """
    parts = re.fullmatch(r"(postgresql(?:\+\w+)?://[^:/@]*):(.*)(@[^@]*)", address, re.DOTALL)
    if parts is None:
        return address
    before, password, after = parts.groups()
    os.environ["PGPASSWORD"] = unquote(password)
    return before + after


def another_application(name: str) -> DatabaseError:
    """The error for a database that does not belong to kdx."""
    return DatabaseError("this database belongs to another application", place=name, hint=OTHER_DATABASE)


def edited(place: str, problem: str) -> DatabaseError:
    """The error for a row that holds what kdx never writes, or that contradicts its hash."""
    hint = "somebody edited the database or made it up; kdx db check lists every such row"
    return DatabaseError(problem, place=place, hint=hint)
