"""Brings a mirror up to date with runs of the database.

`python -m kdx.mirrors.follow MIRROR DATABASE OWNER` is the process that mirrors the runs of a command while it trains.
It reads the database and no process waits for it, so whatever happens to it costs the mirror alone. It ends when its
standard input ends, after a last look; what it says on standard output is a note for the user.
"""

import os
import sys
from collections.abc import Collection
from select import select as ready

from sqlalchemy import select

from kdx.errors import KdxError
from kdx.mirrors.choice import MirrorName, opened_mirror
from kdx.mirrors.interfaces import Known, Mirror, MirroredRun, Point
from kdx.run_files.files import files_beside
from kdx.store.database import Database, open_database
from kdx.store.details import cell_details
from kdx.store.reading import records
from kdx.store.records import ENDED, RunRecord, RunState
from kdx.store.schema import among, attempt, metric, run, value_of

EVERY = 3.0  # seconds between two looks


class Follower:
    """Sends to a mirror what is new of some runs, each number once."""

    def __init__(self, database: Database, mirror: Mirror) -> None:
        self._database = database
        self._mirror = mirror
        self._begun: dict[int, tuple[MirroredRun, Known, dict[str, int]]] = {}
        self._ended: dict[int, int] = {}
        """Run id → the attempt with which it ended; somebody may have it tried again."""
        self.new: set[int] = set()
        """Runs of which something was sent."""

    def send(self, run_ids: Collection[int]) -> None:
        """Send what is new of these runs; those that have ended are closed."""
        with self._database.read() as connection:
            known = records(connection, among(run.c.id, run_ids), every=True) if run_ids else ()
        for record in known:
            if self._ended.get(record.id) == record.attempt:
                continue
            self._send(record)
            if record.state in ENDED:
                self._mirror.end(self._begun.pop(record.id)[0], record.state)
                self._ended[record.id] = record.attempt

    def close(self) -> None:
        """Close the runs that have not ended, which were interrupted."""
        for mirrored, *_ in self._begun.values():
            self._mirror.end(mirrored, RunState.INTERRUPTED)
        self._begun.clear()

    def _send(self, record: RunRecord) -> None:
        if record.id not in self._begun:
            mirrored = self._described(record)
            self._begun[record.id] = mirrored, self._mirror.begin(mirrored), {}
        mirrored, known, sent = self._begun[record.id]
        rows = select(metric.c.name, metric.c.step, metric.c.bits).where(metric.c.run_id == record.id)
        if record.state not in ENDED:
            # What comes later has a later step; a test alone is of an earlier one, and is there when the run has ended.
            rows = rows.where(metric.c.step >= max(sent.values(), default=0))
        with self._database.read() as connection:
            points = [Point(name, step, value_of(bits)) for name, step, bits in connection.execute(rows)]
        new = [point for point in points if point.step > sent.get(point.name, known(point.name))]
        if new:
            self._mirror.write(mirrored, sorted(new, key=lambda point: (point.step, point.name)))
            self.new.add(record.id)
        for point in new:
            sent[point.name] = max(point.step, sent.get(point.name, -1))

    def _described(self, record: RunRecord) -> MirroredRun:
        cell = cell_details(self._database, record.cell_id)
        sweep = next(iter(cell.planners), "searches")
        again = f" · generation {record.generation}" if record.generation else ""
        name = " · ".join([*map(str, cell.labels.values()), f"seed {record.seed}"]) + again
        settings = {**cell.labels, "seed": record.seed, "kdx run": record.id, **_dotted(cell.spec.plain)}
        assert self._database.id is not None, "not opened"
        # The number of a run that was removed may be given again, to a run of another cell.
        key = f"{self._database.id[:8]}-{record.id}-{record.cell_id[:8]}"
        return MirroredRun(record.id, key, sweep, name, settings)


def _dotted(values: object, before: str = "") -> dict[str, object]:
    """Return dotted key → value of a nested mapping."""
    if not isinstance(values, dict):
        return {before: values}
    dotted: dict[str, object] = {}
    for key, value in values.items():
        dotted |= _dotted(value, f"{before}.{key}" if before else str(key))
    return dotted


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
    ended, _, _ = ready([sys.stdin], [], [], seconds)
    return bool(ended)


def _claimed(database: Database, owner: str) -> list[int]:
    claimed = select(attempt.c.run_id).where(attempt.c.owner.startswith(owner, autoescape=True)).distinct()
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
