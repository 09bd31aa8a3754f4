"""Joins databases: what each of them has is in the target afterwards, nothing of it twice, and nothing overwritten.

All is decided before anything is written (`kdx.store.merge_union`), and written in one transaction.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from kdx.errors import DatabaseError
from kdx.shell import shell_word
from kdx.store.backends import backend_of
from kdx.store.copying import refuse_same
from kdx.store.database import Database, open_database
from kdx.store.merge_sides import Side
from kdx.store.merge_union import Conflict, Union, unite
from kdx.store.merge_writing import write
from kdx.store.records import FINAL, RunState


class Folders(NamedTuple):
    """The folder of the files of a run in a source, and the one that the target has for the run."""

    source: Path
    """The path of the database, beside which the folder of files lies."""
    former: str
    new: str
    state: RunState
    weights: str | None
    """Hash of the tested weights; None if there is none."""
    came: bool
    """Whether the run came with this merge."""


@dataclass(frozen=True)
class Merged:
    """What a merge did, or would do."""

    target: str
    location: Path
    came: int
    """Runs that the target did not have."""
    replaced: int
    """Runs that the target had, and that came further elsewhere."""
    same: int
    """Runs of the sources that the target had, or that several sources have."""
    added: int
    """Of those that came, runs that are further generations."""
    sweeps: int
    """Sweeps that the target did not have."""
    rows: Mapping[str, int]
    """Table → rows that were written; empty: nothing changed."""
    conflicts: tuple[Conflict, ...]
    left: tuple[str, ...]
    folders: tuple[Folders, ...]


def merge(
    sources: Sequence[str | Path],
    target: str | Path,
    *,
    dry_run: bool = False,
    as_generation: bool = False,
    rename: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> Merged:
    """Puts into the target what the sources have and it has not; a second time, that is nothing.

    Args:
        target: it is made where there is none.
        dry_run: says what would come, and writes nothing.
        as_generation: a run that another database computed to other results becomes a further generation, out of
            tables.
        rename: a sweep whose name has another plan in the target gets a name of its own.
        progress: called with the number of rows that were written since the last call.

    Raises:
        DatabaseError: see `kdx.store.database.open_database`; also for a database of an older schema, or if a source is
            the target. Nothing was changed.
        StorageError: the disk is full or failed; the same.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(open_database(source, write=False)) for source in sources]
        before = backend_of(target)
        for number, one in enumerate(opened):
            refuse_same(one.backend, before)
            for other in opened[:number]:
                refuse_same(one.backend, other.backend)
        sides = [_side(one, stack.enter_context(one.read())) for one in opened]
        for side in sides:
            side.check_cells()
        if dry_run and not before.exists():
            here = Side(None, None, before.name, before.location)
            union = unite([here, *sides], as_generation=as_generation, rename=rename)
            return _merged(union, [here, *sides], {})
        database = stack.enter_context(open_database(target, write=not dry_run, create=not dry_run, upgrade=False))
        with database.read() if dry_run else database.write() as connection:
            here = _side(database, connection)
            union = unite([here, *sides], as_generation=as_generation, rename=rename)
            rows = {} if dry_run else write(connection, [here, *sides], union, progress)
        return _merged(union, [here, *sides], rows)


def _side(database: Database, connection: Connection) -> Side:
    """What a database has, which may come from somebody else."""
    with database.translate_errors():
        for fault in database.backend.faults(connection, 1):
            hint = f"nothing was changed; kdx db check --db {shell_word(database.name)} says all that is wrong with it"
            raise DatabaseError(fault, place=database.name, hint=hint)
        return Side(database, connection, database.name, database.location)


def _merged(union: Union, sides: Sequence[Side], rows: Mapping[str, int]) -> Merged:
    here = set(sides[0].key_of.values())
    from_elsewhere = {key for key, place in union.runs.items() if place.side}
    folders = tuple(_folders(union, sides))
    return Merged(
        target=sides[0].name,
        location=sides[0].location,
        came=len(from_elsewhere - here),
        replaced=len(from_elsewhere & here),
        same=sum(1 for (number, run_id), key in union.placed.items() if number and not union.came(number, run_id)),
        added=len(union.added),
        sweeps=len(union.sweeps.keys() - sides[0].sweeps.keys()),
        rows=rows,
        conflicts=tuple(union.conflicts),
        left=tuple(union.left),
        folders=folders,
    )


def _folders(union: Union, sides: Sequence[Side]) -> Iterable[Folders]:
    for (number, run_id), key in union.placed.items():
        side, stands = sides[number], union.runs[key]
        state, came = RunState(stands.row["state"].decode()), union.came(number, run_id)
        # Files of a run that does not stand are of no use to the one that does, unless both have the same results.
        if number and not stands.fresh and (came or (state in FINAL and side.is_final(run_id))):
            weights = stands.row["weights_sha256"]
            former = side.key_of[run_id].folder
            yield Folders(side.location, former, key.folder, state, weights and weights.decode(), came)
