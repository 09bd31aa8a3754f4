"""The process that mirrors the runs of a command while it trains: `kdx.mirrors.process MIRROR DATABASE OWNER`.

It reads the database and no process waits for it, so whatever happens to it costs the mirror alone. It ends when its
standard input ends, after a last look; what it says on standard output is a note for the user.
"""

import os
import select
import sys

from sqlalchemy import select as rows

from kdx.errors import KdxError
from kdx.mirrors.choice import MirrorName, opened_mirror
from kdx.mirrors.follow import Follower
from kdx.run_files.files import files_beside
from kdx.store.database import Database, open_database
from kdx.store.schema import attempt

EVERY = 3.0  # seconds between two looks


def follow(name: MirrorName, address: str, owner: str) -> None:
    """Mirror the runs that a process claims, until standard input ends.

    Args:
        owner: the beginning of its name in claims, see `kdx.sweep.lease_holder`.

    Raises:
        KdxError: the database cannot be read, or the mirror's program is not installed or fails.
    """
    at_end = False
    while (opened := _opened(address, say_why=at_end)) is None:
        at_end = _ended_within(EVERY)
    with opened as database, opened_mirror(name, files_beside(database.location).with_suffix("")) as mirror:
        follower = Follower(database, mirror)
        while not at_end:
            follower.send(_claimed(database, owner))
            at_end = _ended_within(EVERY)
        follower.send(_claimed(database, owner))
        # After a failure the other program shows them as still running, since it could not be asked for more.
        follower.close()


def _opened(address: str, *, say_why: bool) -> Database | None:
    """Open the database, or return None while the command has not made it yet.

    Raises:
        KdxError: `say_why`, and it cannot be opened.
    """
    try:
        return open_database(address, write=False, patient=True)
    except KdxError:
        if say_why:
            raise
        return None


def _ended_within(seconds: float) -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready)


def _claimed(database: Database, owner: str) -> list[int]:
    claimed = rows(attempt.c.run_id).where(attempt.c.owner.startswith(owner, autoescape=True)).distinct()
    with database.read() as connection:
        return [*connection.scalars(claimed)]


def main() -> None:
    """Follow; whatever goes wrong is one line."""
    name, address, owner = sys.argv[1:]
    # Other programs greet and take leave on standard output.
    notes = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        follow(MirrorName(name), address, owner)
    except KdxError as error:
        print(error.problem[:600], file=notes, flush=True)


if __name__ == "__main__":
    main()
