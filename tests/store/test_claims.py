import json
import os
import time

import pytest
from stored import WRITES, lapse, record, start, state

from kdx.store import claims, reading, recording
from kdx.store.claims import Fenced
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter, register
from kdx.store.records import RunState

# Claiming


def test_a_claim_takes_the_run_and_numbers_the_attempt(database: Database, sweep_id: int):
    before = time.time()
    assert claims.claim(database, 1, "me", 3600) == 1
    claimed = record(database)
    assert (claimed.state, claimed.owner, claimed.attempt) == (RunState.RUNNING, "me", 1)
    assert 3000 < claimed.lease_left <= 3600
    (attempt,) = reading.attempts(database, 1)
    assert (attempt.number, attempt.owner, attempt.ended, attempt.outcome) == (1, "me", None, None)
    assert before - 0.01 < attempt.started < time.time() + 0.01


def test_a_claimed_run_cannot_be_claimed(database: Database, sweep_id: int):
    start(database)
    assert claims.claim(database, 1, "you", 60) is None
    assert claims.claim(database, 1, "me", 60) is None
    assert claims.claim(database, 1, "you", 60, dead_owners=["him"]) is None


@pytest.mark.parametrize("outcome", ["complete", "diverge", "prune", "fail"])
def test_an_ended_run_cannot_be_claimed(database: Database, sweep_id: int, outcome: str):
    WRITES[outcome](start(database))
    assert claims.claim(database, 1, "you", 60, dead_owners=["me"]) is None


def test_there_is_no_claiming_a_run_that_is_not_there(database: Database, sweep_id: int):
    assert claims.claim(database, 99, "me", 60) is None


def test_an_interrupted_run_can_be_claimed(database: Database, sweep_id: int):
    start(database).interrupt(10)
    assert claims.claim(database, 1, "you", 60) == 2


def test_a_run_whose_lease_lapsed_can_be_claimed(database: Database, sweep_id: int):
    start(database)
    before = time.time()
    lapse(database, seconds=1000)
    after = time.time()
    assert record(database).lease_left < -999
    assert claims.claim(database, 1, "you", 60) == 2
    lost, now = reading.attempts(database, 1)
    assert (lost.outcome, now.outcome) == ("lost", None)
    # It is held to have ended with its lease, not when somebody came by.
    assert before - 1000.01 < lost.ended < after - 999.99


def test_a_run_of_a_dead_owner_can_be_claimed_at_once(database: Database, sweep_id: int):
    start(database)
    before = time.time()
    assert claims.claim(database, 1, "you", 60, dead_owners=["him", "me"]) == 2
    assert before - 0.01 < reading.attempts(database, 1)[0].ended < time.time() + 0.01


def test_a_death_that_its_sweep_did_not_live_to_see_is_no_stall(database: Database, sweep_id: int):
    """The power fails, or somebody kills all processes: that says nothing of the run."""
    for number in (1, 2, 3, 4, 5):
        assert claims.claim(database, 1, "me", 60) == number
        lapse(database)
    assert (record(database).state, record(database).stalls) == (RunState.RUNNING, 0)
    for number in (5, 6):
        assert claims.abandon(database, 1, "me", number, "its server is gone", stalled=False) is RunState.INTERRUPTED
        assert claims.claim(database, 1, "me", 60) == number + 1
    assert record(database).stalls == 0
    assert [attempt.outcome for attempt in reading.attempts(database, 1)] == ["lost"] * 6 + [None]


@pytest.mark.slow
def test_eight_processes_claim_a_hundred_runs_once_each(
    database: Database, address: str, plan_of, in_processes, figure
):
    register(database, plan_of(10, 10))
    run_ids = [each.id for each in reading.runs(database, 1)]

    def claim_all() -> str:
        mine = []
        with open_database(address, write=True) as own:
            for run_id in run_ids:
                if claims.claim(own, run_id, str(os.getpid()), 60) is not None:
                    mine.append(run_id)
        return json.dumps(mine)

    claimed = [json.loads(answer) for answer in in_processes(claim_all, 8)]
    taken = sorted(run_id for mine in claimed for run_id in mine)
    assert taken == sorted(run_ids)
    assert {(each.state, each.attempt) for each in reading.runs(database, 1)} == {(RunState.RUNNING, 1)}
    figure(f"{len(claimed)} processes claimed {len(taken)} runs, {len(taken) - len(set(taken))} of them twice")


def test_renewing_extends_every_lease_of_the_owner_and_no_other(database: Database, sweep_id: int):
    for run_id, owner in [(1, "me"), (2, "me"), (3, "you")]:
        start(database, run_id, owner)
    start(database, 4).interrupt(0)
    assert claims.renew(database, "me", 1000) == 2
    left = [record(database, run_id).lease_left for run_id in (1, 2, 3, 4)]
    assert left == [pytest.approx(1000, abs=50), pytest.approx(1000, abs=50), pytest.approx(60, abs=50), None]


def test_an_abandoned_run_is_interrupted_and_its_attempt_says_why(database: Database, sweep_id: int):
    start(database).record([], 7)
    assert claims.abandon(database, 1, "me", 1, "killed by SIGKILL") is RunState.INTERRUPTED
    assert (state(database), record(database).stalls, record(database).error) == (RunState.INTERRUPTED, 0, None)
    (attempt,) = reading.attempts(database, 1)
    assert (attempt.outcome, attempt.last_step, attempt.traceback) == ("lost", 7, "killed by SIGKILL")


def test_a_run_abandoned_three_times_without_progress_fails_for_the_last_reason(database: Database, sweep_id: int):
    start(database).record([], 7)
    claims.abandon(database, 1, "me", 1, "killed by SIGKILL")
    for number, stalls in [(2, 1), (3, 2), (4, 3)]:
        start(database).record([], 5)
        left = claims.abandon(database, 1, "me", number, f"killed, number {number}")
        assert (left, record(database).stalls) == (RunState.FAILED if stalls == 3 else RunState.INTERRUPTED, stalls)
    assert record(database).error == "killed, number 4"


def test_only_the_running_attempt_can_be_abandoned(database: Database, sweep_id: int):
    start(database).complete(1.0, 5, 1.0, {}, 10)
    assert claims.abandon(database, 1, "me", 1, "killed") is None
    assert state(database) is RunState.COMPLETED
    start(database, 2)
    assert claims.abandon(database, 2, "me", 2, "killed") is None
    assert claims.abandon(database, 2, "you", 1, "killed") is None
    assert state(database, 2) is RunState.RUNNING


def test_a_run_that_may_live_is_abandoned_only_while_its_lease_has_lapsed(database: Database, sweep_id: int):
    start(database)
    assert claims.abandon(database, 1, "me", 1, "silent", only_lapsed=True) is None
    assert state(database) is RunState.RUNNING
    lapse(database)
    assert claims.abandon(database, 1, "me", 1, "silent", only_lapsed=True) is RunState.INTERRUPTED


# Dying without a word


def test_stalls_count_attempts_in_a_row_that_died_without_a_higher_step(database: Database, sweep_id: int):
    stalls = []
    for number, last_step in enumerate((0, 0, 5, 5, 3, 6), 1):
        start(database).record([], last_step)
        claims.abandon(database, 1, "me", number, "killed")
        stalls.append(record(database).stalls)
    assert stalls == [1, 2, 0, 1, 2, 0]
    assert [attempt.first_step for attempt in reading.attempts(database, 1)] == [0, 0, 0, 5, 5, 5]
    assert [attempt.last_step for attempt in reading.attempts(database, 1)] == [0, 0, 5, 5, 5, 6]


def test_an_attempt_that_ends_at_a_safe_point_is_no_stall(database: Database, sweep_id: int):
    for _ in range(3):
        start(database).interrupt(0)  # a full disk, or somebody in a hurry
    start(database)
    assert claims.abandon(database, 1, "me", 4, "killed") is RunState.INTERRUPTED
    start(database).interrupt(0)
    assert record(database).stalls == 1, "nor is it progress"
    start(database).interrupt(3)
    assert record(database).stalls == 0


def test_a_later_checkpoint_is_progress_where_the_rows_are_not(database: Database, sweep_id: int):
    """A run that was begun anew writes rows that are there already."""
    start(database).record([], 8000)
    claims.abandon(database, 1, "me", 1, "killed")
    for number, (resumed_step, reached) in enumerate([(0, 3000), (2900, 5500), (5400, 7900), (7800, 7950)], 2):
        hand = start(database)
        hand.begin({}, "data", "code", resumed_step)
        hand.record([], reached)
        assert claims.abandon(database, 1, "me", number, "killed") is RunState.INTERRUPTED
    for number, left in ((6, RunState.INTERRUPTED), (7, RunState.FAILED)):
        start(database).begin({}, "data", "code", 7800)
        assert claims.abandon(database, 1, "me", number, "killed") is left


# Losing the claim


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_attempt_that_lost_its_run_can_write_nothing(
    backend, address: str, database: Database, sweep_id: int, write
):
    hung = start(database)
    lapse(database)
    assert claims.claim(database, 1, "me", 60) == 2
    before = backend.content(address)
    with pytest.raises(Fenced, match="attempt 1 of me no longer has run 1"):
        write(hung)
    assert backend.content(address) == before
    write(RunWriter(database, 1, "me", 2))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_run_that_ended_can_be_written_no_more(database: Database, sweep_id: int, write):
    hand = start(database)
    hand.complete(2.0, 1, 2.0, {}, 1)
    with pytest.raises(Fenced):
        write(hand)
    assert record(database).test_score == 2.0


def test_a_stranger_can_write_nothing(database: Database, sweep_id: int):
    start(database)
    with pytest.raises(Fenced):
        RunWriter(database, 1, "you", 1).record([], 1)


def test_runs_that_are_not_over_are_cancelled_and_a_worker_is_fenced(database: Database, sweep_id: int):
    at_work = start(database, 1)
    at_work.record([("train/loss", 7, 1.0)], 7)
    start(database, 2).interrupt(3)
    start(database, 3).complete(1.0, 10, 1.0, {}, 10)
    assert claims.cancel(database, [1, 2, 3, 4, 99]) == {1: True, 2: False, 4: False}
    assert [state(database, run_id) for run_id in (1, 2, 3, 4)] == [
        *(RunState.CANCELLED, RunState.CANCELLED, RunState.COMPLETED, RunState.CANCELLED)
    ]
    for late in (
        lambda: at_work.record([], 8),
        lambda: at_work.complete(1.0, 1, 1.0, {}, 8),
        lambda: at_work.interrupt(8),
    ):
        with pytest.raises(Fenced):
            late()
    (attempt,) = reading.attempts(database, 1)
    assert (attempt.outcome, attempt.last_step, attempt.ended is None) == ("cancelled", 7, False)
    assert claims.claim(database, 1, "other", 60) is None
    assert claims.cancel(database, [1]) == {}


def test_a_cancelled_run_is_taken_up_again_with_its_progress(database: Database, sweep_id: int):
    start(database, 1).record([("train/loss", 7, 1.0)], 7)
    claims.cancel(database, [1])
    recording.reset(database, [1], (RunState.CANCELLED,))
    assert (state(database), record(database).progress_step) == (RunState.PENDING, 7)
    assert claims.claim(database, 1, "other", 60) == 2
