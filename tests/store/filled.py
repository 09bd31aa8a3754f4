"""Databases to be imported: one with rows in every table, and others made of a few words."""

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from kdx.store.database import Database
from kdx.store.recording import facts_id, register
from kdx.store.records import RunState
from kdx.store.schema import attempt, bits_of, environment, metadata, metric, output, plan, run, sweep, value_of

QUIET_NAN = value_of(0x7FF8_0000_0000_BEEF)
"""A NaN with a payload."""
HASH = "0123456789abcdef" * 4

ROWS: dict[str, list[dict[str, Any]]] = {
    "environment": [{"id": "e" * 32, "environment": {"torch": "2", "anything": [1e300, None]}}],
    "definitions": [{"id": "d" * 32, "definitions": {"bleu": "ü", "": ""}}],
    "component": [
        {"id": HASH, "sha256": HASH, "axis": "kernel", "word": "a.py:A", "name": "A", "path": "a.py"}
        | {"sources": {"a.py": "x = '\\x00 ü'\n"}, "package": "", "created": 1.5}
    ],
    "attempt": [
        {"run_id": 1, "number": 1, "owner": "b/1", "started": 1.25, "ended": 2.5, "outcome": "lost", "first_step": 0},
        {"run_id": 1, "number": 2, "owner": "b/2", "started": 3.0, "first_step": 7, "environment_id": "e" * 32},
    ],
    "metric": [
        {"run_id": 1, "name": f"odd/{number}", "step": number, "value": value, "bits": bits_of(value)}
        | {"writes": 1, "differs": 0}
        for number, value in enumerate([QUIET_NAN, -QUIET_NAN, math.inf, -0.0, 5e-324, 0.1, 3.0])
    ],
    "output": [{"run_id": 2, "name": "test/x", "lines": b"\x00\xff\x80", "count": 1, "sha256": HASH}],
    "evaluation": [
        {"id": 7, "run_id": 1, "settings_id": "a" * 32, "settings": {"b": 1, "a": 2}, "made": 4.0, "error": "no room"}
        | {"definitions_id": "d" * 32}
    ],
    "evaluation_metric": [{"evaluation_id": 7, "name": "bleu", "value": 1.0, "bits": bits_of(1.0)}],
    "test_document": [{"run_id": 1, "unit": "block", "sums": {"targets": [1, 2], "nats": [0.1, 2e-9]}}],
    "evaluation_document": [{"evaluation_id": 7, "unit": "block", "sums": {"targets": []}}],
    "search": [{"id": "5" * 32, "made": 1.0, "search": {"tuning": {"seeds": [0, 1]}}}],
    "remark": [
        {"id": 9, "made": 1.0, "run_id": 1, "kind": "note", "text": "line\nline \u202e"},
        {"id": 4, "made": 1.0, "sweep_id": 1, "kind": "tag", "text": "baseline"},
        {"id": 3, "made": 5.0, "run_id": 2, "kind": "invalidation", "text": "odd"},
    ],
}


def fill(database: Database, planned: Any) -> None:
    """Plans a sweep and puts further rows, with odd values, into all tables that a plan leaves empty."""
    register(database, planned)
    cells = [cell.id for cell in planned.cells]
    more = {
        "sweep_search": [{"sweep_id": 1, "ordinal": 0, "search_id": "5" * 32, "labels": {"k": "v"}, "trials": 3}],
        "trial": [
            {"search_id": "5" * 32, "number": 0, "parameters": {"lr": 0.1}, "attributes": {}, "cell_id": cells[1]}
        ],
        "run": [
            {"cell_id": cells[1], "seed": 0, "search_id": "5" * 32, "generation": 0, "state": "diverged"}
            | {
                "attempt": 1,
                "progress_step": 4,
                "stalls": 0,
                "valid_score": QUIET_NAN,
                "valid_bits": bits_of(QUIET_NAN),
            }
        ],
    }
    with database.write() as connection:
        for table in metadata.sorted_tables:
            for row in {**ROWS, **more}.get(table.name, ()):
                connection.execute(insert(table), row)


def natural(database: Database) -> dict[str, list[str]]:
    """Table → its rows as text, sorted, in which what a number refers to stands in place of the number."""
    with database.read() as connection:
        rows = {
            table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
            for table in metadata.sorted_tables
            if table.name != "identity"
        }
    names: dict[str, dict[int, Any]] = {"run": {}, "sweep": {}, "plan": {}, "evaluation": {}}
    for row in rows["run"]:
        names["run"][row["id"]] = (row["cell_id"], row["seed"], row["search_id"], row["generation"])
    for row in rows["sweep"]:
        names["sweep"][row["id"]] = row["name"]
    for row in rows["evaluation"]:
        names["evaluation"][row["id"]] = (names["run"][row["run_id"]], row["settings_id"])
    last = {row["sweep_id"]: row["id"] for row in sorted(rows["plan"], key=lambda row: row["id"])}
    for row in rows["plan"]:
        names["plan"][row["id"]] = (row["sweep_id"], row["made"], str(row["grid"]), row["id"] in last.values())
        row["followed"] = row["id"] in last.values()
    found = {}
    for name, its in rows.items():
        for row in its:
            for table, known in names.items():
                column = f"{table}_id"
                if row.get(column) in known:
                    row[column] = known[row[column]]
            if metadata.tables[name].autoincrement_column is not None:
                del row["id"]
        found[name] = sorted(repr(sorted(row.items(), key=lambda item: item[0])) for row in its)
    return found


def made(backend: Any, folder: Path) -> str:
    """Makes a database without a sweep in a folder of its own, and returns its address."""
    folder.mkdir(parents=True)
    return str(backend.make(folder))


def plan_at(database: Database, plan_of: Any, seeds: list[int], made: float, name: str = "demo", cells: int = 2) -> int:
    """Plans a sweep of so many cells at a time of one's choice."""
    sweep_id = register(database, plan_of(cells, seeds, name))
    with database.write() as connection:
        connection.execute(update(sweep).where(sweep.c.id == sweep_id).values(created=made, updated=made))
        connection.execute(update(plan).where(plan.c.sweep_id == sweep_id).values(made=made))
    return sweep_id


def came_to(
    database: Database,
    run_id: int,
    state: str,
    *,
    value: float = 1.0,
    step: int = 10,
    host: str = "a",
    at: float = 100.0,
) -> None:
    """The run ended so, with a metric, a text and an attempt."""
    place = {"id": facts_id({"processor": host}), "environment": {"processor": host}}
    final = state in ("completed", "diverged", "pruned")
    scores: Mapping[str, Any] = (
        {"valid_score": value, "valid_bits": bits_of(value), "valid_step": step} if final else {}
    )
    with database.write() as connection:
        if connection.scalar(select(environment.c.id).where(environment.c.id == place["id"])) is None:
            connection.execute(insert(environment), place)
        began = {"state": state, "attempt": 1, "owner": host, "progress_step": step, "environment_id": place["id"]}
        connection.execute(update(run).where(run.c.id == run_id).values(**began, **scores, code_fingerprint="code"))
        tried = {"run_id": run_id, "number": 1, "owner": host, "started": at, "ended": at + step, "first_step": 0}
        connection.execute(insert(attempt), tried | {"outcome": state, "environment_id": place["id"]})
        number = {"run_id": run_id, "name": "valid/loss", "step": step, "value": value, "bits": bits_of(value)}
        connection.execute(insert(metric), number | {"writes": 1, "differs": 0})
        text = json.dumps([str(value)]).encode()
        sha256 = hashlib.sha256(text).hexdigest()
        texts = {"run_id": run_id, "name": "test/x", "lines": zlib.compress(text), "count": 1, "sha256": sha256}
        connection.execute(insert(output).values(texts))


def run_of(database: Database, cell: int, seed: int, generation: int = 0) -> int:
    """The id of a run, by the place of its cell among all."""
    with database.read() as connection:
        ids = sorted(set(connection.scalars(select(run.c.cell_id))))
        which = (run.c.cell_id == ids[cell], run.c.seed == seed, run.c.generation == generation)
        return connection.execute(select(run.c.id).where(*which)).scalar_one()


def states(database: Database) -> dict[tuple[str, int, int], RunState]:
    with database.read() as connection:
        rows = connection.execute(select(run.c.cell_id, run.c.seed, run.c.generation, run.c.state))
        return {(row[0], row[1], row[2]): RunState(row[3]) for row in rows}
