"""What a shell completes: names of grids, sweeps, runs, cells, tables, corpora, and factors with their values.

The names of a database come from whoever made it, and a shell puts what it is offered into the command line as it
stands. So only names of plain characters are offered, and none that reads as an option.
"""

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from kdx.errors import KdxError
from kdx.store.records import RunState
from kdx.words import table

MOST = 200
"""Names that are offered at once."""
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*")
_DIGITS = 8
"""Digits of a cell's id, as tables show it."""


def _offered(names: Iterable[object], incomplete: str) -> list[str]:
    """Return the names that begin so and are safe to offer, each once."""
    words = dict.fromkeys(map(str, names))
    return [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)][:MOST]


def _read(context: typer.Context, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a SELECT; none if there is no database, or it cannot be read."""
    # SQLAlchemy, which most completions do without.
    from kdx.store.database import database_at, open_database

    address = context.params.get("db") or os.environ.get("KDX_DB") or "runs.db"
    try:
        if not database_at(address).exists():
            return []
        with open_database(address, write=False) as database:
            return list(database.rows(statement, values))
    except (KdxError, OSError):
        return []


def grids(incomplete: str) -> list[str]:
    """Complete shipped grids, and YAML files."""
    # Every command imports this module; few complete a grid.
    from kdx.grid import shipped

    return _offered([*shipped.names(), *_files(incomplete)], incomplete)


def names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete sweeps, the most recent first, and YAML files; once digits are typed, runs too."""
    rows = _read(ctx, f"SELECT name FROM sweep ORDER BY updated DESC, id DESC LIMIT {10 * MOST}")
    sweeps = [name for (name,) in rows]
    numbers = runs(ctx, incomplete) if incomplete.isdigit() else []
    return _offered([*sweeps, *numbers, *_files(incomplete)], incomplete)


def names_and_cells(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the same, and once digits are typed, cells too."""
    cells = "SELECT id FROM cell WHERE id >= :start AND id < :start || 'g' ORDER BY id LIMIT 200"
    ids = [key for (key,) in _read(ctx, cells, start=incomplete)] if incomplete else []
    digits = [key if len(incomplete) >= _DIGITS else key[:_DIGITS] for key in ids]
    return [*names(ctx, incomplete), *_offered(digits, incomplete)]


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the numbers of runs, the newest first."""
    statement = f"SELECT id FROM run WHERE CAST(id AS TEXT) LIKE :start || '%' ORDER BY id DESC LIMIT {MOST}"
    return _offered([number for (number,) in _read(ctx, statement, start=incomplete)], incomplete)


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the tables of the sweep that is named, or else of the most recent one."""
    for name, grid in _sweep(ctx, "name, grid"):
        # A grid without tables has one of its own name.
        listed = json.loads(grid).get("tables") or [{"name": name}]
        return _offered([table.get("name", name) for table in listed], incomplete)
    return []


def corpora(incomplete: str) -> list[str]:
    """Complete corpora that a grid can name: built-in ones, and those that are prepared."""
    # Every command imports this module; what reads the corpora takes as long to load as the help of a command.
    from kdx.data.storage import data_home
    from kdx.tasks.corpora import BUILT_IN

    prepared: list[str] = []
    with suppress(OSError):
        prepared = sorted(path.name for path in (data_home() / "corpora").iterdir() if path.is_dir())
    return _offered([*BUILT_IN, *prepared], incomplete)


def choices(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete KEY=VALUE for the runs of the sweep that is named: its axes and states."""
    words: list[str] = []
    for (key,) in _sweep(ctx, "id"):
        labels = "SELECT DISTINCT labels FROM sweep_cell WHERE sweep_id = :sweep AND planned"
        for (text,) in _read(ctx, labels, sweep=key):
            words += [f"{axis}={value}" for axis, value in json.loads(text).items()]
        words += [f"state={state}" for state in RunState]
    return _offered(words, incomplete)


def settings(incomplete: str) -> list[str]:
    """Complete KEY=VALUE of --set: factors of cells, with the values that each takes."""
    known = {factor: facts.names for factor, facts in table.factors().items()}
    factor, equals, _ = incomplete.partition("=")
    if equals:
        return _offered((f"{factor}={value}" for value in known.get(factor, ())), incomplete)
    return _offered((f"{name}=" for name in ("seeds", *known)), incomplete)


def keys_and_values(incomplete: str) -> list[str]:
    """Complete what kdx explain knows: factors, and the values of each."""
    known = {factor: facts.names for factor, facts in table.factors().items()}
    return _offered([*known, *(value for values in known.values() for value in values)], incomplete)


def _sweep(context: typer.Context, columns: str) -> list[tuple[Any, ...]]:
    """Return the sweep of the command line, or the most recent one; nothing if it is not there."""
    given = context.params.get("sweep") or context.params.get("sweeps") or context.params.get("what")
    # Where several can be named, the first counts.
    name = given[0] if isinstance(given, list | tuple) else given
    condition = "WHERE name = :name" if name else ""
    values = {"name": name} if name else {}
    return _read(context, f"SELECT {columns} FROM sweep {condition} ORDER BY updated DESC, id DESC LIMIT 1", **values)


def _files(incomplete: str) -> list[str]:
    """Return the YAML files and the folders that begin so."""
    folder, slash, start = incomplete.rpartition("/")
    with suppress(OSError):
        paths = sorted(Path(f"{folder}{slash}" or ".").glob(f"{start}*" if start else "*.y*ml"))
        files = [f"{folder}{slash}{path.name}" for path in paths if path.suffix in (".yaml", ".yml")]
        return files + [f"{folder}{slash}{path.name}/" for path in paths if path.is_dir()]
    return []
