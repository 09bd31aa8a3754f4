"""Copies a whole database into another one, of the same or another kind, and compares every row of both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, func, literal, select

from kdx.errors import DatabaseError
from kdx.shell import shell_word
from kdx.store import verbatim
from kdx.store.backend import Backend
from kdx.store.backends import backend_of
from kdx.store.database import Database, open_database
from kdx.store.schema import identity, metadata


@dataclass(frozen=True)
class Copied:
    """A copy that is whole."""

    rows: Mapping[str, int]
    """Table → rows, of either database."""
    source: str
    """Its name in messages."""
    target: str
    former_location: Path
    """The path beside which the files of the runs of the source lie."""
    location: Path
    """The same of the copy."""


def copy(
    source: str | Path, target: str | Path, progress: Callable[[int, int], None] = lambda done, of: None
) -> Copied:
    """Copies every table of kdx with every bit of every row, in one transaction of either database.

    The copy has the id of the source, as any copy has, so that files of runs which are copied too are its own. A
    process that is killed leaves an empty database, which can be copied into again.

    Args:
        target: an address at which there is nothing, or an empty database.
        progress: called with the rows that were read or written, and with how many there are, both counted twice: once
            for copying, and once for comparing.

    Raises:
        DatabaseError: see `kdx.store.database.open_database`; or the target has results, or is the source, or what was
            written is not what was read. Then nothing is in the target.
        StorageError: the disk is full or failed; the same.
    """
    with open_database(source, write=False) as former:
        refuse_same(former.backend, backend_of(target))
        with open_database(target, write=True, create=True, upgrade=False) as new:
            with former.read() as reading, new.write() as writing:
                _refuse_results(writing, new)
                rows = _copy(reading, writing, former, new, progress)
                copied_id = reading.scalar(select(identity.c.id))
            # The transactions that follow look for this one.
            new.backend.id = copied_id
            return Copied(rows, former.name, new.name, former.location, new.location)


def refuse_same(source: Backend, target: Backend) -> None:
    """Raises DatabaseError if both are one database: a transaction that writes would wait for the one that reads."""
    one, other = source.file, target.file
    same_file = one and other and one.is_file() and other.is_file() and one.samefile(other)
    if source.name == target.name or same_file:
        raise DatabaseError("this is one database under both names", place=target.name, hint="name another one")


def _refuse_results(connection: Connection, target: Database) -> None:
    for table in metadata.sorted_tables:
        if table is not identity and connection.scalar(select(literal(1)).select_from(table).limit(1)) is not None:
            raise DatabaseError(
                "there are results in it already, and nothing is overwritten",
                place=target.name,
                hint="name a database that is not there yet; kdx db merge joins two",
            )


def _copy(
    reading: Connection, writing: Connection, source: Database, target: Database, progress: Callable[[int, int], None]
) -> dict[str, int]:
    tables = metadata.sorted_tables
    total = 2 * sum(reading.scalar(select(func.count()).select_from(table)) or 0 for table in tables)
    done = 0
    read = {}
    # A new database has an id of its own.
    writing.execute(delete(identity))
    for table in tables:
        digest = read[table.name] = verbatim.Digest(table)
        with source.translate_errors():
            for rows in verbatim.read(reading, table):
                with target.translate_errors():
                    verbatim.write(writing, table, rows)
                digest.add(rows)
                progress(done := done + len(rows), total)
    verbatim.keys_go_on(writing, tables)
    for table in tables:
        written = verbatim.Digest(table)
        for rows in verbatim.read(writing, table):
            written.add(rows)
            progress(done := done + len(rows), total)
        if written != read[table.name]:
            raise DatabaseError(
                f"the rows of {table.name} that were written are not those that were read; nothing was copied",
                place=target.name,
                hint=f"kdx db check --db {shell_word(source.name)} tells whether that one is in order",
            )
    return {name: digest.rows for name, digest in read.items()}
