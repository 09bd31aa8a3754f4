"""How runs failed."""

from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.failures import FailureRecord, failures
from kdx.store.recording import RunWriter
from kdx.store.records import RunState


def end(database: Database, run_id: int, owner: str, error: str | None) -> None:
    writer = RunWriter(database, run_id, owner, claims.claim(database, run_id, owner, 60))
    writer.fail(error, f"trace of {error}", 3) if error else writer.complete(0.5, 10, 0.5, {}, 10)


def test_failures_are_of_runs_that_nobody_has_tried_again(database: Database, sweep_id: int):
    end(database, 2, "one", "boom")
    end(database, 1, "other", "bang")
    end(database, 3, "one", None)
    failed = {run.id: run.cell_id for run in reading.runs(database, sweep_id)}
    assert failures(database, [1, 2, 3]) == (
        FailureRecord(2, failed[2], "boom", "trace of boom"),
        FailureRecord(1, failed[1], "bang", "trace of bang"),
    )
    assert [failure.run_id for failure in failures(database, [1, 3])] == [1]
    recording.reset(database, [2], (RunState.FAILED,))
    assert [failure.run_id for failure in failures(database, [1, 2, 3])] == [1]
