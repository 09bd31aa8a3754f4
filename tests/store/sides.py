"""Databases that are to be joined, made of a few words."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from kdx.store.database import Database
from kdx.store.recording import environment_id, register, repeat
from kdx.store.records import RunState
from kdx.store.schema import attempt, bits_of, environment, metric, output, plan, run, sweep


def made(backend: Any, folder: Path) -> str:
    """Makes a database without a sweep in a folder of its own, and returns its address."""
    folder.mkdir(parents=True)
    return str(backend.make(folder))


def plan_at(database: Database, plan_of: Any, seeds: list[int], made: float, name: str = "demo", cells: int = 2) -> int:
    """Plans a sweep of so many cells at a time of one's choice."""
    sweep_id = register(database, plan_of(cells, seeds, name), {"tables": [], "seeds": seeds})
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
    place = {"id": environment_id({"processor": host}), "environment": {"processor": host}}
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


def again(database: Database, run_id: int) -> int:
    """The further generation of a finished run."""
    (added,) = repeat(database, [run_id])
    return added


def states(database: Database) -> dict[tuple[str, int, int], RunState]:
    with database.read() as connection:
        rows = connection.execute(select(run.c.cell_id, run.c.seed, run.c.generation, run.c.state))
        return {(row[0], row[1], row[2]): RunState(row[3]) for row in rows}
