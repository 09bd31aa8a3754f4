"""What every command on a results database has: the database, the folder of files, and how it answers."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kdx.cli.console import out_json, out_lines
from kdx.cli.group import Flags
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.shell import kdx_command, shell_word
from kdx.store.refusals import FILES, set_password_apart

if TYPE_CHECKING:
    from kdx.store.database import Database

_FILES_BEFORE = os.environ.get(FILES)
"""The value of KDX_FILES before a command set it."""


@dataclass(frozen=True)
class Context:
    """The results database of a command, and whether it answers people or programs."""

    db: str
    """The database as the user typed it, a file or an address."""
    json: bool = False

    @property
    def options(self) -> str:
        """The options of a suggested command that name the database and the folder of files; empty for the default.

        No database is named where KDX_DB has the password that such an option would lack.
        """
        given = os.environ.get("KDX_DB", "")
        known = self.db == DATABASE or (given != self.db and "://" in given and set_password_apart(given) == self.db)
        files = os.environ.get(FILES)
        named = not files or (_FILES_BEFORE and Path(files) == Path(_FILES_BEFORE).expanduser().absolute())
        database = "" if known else f" --db {shell_word(self.db)}"
        return database + ("" if named else f" --files {shell_word(str(files))}")

    def command(self, verb: str, *names: str, options: str = "") -> str:
        """Return a command to suggest, on the same database.

        Args:
            options: its other options, with a blank before each.
        """
        return kdx_command(verb, *names, options=options + self.options)

    @contextmanager
    def read(self) -> "Iterator[Database]":
        """Open the database to read, in one state from the first statement to the last."""
        with self._open(write=False) as database, database.read():
            yield database

    def write(self, *, create: bool = False) -> "Database":
        """Open the database to write.

        Args:
            create: whether a database that is missing is made.

        Raises:
            DatabaseError, StorageError: as `open_database`.
        """
        return self._open(write=True, create=create)

    def _open(self, *, write: bool, create: bool = False) -> "Database":
        # SQLAlchemy, which the help of a command does without.
        from kdx.store.database import open_database

        return open_database(self.db, write=write, create=create)

    def answer(self, record: Any, lines: Callable[[], Iterable[str]]) -> None:
        """Write a record to stdout: as JSON for programs, as lines for people."""
        if self.json:
            out_json(record)
        else:
            out_lines(lines())


def _context(db: Db = DATABASE, files: Files = None) -> Context:
    return Context(db)


def _answering_context(db: Db = DATABASE, files: Files = None, json: Json = False) -> Context:
    return Context(db, json)


InDatabase = Annotated[Context, Flags(_context)]
"""A command with `--db` and `--files`."""
Answering = Annotated[Context, Flags(_answering_context)]
"""A command that has `--json` too."""
