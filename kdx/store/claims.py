"""Claims of runs: which process has a run, for how long, and what happens when that process dies, or is to stop.

A run is claimed by one UPDATE … RETURNING, which also gives the number of the attempt. Every transaction of the worker
then begins by locking the row that matches (owner, attempt), see `held`; when nothing matches, another process has the
run, and `Fenced` stops the worker before it writes anything. So a worker that hung past its lease cannot spoil the run
that another one took over.

Each of `claim`, `renew`, `abandon` and `cancel` is one transaction. All but `cancel` run beside those of other
processes, since the row of the run keeps them apart: each begins by locking it, which waits for whoever else changes
it, and then looks at what stands there. They do no harm when they are done twice, see
`kdx.store.backend.Database.persist`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, case, insert, or_, select, update

from kdx.store.database import Database
from kdx.store.records import ENDED, LONGEST_LEASE, LOST, RunState
from kdx.store.schema import among, attempt, now, run

STALLS = 3
"""A run fails after so many attempts in a row that died without progress, since it would kill more workers.

A death counts only if the sweep survived it; if the sweep died too, both were killed, or the machine stopped.

Progress is a row of a higher step, or a later checkpoint to resume from, since a run that restarted has yet to reach
its former rows.
"""


class Fenced(Exception):
    """This attempt no longer has the run: its lease lapsed and another process claimed it, or the run was ended."""


def claim(
    database: Database, run_id: int, owner: str, lease_seconds: float, dead_owners: Iterable[str] = ()
) -> int | None:
    """Claim a run for `owner` and return the number of the attempt, or None when the run cannot be claimed.

    Pending and interrupted runs can be claimed, and running ones whose lease has lapsed or whose owner is known to be
    dead. Their lost attempt is closed first. A run whose row another process is changing cannot be claimed now.
    """
    available = or_(_lapsed(), run.c.owner.is_(None), run.c.owner.in_(list(dead_owners)))

    def first() -> int | None:
        # Whoever changes the row now is likely to claim the run.
        with database.write(alone=False) as connection:
            return _claim(connection, run_id, owner, lease_seconds, available, waits=False)

    def again() -> int | None:
        # It may be the first try of this process that changes the row, or has changed it.
        with database.write(alone=False) as connection:
            number = _claim(connection, run_id, owner, lease_seconds, available, waits=True)
            if number is None:
                mine = (run.c.id == run_id) & (run.c.owner == owner) & (run.c.state == RunState.RUNNING)
                number = connection.scalar(select(run.c.attempt).where(mine))
            return number

    return database.persist(first, again=again)


def _claim(
    connection: Connection,
    run_id: int,
    owner: str,
    lease_seconds: float,
    available: ColumnElement[bool],
    *,
    waits: bool,
) -> int | None:
    row = select(run.c.id).where(run.c.id == run_id).with_for_update(skip_locked=not waits, key_share=True)
    if connection.scalar(row) is None:
        return None
    _lose(connection, run_id, available, "the process of the run died without a word", stalled=False)
    number = connection.scalar(
        update(run)
        .where(run.c.id == run_id, run.c.state.in_([RunState.PENDING, RunState.INTERRUPTED]))
        .values(
            state=RunState.RUNNING,
            owner=owner,
            attempt=run.c.attempt + 1,
            lease_until=now() + lease_seconds,
            error=None,
        )
        .returning(run.c.attempt)
    )
    if number is None:
        return None
    before = select(run.c.progress_step).where(run.c.id == run_id).scalar_subquery()
    connection.execute(
        insert(attempt).values(run_id=run_id, number=number, owner=owner, started=now(), first_step=before)
    )
    return int(number)


def renew(database: Database, owner: str, lease_seconds: float) -> int:
    """Extend the lease of every run of `owner` to `lease_seconds` from now and return the number of runs."""
    extended = (
        update(run)
        .where(run.c.owner == owner, run.c.state == RunState.RUNNING)
        .values(lease_until=now() + lease_seconds)
    )

    def once() -> int:
        with database.write(alone=False) as connection:
            return connection.execute(extended).rowcount

    return database.persist(once)


def abandon(
    database: Database,
    run_id: int,
    owner: str,
    number: int,
    reason: str,
    *,
    only_lapsed: bool = False,
    stalled: bool = True,
) -> RunState | None:
    """End an attempt whose process died without a word and return the new state of the run.

    The run is interrupted, or failed for that reason after `STALLS` such attempts without progress. None means that the
    attempt had already ended, or that its lease has not lapsed, and that nothing was changed.

    Args:
        only_lapsed: ends the attempt only if its lease has lapsed, for a caller that does not know of the death.
        stalled: whether the attempt counts as one without progress; not if the run is known not to have caused the
            death, or if its owner died too.
    """
    which = (run.c.owner == owner) & (run.c.attempt == number)
    if only_lapsed:
        which &= _lapsed()

    def once() -> RunState | None:
        with database.write(alone=False) as connection:
            return _lose(connection, run_id, which, reason, stalled=stalled)

    return database.persist(once)


def cancel(database: Database, run_ids: Iterable[int]) -> dict[int, bool]:
    """Cancel those of these runs that have not ended, in one transaction.

    A process that works at one is fenced, so that it can write nothing more of it; its attempt ends here.

    Returns:
        Run id → whether a process worked at it, for each run that was cancelled.
    """
    which = among(run.c.id, run_ids) & run.c.state.not_in(ENDED)
    with database.write() as connection:
        running = which & (run.c.state == RunState.RUNNING)
        at_work = select(run.c.id, run.c.attempt, run.c.progress_step).where(running)
        ended = [row._asdict() for row in connection.execute(at_work)]
        cancelled = connection.scalars(
            update(run).where(which).values(state=RunState.CANCELLED, error=None, stalls=0).returning(run.c.id)
        ).all()
        for row in ended:
            connection.execute(
                update(attempt)
                .where(attempt.c.run_id == row["id"], attempt.c.number == row["attempt"])
                .values(ended=now(), outcome=RunState.CANCELLED, last_step=row["progress_step"])
            )
    claimed = {row["id"] for row in ended}
    return {run_id: run_id in claimed for run_id in sorted(cancelled)}


@contextmanager
def held(database: Database, run_id: int, owner: str, number: int) -> Iterator[Connection]:
    """A transaction of an attempt that begins by checking the claim, and during which nobody else can claim the run.

    It runs beside those of other attempts.

    Raises:
        Fenced: the attempt no longer has the run; nothing was changed.
    """
    row = (
        select(run.c.id)
        .where(
            run.c.id == run_id,
            run.c.owner == owner,
            run.c.attempt == number,
            run.c.state == RunState.RUNNING,
        )
        .with_for_update(key_share=True)
    )
    with database.write(alone=False) as connection:
        if connection.scalar(row) is None:
            raise Fenced(f"attempt {number} of {owner} no longer has run {run_id}")
        yield connection


def stalls_after(last_step: int, without_progress: int) -> ColumnElement[int]:
    """The stalls of a run whose attempt ends now: 0 if it made progress, else `without_progress` more than before."""
    before = (
        select(attempt.c.first_step)
        .where(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
        .correlate(run)
        .scalar_subquery()
    )
    return case((progress_of(last_step) > before, 0), else_=run.c.stalls + without_progress)


def progress_of(step: int) -> ColumnElement[int]:
    """The progress of the run, which a replay from an earlier checkpoint does not lower."""
    return case((run.c.progress_step < step, step), else_=run.c.progress_step)


def _lose(
    connection: Connection, run_id: int, which: ColumnElement[bool], reason: str, *, stalled: bool
) -> RunState | None:
    """End the running attempt of a run if `which` holds for the run's row, and return the new state of the run."""
    stalls = stalls_after(0, without_progress=int(stalled))
    lost = connection.execute(
        update(run)
        .where(run.c.id == run_id, run.c.state == RunState.RUNNING, which)
        .values(
            state=case((stalls >= STALLS, RunState.FAILED.value), else_=RunState.INTERRUPTED.value),
            error=case((stalls >= STALLS, reason), else_=None),
            stalls=stalls,
        )
        .returning(run.c.state, run.c.attempt, run.c.lease_until, run.c.progress_step)
    ).one_or_none()
    if lost is None:
        return None
    connection.execute(
        update(attempt)
        .where(attempt.c.run_id == run_id, attempt.c.number == lost.attempt)
        .values(
            # The attempt cannot have lived longer than its lease, but may be found days later.
            ended=case((now() > (lost.lease_until or 0.0), lost.lease_until), else_=now()),
            outcome=LOST,
            last_step=lost.progress_step,
            traceback=reason,
        )
    )
    return RunState(lost.state)


def _lapsed() -> ColumnElement[bool]:
    """Whether the lease of a running run is over, or is longer than any that kdx gives and would never end."""
    left = run.c.lease_until - now()
    return or_(run.c.lease_until.is_(None), left < 0, left > LONGEST_LEASE)
