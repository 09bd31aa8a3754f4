"""What people write on sweeps and runs: notes, tags, and why tables are to leave a run out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from kdx.store.backend import insert_rows
from kdx.store.database import Database
from kdx.store.records import RemarkKind
from kdx.store.schema import among, now, remark


@dataclass(frozen=True)
class NoteRecord:
    """What somebody wrote."""

    made: float
    """Seconds since 1970."""
    text: str


@dataclass(frozen=True)
class Remarks:
    """The notes and tags of some sweeps and runs, the first one first."""

    of_sweeps: Mapping[int, Sequence[NoteRecord]] = field(default_factory=dict)
    of_runs: Mapping[int, Sequence[NoteRecord]] = field(default_factory=dict)
    tags_of_sweeps: Mapping[int, Sequence[str]] = field(default_factory=dict)
    tags_of_runs: Mapping[int, Sequence[str]] = field(default_factory=dict)


def annotate(
    database: Database, *, sweep_id: int | None = None, run_id: int | None = None, text: str, tags: Iterable[str]
) -> tuple[str, ...]:
    """Put a note, unless it is empty, and tags on a sweep or on a run; return the tags that it did not have yet."""
    with database.write() as connection:
        present = set(connection.scalars(select(remark.c.text).where(_on(sweep_id, run_id), _is(RemarkKind.TAG))))
        fresh = tuple(word for word in dict.fromkeys(tags) if word not in present)
        rows = [{"kind": RemarkKind.TAG, "text": word} for word in fresh]
        rows += [{"kind": RemarkKind.NOTE, "text": text}] if text else []
        insert_rows(connection, insert(remark).values(made=now(), sweep_id=sweep_id, run_id=run_id), rows)
    return fresh


def untag(
    database: Database, *, sweep_id: int | None = None, run_id: int | None = None, tags: Iterable[str]
) -> tuple[str, ...]:
    """Take tags from a sweep or a run; return those that it had."""
    words = tuple(dict.fromkeys(tags))
    which = _on(sweep_id, run_id), _is(RemarkKind.TAG), remark.c.text.in_(words)
    with database.write() as connection:
        gone = set(connection.scalars(delete(remark).where(*which).returning(remark.c.text)))
    return tuple(word for word in words if word in gone)


def invalidate(database: Database, run_ids: Iterable[int], why: str) -> None:
    """Take these runs out of tables; nothing of them is deleted.

    Args:
        why: one line.
    """
    rows = [{"run_id": run_id, "kind": RemarkKind.INVALIDATION, "text": why} for run_id in run_ids]
    with database.write() as connection:
        insert_rows(connection, insert(remark).values(made=now()), rows)


def withdraw(database: Database, run_ids: Iterable[int]) -> int:
    """Put these runs back into tables; return the number of reasons that no longer hold."""
    reasons = among(remark.c.run_id, run_ids) & invalidates()
    with database.write() as connection:
        return connection.execute(delete(remark).where(reasons)).rowcount


def invalidates() -> ColumnElement[bool]:
    """Whether a remark is the reason why tables leave its run out."""
    return _is(RemarkKind.INVALIDATION)


def reasons(connection: Connection) -> dict[int, str]:
    """Run id → why tables leave it out, by the newest reason, for all runs of the database."""
    rows = connection.execute(select(remark.c.run_id, remark.c.text).where(invalidates()).order_by(remark.c.id))
    return {row.run_id: row.text for row in rows}


def remarks(database: Database) -> Remarks:
    """All notes and tags of the database: people write few."""
    with database.read() as connection:
        rows = connection.execute(select(remark).order_by(remark.c.id)).all()
    notes = [(row, NoteRecord(row.made, row.text)) for row in rows if row.kind is RemarkKind.NOTE]
    tags = [(row, row.text) for row in rows if row.kind is RemarkKind.TAG]
    return Remarks(_by("sweep_id", notes), _by("run_id", notes), _by("sweep_id", tags), _by("run_id", tags))


def _on(sweep_id: int | None, run_id: int | None) -> ColumnElement[bool]:
    return remark.c.sweep_id == sweep_id if run_id is None else remark.c.run_id == run_id


def _is(kind: RemarkKind) -> ColumnElement[bool]:
    return remark.c.kind == kind


def _by(column: str, rows: Iterable[tuple[Any, Any]]) -> dict[int, list[Any]]:
    values: dict[int, list[Any]] = defaultdict(list)
    for row, value in rows:
        if (key := getattr(row, column)) is not None:
            values[key].append(value)
    return dict(values)
