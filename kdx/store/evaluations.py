"""Evaluations of completed runs: what is recorded of each, once, and what is read of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select, update

from kdx.components.registry import components_of
from kdx.store.backend import insert_rows
from kdx.store.components import keep
from kdx.store.database import Database
from kdx.store.reading import evaluations_where
from kdx.store.recording import keep_once, storable
from kdx.store.records import DocumentRecord, EvaluationRecord, RunState
from kdx.store.schema import (
    LINE,
    among,
    bits_of,
    definitions,
    environment,
    evaluation,
    evaluation_document,
    evaluation_metric,
    now,
    run,
    sweep,
    value_of,
)

if TYPE_CHECKING:
    from kdx.grid.plan import Plan


@dataclass(frozen=True)
class EvaluationResult:
    """What making an evaluation gave, or why it gave nothing."""

    settings_id: str
    settings: Mapping[str, Any]
    weights_sha256: str | None
    environment: Mapping[str, Any] | None = None
    code_fingerprint: str | None = None
    data_fingerprint: str | None = None
    longest_context: int | None = None
    definitions: Mapping[str, str] | None = None
    metrics: Mapping[str, float] | None = None
    documents: DocumentRecord | None = None
    error: str | None = None


def ask_for(database: Database, sweep_id: int, plan: "Plan") -> None:
    """Make a sweep have the evaluations and tables of a plan, and no others; custom metrics of them are recorded."""
    with database.write() as connection:
        grid = connection.scalar(select(sweep.c.grid).where(sweep.c.id == sweep_id))
        changed = {**(grid or {}), "evaluations": plan.grid["evaluations"], "tables": plan.grid["tables"]}
        connection.execute(update(sweep).where(sweep.c.id == sweep_id).values(grid=changed))
        keep(connection, database, components_of(plan.components))


def record(database: Database, run_id: int, result: EvaluationResult) -> bool:
    """Record an evaluation of a completed run, and return whether it is new.

    One that is there stays, but one that failed gives way. So it does no harm to make an evaluation twice.
    """
    return database.persist(lambda: _record(database, run_id, result))


def _record(database: Database, run_id: int, result: EvaluationResult) -> bool:
    # The key of the evaluation keeps it apart from others; the run is final, and stays so.
    with database.write(alone=False) as connection:
        if connection.scalar(select(run.c.state).where(run.c.id == run_id)) != RunState.COMPLETED:
            return False
        values = {
            "settings": dict(result.settings),
            "made": now(),
            "weights_sha256": result.weights_sha256,
            "data_fingerprint": result.data_fingerprint,
            "code_fingerprint": result.code_fingerprint,
            "environment_id": keep_once(connection, database, environment, result.environment),
            "longest_context": result.longest_context,
            "definitions_id": keep_once(connection, database, definitions, result.definitions),
            "error": result.error and storable(result.error)[:LINE],
        }
        put = database.upsert(evaluation, ["run_id", "settings_id"], values, where=evaluation.c.error.is_not(None))
        put = put.values(run_id=run_id, settings_id=result.settings_id, **values)
        key = connection.scalar(put.returning(evaluation.c.id))
        if key is None:
            return False
        rows = [
            {"name": name, "value": value_of(bits), "bits": bits}
            for name, value in (result.metrics or {}).items()
            for bits in [bits_of(value)]
        ]
        insert_rows(connection, evaluation_metric.insert().values(evaluation_id=key), rows)
        if result.documents:
            by_document = {"unit": result.documents.unit, "sums": dict(result.documents.sums)}
            connection.execute(evaluation_document.insert().values(evaluation_id=key, **by_document))
        return True


def forget_failed(database: Database, run_ids: Iterable[int]) -> int:
    """Forget the evaluations of these runs that failed, so that they are made again; return their number."""
    with database.write() as connection:
        failed = delete(evaluation).where(among(evaluation.c.run_id, run_ids), evaluation.c.error.is_not(None))
        return connection.execute(failed).rowcount


def recorded(database: Database, cell_ids: Iterable[str]) -> dict[int, dict[str, str | None]]:
    """Return run id → settings' id → why that evaluation failed or None, of the runs of these cells."""
    of_cells = evaluation.c.run_id.in_(select(run.c.id).where(among(run.c.cell_id, cell_ids)))
    errors: dict[int, dict[str, str | None]] = {}
    with database.read() as connection:
        columns = select(evaluation.c.run_id, evaluation.c.settings_id, evaluation.c.error)
        for row in connection.execute(columns.where(of_cells)):
            errors.setdefault(row.run_id, {})[row.settings_id] = row.error
    return errors


def of_runs(database: Database, run_ids: Collection[int]) -> dict[int, dict[str, EvaluationRecord]]:
    """Return run id → settings' id → evaluation, for these runs."""
    with database.read() as connection:
        return evaluations_where(connection, among(evaluation.c.run_id, run_ids))
