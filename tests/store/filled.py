"""A database with rows in every table of kdx, as no sweep of tests would leave them together."""

import json
import math
from typing import Any

from sqlalchemy import insert

from kdx.store.database import Database
from kdx.store.recording import register
from kdx.store.schema import bits_of, metadata, value_of

QUIET_NAN = value_of(0x7FF8_0000_0000_BEEF)
"""A NaN with a payload."""
HASH = "0123456789abcdef" * 4

ROWS: dict[str, list[dict[str, Any]]] = {
    "environment": [{"id": "e" * 32, "environment": {"torch": "2", "anything": [1e300, None]}}],
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


def fill(database: Database, plan: Any) -> None:
    """Plans a sweep and puts further rows, with odd values, into all tables that a plan leaves empty."""
    register(database, plan, {"tables": [], "seeds": [0, 1], "command": "kdx sweep"})
    cells = [one.id for one in plan.cells]
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


def contents(database: Database) -> dict[str, list[str]]:
    """Table → its rows as text, sorted, with JSON parsed and numbers by their bits alone."""
    found = {}
    with database.read() as connection:
        for table in metadata.sorted_tables:
            rows = connection.execute(table.select()).mappings()
            columns = [one.name for one in table.c if one.name not in ("value", "valid_score", "test_score")]
            found[table.name] = sorted(json.dumps([repr(row[name]) for name in columns]) for row in rows)
    return found


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
