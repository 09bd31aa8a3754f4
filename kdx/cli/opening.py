"""Opens a database to write, for all commands that record something."""

from kdx.cli.console import say
from kdx.store.database import Database, open_database


def open_to_write(db: str, *, create: bool = False) -> Database:
    """Opens it, and says so where it was brought to the schema of this kdx.

    Args:
        db: the address, as the user typed it.
        create: whether it is made where there is none.

    Raises:
        DatabaseError, StorageError: as `open_database`.
    """
    database = open_database(db, write=True, create=create)
    if database.upgraded_from is not None:
        copy = f"; a copy from before is {database.backup}" if database.backup else ""
        say(f"note: {database.name} was of schema {database.upgraded_from}, and is brought up to date{copy}")
    return database
