"""Claims of runs: who has which run, for how long, and what becomes of it when its process dies.

A run is claimed by one UPDATE … RETURNING, which also gives the number of the attempt. Every transaction of the worker
then begins with an UPDATE that matches (owner, attempt), see `held`; when it matches nothing, somebody else has the
run, and `Fenced` stops the worker before it writes a thing. So a worker that hung past its lease cannot spoil the run
that another one took over.

Each of `claim`, `renew` and `abandon` is one transaction.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, insert, or_, select, update

from kdx.store.database import Database
from kdx.store.records import LONGEST_LEASE, LOST, RunState
from kdx.store.schema import attempt, now, run

STALLS = 3
"""So many attempts in a row that died without coming further make a run fail: it would kill its worker for ever.

Only a death that its sweep lived to see counts. Where the sweep died too, somebody killed both, or the machine stopped.

Further is a row of a higher step, or a later checkpoint to go on from, where a run that began anew has yet to reach the
rows of before.
"""


class Fenced(Exception):
    """This attempt no longer has the run: its lease lapsed and another claimed it, or the run was ended."""


def claim(
    database: Database, run_id: int, owner: str, lease_seconds: float, dead_owners: Iterable[str] = ()
) -> int | None:
    """Takes a run for `owner`; the number of the attempt, or None when it is not to be had.

    To be had are pending and interrupted runs, and running ones whose lease has lapsed or whose owner is known to be
    dead. The attempt that these lost is closed first.
    """
    left = or_(_lapsed(), run.c.owner.is_(None), run.c.owner.in_(list(dead_owners)))
    with database.write() as connection:
        _lose(connection, run_id, left, "the process of the run died without a word", stalled=False)
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
    """Extends the lease of every run that `owner` has to `lease_seconds` from now; how many it has."""
    with database.write() as connection:
        renewed = connection.execute(
            update(run)
            .where(run.c.owner == owner, run.c.state == RunState.RUNNING)
            .values(lease_until=now() + lease_seconds)
        )
        return renewed.rowcount


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
    """Ends an attempt whose process died without a word; the state that the run is left in.

    Interrupted, or failed for that reason after `STALLS` such attempts without progress. None: the attempt had already
    ended, or its lease has not lapsed, and nothing was changed.

    Args:
        only_lapsed: the death is not known, only that the lease had lapsed.
        stalled: whether the attempt counts as one of these; not where what it died of is known to be no fault of its
            run, or where its owner is gone too.
    """
    which = (run.c.owner == owner) & (run.c.attempt == number)
    if only_lapsed:
        which &= _lapsed()
    with database.write() as connection:
        return _lose(connection, run_id, which, reason, stalled=stalled)


@contextmanager
def held(database: Database, run_id: int, owner: str, number: int, **columns: Any) -> Iterator[Connection]:
    """A transaction of an attempt, which begins by checking the claim, and in which nobody else can claim the run.

    Args:
        columns: of the run, to be set.

    Raises:
        Fenced: the attempt no longer has the run; nothing was changed.
    """
    fence = update(run).where(
        run.c.id == run_id,
        run.c.owner == owner,
        run.c.attempt == number,
        run.c.state == RunState.RUNNING,
    )
    with database.write() as connection:
        if connection.execute(fence.values(columns or {"owner": owner})).rowcount != 1:
            raise Fenced(f"attempt {number} of {owner} no longer has run {run_id}")
        yield connection


def stalls_after(last_step: int, without_progress: int) -> ColumnElement[int]:
    """Stalls of a run whose attempt ends now: 0 when it came further than those before, else so many more."""
    before = (
        select(attempt.c.first_step)
        .where(attempt.c.run_id == run.c.id, attempt.c.number == run.c.attempt)
        .correlate(run)
        .scalar_subquery()
    )
    return case((progress_of(last_step) > before, 0), else_=run.c.stalls + without_progress)


def progress_of(step: int) -> ColumnElement[int]:
    """The run's progress, which a replay from an earlier checkpoint does not lower."""
    return case((run.c.progress_step < step, step), else_=run.c.progress_step)


def _lose(
    connection: Connection, run_id: int, which: ColumnElement[bool], reason: str, *, stalled: bool
) -> RunState | None:
    """Ends the running attempt at a run if `which` holds of the run's row; the state that the run is left in."""
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
            # It cannot have lived longer than its lease; who finds it may come days later.
            ended=case((now() > (lost.lease_until or 0.0), lost.lease_until), else_=now()),
            outcome=LOST,
            last_step=lost.progress_step,
            traceback=reason,
        )
    )
    return RunState(lost.state)


def _lapsed() -> ColumnElement[bool]:
    """Of a running run: whether its lease is over, or is none that kdx gives, which nobody would live to see end."""
    left = run.c.lease_until - now()
    return or_(run.c.lease_until.is_(None), left < 0, left > LONGEST_LEASE)
