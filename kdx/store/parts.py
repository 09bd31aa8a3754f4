"""The sources of custom components, kept as text beside the runs that used them; nothing here is ever run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from kdx.components.component import Component
from kdx.store.database import Database
from kdx.store.schema import cell, now, part, search, sweep_cell, sweep_search


@dataclass(frozen=True)
class PartRecord:
    """The sources of a component."""

    sha256: str
    """Of their syntax trees."""
    sources: Mapping[str, str]
    """Path → text of each module."""
    package: str
    """Name and version of the package that brought them; empty for a file."""


def keep(connection: Connection, database: Database, components: Iterable[Component]) -> None:
    """Records the sources of these components; those that are there stay as they were."""
    rows = {
        one.sha256: {"sha256": one.sha256, "sources": dict(one.sources), "package": one.package} for one in components
    }
    if rows:
        insert = database.backend.insert(part).values(created=now())
        connection.execute(insert.on_conflict_do_nothing(), list(rows.values()))


def load_parts(database: Database, hashes: Iterable[str]) -> dict[str, PartRecord]:
    """Hash → the sources with it, as far as the database has them."""
    with database.read() as connection:
        rows = connection.execute(
            select(part.c.sha256, part.c.sources, part.c.package).where(part.c.sha256.in_(list(hashes)))
        ).all()
    return {row.sha256: PartRecord(row.sha256, row.sources, row.package) for row in rows}


def hashes_of(database: Database, sweep_id: int) -> dict[str, str]:
    """Word → hash of the custom components that the planned cells of a sweep use, and its searches."""
    planned = sweep_cell.c.planned & (sweep_cell.c.sweep_id == sweep_id)
    with_parts = select(cell.c.spec).join(sweep_cell).where(planned, cell.c.spec.like('%"parts":{"%')).distinct()
    with_searches = select(search.c.search).join(sweep_search).where(sweep_search.c.sweep_id == sweep_id)
    found: dict[str, str] = {}
    with database.read() as connection:
        for spec in connection.scalars(with_parts):
            found |= json.loads(spec)["parts"]
        for plain in connection.scalars(with_searches):
            found |= {word: sha256 for _, word, sha256 in plain.get("parts", ())}
    return found
