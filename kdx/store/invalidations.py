"""Takes runs out of tables, and puts them back; nothing of them is deleted."""

from collections.abc import Iterable

from sqlalchemy import Connection, insert, select, update

from kdx.store.database import Database
from kdx.store.schema import invalidation, now


def invalidate(database: Database, run_ids: Iterable[int], why: str) -> None:
    """Takes these runs out of tables.

    Args:
        why: one line.
    """
    rows = [{"run_id": run_id, "why": why} for run_id in run_ids]
    with database.write() as connection:
        if rows:
            connection.execute(insert(invalidation).values(made=now()), rows)


def withdraw(database: Database, run_ids: Iterable[int]) -> int:
    """Puts these runs back into tables; returns the number of reasons that no longer hold."""
    of_runs = invalidation.c.run_id.in_(list(run_ids)) & invalidation.c.withdrawn.is_(None)
    with database.write() as connection:
        return connection.execute(update(invalidation).where(of_runs).values(withdrawn=now())).rowcount


def reasons(connection: Connection) -> dict[int, str]:
    """Run id → why tables leave it out, by the newest reason that was not withdrawn, for all runs of the database."""
    standing = select(invalidation.c.run_id, invalidation.c.why).where(invalidation.c.withdrawn.is_(None))
    return {row.run_id: row.why for row in connection.execute(standing.order_by(invalidation.c.id))}
