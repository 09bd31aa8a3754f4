"""Notes and tags that people put on sweeps and runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, insert, select

from kdx.store.database import Database
from kdx.store.schema import note, now, tag


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
    """Puts a note, unless it is empty, and tags on a sweep or on a run; returns the tags that it did not have yet."""
    on = {"sweep_id": sweep_id, "run_id": run_id}
    with database.write() as connection:
        known = select(tag.c.word).where(tag.c.sweep_id == sweep_id if run_id is None else tag.c.run_id == run_id)
        had = set(connection.scalars(known))
        fresh = tuple(word for word in dict.fromkeys(tags) if word not in had)
        if text:
            connection.execute(insert(note).values(made=now(), text=text, **on))
        if fresh:
            connection.execute(insert(tag).values(made=now()), [{"word": word, **on} for word in fresh])
    return fresh


def untag(
    database: Database, *, sweep_id: int | None = None, run_id: int | None = None, tags: Iterable[str]
) -> tuple[str, ...]:
    """Takes tags from a sweep or a run; returns those that it had."""
    on = tag.c.sweep_id == sweep_id if run_id is None else tag.c.run_id == run_id
    words = tuple(dict.fromkeys(tags))
    with database.write() as connection:
        gone = set(connection.scalars(delete(tag).where(on, tag.c.word.in_(words)).returning(tag.c.word)))
    return tuple(word for word in words if word in gone)


def remarks(database: Database) -> Remarks:
    """All notes and tags of the database: people write few."""
    with database.read() as connection:
        notes, tags = ([*connection.execute(select(table).order_by(table.c.id))] for table in (note, tag))
    written = [(row, NoteRecord(row.made, row.text)) for row in notes]
    words = [(row, row.word) for row in tags]
    return Remarks(_by("sweep_id", written), _by("run_id", written), _by("sweep_id", words), _by("run_id", words))


def _by(column: str, rows: Iterable[tuple[Any, Any]]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row, value in rows:
        if (key := getattr(row, column)) is not None:
            found[key].append(value)
    return dict(found)
