"""Reads where unfinished runs were computed last, and which processes could not resume them exactly."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import select

from kdx.store.database import Database
from kdx.store.schema import attempt, now, run


class Conditions(NamedTuple):
    """What decides the bits of a run beside its cell and its seed, as it was recorded of its last computation.

    Equal values stand for equal conditions; the same conditions may have several values, one for each machine.
    """

    environment_id: str
    data_fingerprint: str | None


class BegunRecord(NamedTuple):
    """A run that was computed up to some step."""

    conditions: Conditions
    owner: str
    """The process that computed it last, see `kdx.sweep.lease_holder`."""
    waited: float
    """Seconds since then, by the clock of the database."""
    refusals: Mapping[str, str]
    """Process that tried to resume it since, and refused → what was different there, such as `torch 2.12 → 2.13`."""


def begun(database: Database, run_ids: Collection[int]) -> dict[int, BegunRecord]:
    """Run id → where it was computed last, for those of these runs that started."""
    rows = (
        select(
            attempt.c.run_id,
            attempt.c.owner,
            attempt.c.environment_id,
            attempt.c.ended,
            attempt.c.changes,
            run.c.environment_id.label("last_environment_id"),
            run.c.data_fingerprint,
            run.c.lease_until,
            now().label("now"),
        )
        .join(run, run.c.id == attempt.c.run_id)
        .where(attempt.c.run_id.in_(list(run_ids)), run.c.environment_id.is_not(None))
        .order_by(attempt.c.run_id, attempt.c.number)
    )
    records: dict[int, BegunRecord] = {}
    refusals: dict[int, dict[str, str]] = defaultdict(dict)
    with database.read() as connection:
        for row in connection.execute(rows):
            if row.environment_id is not None:
                until = row.ended if row.ended is not None else row.lease_until
                waited = max(0.0, row.now - until) if until is not None else 0.0
                conditions = Conditions(row.last_environment_id, row.data_fingerprint)
                refusals[row.run_id] = {}
                records[row.run_id] = BegunRecord(conditions, row.owner, waited, refusals[row.run_id])
            elif row.changes is not None:
                refusals[row.run_id][row.owner] = row.changes
    return records
