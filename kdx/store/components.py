"""Custom components with their sources, kept as text beside the runs that used them; nothing here is ever run."""

import hashlib
import json
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, RowMapping, select

from kdx.components.registry import know
from kdx.store.backend import insert_rows
from kdx.store.database import Database
from kdx.store.recorded_grid import metrics_of_evaluations, whole_cell
from kdx.store.schema import cell, component, now, search, sweep, sweep_cell, sweep_search
from kdx.words.component import Component

_COLUMNS = ("axis", "word", "name", "path", "sources", "package")


def keep(connection: Connection, database: Database, components: Iterable[Component]) -> None:
    """Record these components; those that are there stay as they were."""
    rows = {
        component_id(each.axis, each.word, each.sha256): {"sha256": each.sha256}
        | {name: getattr(each, name) for name in _COLUMNS}
        | {"sources": dict(each.sources)}
        for each in components
    }
    insert = database.insert(component).values(created=now()).on_conflict_do_nothing()
    insert_rows(connection, insert, [{"id": key} | row for key, row in rows.items()])


def component_id(axis: str, word: str, sha256: str) -> str:
    """Return the key under which a component is recorded: a hash of what cells know it by."""
    return hashlib.sha256(json.dumps([axis, word, sha256]).encode()).hexdigest()


def load_components(connection: Connection, hashes: Mapping[str, str]) -> tuple[Component, ...]:
    """Return the recorded components with these words and hashes, unless their source has another hash.

    Args:
        hashes: word → hash of its source.
    """
    if not hashes:
        return ()
    rows = connection.execute(select(component).where(component.c.sha256.in_(set(hashes.values()))))
    wanted = [row for row in rows.all() if hashes.get(row.word) == row.sha256]
    return tuple(known for row in wanted if (known := recorded(row._mapping)) is not None)


def recorded(row: RowMapping) -> Component | None:
    """Return the component of a row; None if its source is not what its hash is of, as somebody edited the database."""
    component = Component(**{name: row[name] for name in _COLUMNS}, recorded=True)
    try:
        return component if component.path in component.sources and component.sha256 == row["sha256"] else None
    except SyntaxError:
        return None


def know_word(database: Database, word: str) -> bool:
    """Make the components of a word known, of several sources the one that was recorded last; return whether any is."""
    with database.read() as connection:
        rows = connection.execute(select(component).where(component.c.word == word).order_by(component.c.created)).all()
    known = [each for row in reversed(rows) if (each := recorded(row._mapping)) is not None]
    know(known)
    return bool(known)


def hashes_of(database: Database, sweep_id: int) -> dict[str, str]:
    """Return word → hash of the custom components of the planned cells, searches and evaluations of a sweep."""
    planned = sweep_cell.c.planned & (sweep_cell.c.sweep_id == sweep_id)
    custom = (
        select(cell.c.id, cell.c.spec).join(sweep_cell).where(planned, cell.c.spec.like('%"components":{"%')).distinct()
    )
    with_searches = select(search.c.search).join(sweep_search).where(sweep_search.c.sweep_id == sweep_id)
    hashes: dict[str, str] = {}
    with database.read() as connection:
        grid = connection.scalar(select(sweep.c.grid).where(sweep.c.id == sweep_id))
        hashes |= metrics_of_evaluations(grid or {})
        for row in connection.execute(custom).all():
            hashes |= whole_cell(row.id, row.spec).components
        for plain in connection.scalars(with_searches):
            hashes |= {word: sha256 for _, word, sha256 in plain.get("components", ())}
    return hashes
