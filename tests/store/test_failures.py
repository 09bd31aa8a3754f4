"""How runs failed, and what the processes that tried them have completed."""

from kdx.store import claims, recording
from kdx.store.database import Database
from kdx.store.failures import failures, last_successes
from kdx.store.recording import RunWriter
from kdx.store.records import RunState


def end(database: Database, run_id: int, owner: str, error: str | None) -> None:
    writer = RunWriter(database, run_id, owner, claims.claim(database, run_id, owner, 60))
    writer.fail(error, f"trace of {error}", 3) if error else writer.complete(0.5, 10, 0.5, {}, 10)


def test_failures_are_of_runs_that_nobody_has_tried_again(database: Database, sweep_id: int):
    end(database, 2, "one", "boom")
    end(database, 1, "other", "bang")
    end(database, 3, "one", None)
    found = failures(database)
    assert [(one.run_id, one.owner, one.error, one.traceback) for one in found] == [
        (2, "one", "boom", "trace of boom"),
        (1, "other", "bang", "trace of bang"),
    ]
    assert found[0].ended <= found[1].ended
    assert [one.run_id for one in failures(database, [1, 3])] == [1]
    recording.reset(database, [2], (RunState.FAILED,))
    assert [one.run_id for one in failures(database)] == [1]


def test_a_success_is_the_last_final_state_of_a_run_of_a_process(database: Database, sweep_id: int):
    end(database, 1, "one", None)
    end(database, 2, "one", "boom")
    end(database, 3, "other", "boom")
    (failed, _) = failures(database)
    found = last_successes(database, 0.0)
    assert found.keys() == {"one"} and found["one"] <= failed.ended
    assert last_successes(database, found["one"] + 1000) == {}
