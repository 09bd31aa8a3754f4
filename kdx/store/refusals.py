"""What messages on databases of every kind have in common, and how a user names a database."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

from kdx.errors import DatabaseError, KdxError

POSTGRESQL = "postgresql+psycopg://USER@HOST/DATABASE"

FILES = "KDX_FILES"
"""Environment variable with the folder that holds a folder of run files for each database, such as one that all
machines share."""

ADDRESSES = f"a file, sqlite:///FILE, {POSTGRESQL}"
"""The addresses that `kdx.store.database.database_at` understands, in words."""

BY = "--db, KDX_DB, or database= in Python"
"""How a database is named."""
OTHER_DATABASE = f"nothing was changed; name the results database with {BY}"


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


def absent(place: str) -> DatabaseError:
    """The error for an address at which there is nothing."""
    hint = f"kdx sweep makes one; name another with {BY}"
    return DatabaseError("there is no results database here", place=place, hint=hint)


def gone(place: str, hint: str) -> DatabaseError:
    """The error for a database that was deleted or replaced while it was open."""
    hint = f"nothing was written to what is there now; {hint}"
    return DatabaseError("the database was deleted or replaced while it was open", place=place, hint=hint)


def locked(place: str, patience: float) -> DatabaseError:
    """The error for a transaction that waited `patience` seconds for others."""
    problem = f"another process has kept the database locked for {patience:.0f} s"
    return DatabaseError(problem, place=place, hint="end the program that holds it, then try again")


def contradicting(place: str, problem: str) -> DatabaseError:
    """The error for rows that a statement of kdx cannot write beside those that are there."""
    hint = "somebody edited the database or made it up; kdx db check looks it through"
    return DatabaseError(f"its rows contradict each other: {problem}", place=place, hint=hint)


def edited(place: str, problem: str) -> DatabaseError:
    """The error for a row that holds what kdx never writes, or that contradicts its hash."""
    hint = "somebody edited the database or made it up; kdx db check lists every such row"
    return DatabaseError(problem, place=place, hint=hint)


def not_one_select() -> KdxError:
    """The error for a query that is empty, or gives no rows."""
    return KdxError("this is no statement that gives rows", allowed="one SELECT")


def more_than_one() -> KdxError:
    """The error for several statements in one query."""
    return KdxError("these are several statements", allowed="one SELECT", hint="give each to a kdx query of its own")


def not_only_reading() -> KdxError:
    """The error for a query that would write."""
    problem = "kdx query only reads, and this would do something else; nothing was changed"
    return KdxError(problem, allowed="one SELECT, WITH … SELECT, VALUES or EXPLAIN")


def not_understood(problem: str, hint: str | None) -> KdxError:
    """The error for a query that the database does not understand."""
    hint = hint or "kdx query --schema tells tables, views and columns"
    return KdxError(f"the statement is not understood: {problem}", hint=hint)
