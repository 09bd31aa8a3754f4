import hashlib
import math
import struct
import zlib
from collections import Counter
from dataclasses import replace

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stored import record, rows, start

from kdx.errors import DatabaseError, KdxError
from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.records import DocumentRecord, RunState
from kdx.store.schema import cell, definitions, environment, metric, output, run, sweep, sweep_cell, sweep_run, value_of

FLOATS = st.floats() | st.integers(-(2**63), 2**63 - 1).map(value_of)
SPECIAL = [float("nan"), -float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 5e-324, 1.7976931348623157e308, 0.1]


def pattern(value: float) -> bytes:
    return struct.pack("<d", value)


# Planning


def test_a_plan_becomes_a_sweep_with_pending_runs(database: Database, plan_of):
    plan = plan_of(2, [3, 5])
    assert recording.register(database, plan) == 1
    assert [(row.name, row.grid) for row in rows(database, sweep)] == [("demo", plan.grid)]
    assert {(row.id, row.spec) for row in rows(database, cell)} == {(c.id, c.spec.text) for c in plan.cells}
    records = reading.runs(database, 1)
    assert [each.key for each in records] == [planned.key for planned in plan.runs]
    assert {(r.generation, r.state, r.attempt, r.owner, r.progress_step, r.stalls) for r in records} == {
        (0, RunState.PENDING, 0, None, 0, 0)
    }


def test_registering_again_changes_nothing(database: Database, plan_of):
    tables = (sweep_cell, sweep_run, cell, run)
    assert recording.register(database, plan_of()) == recording.register(database, plan_of())
    once = [rows(database, table) for table in tables]
    start(database).complete(1.0, 5, 1.0, {}, 10)
    assert recording.register(database, plan_of()) == 1
    assert [rows(database, table) for table in tables[:3]] == once[:3]
    assert [each.state for each in reading.runs(database, 1)].count(RunState.COMPLETED) == 1
    assert len(rows(database, sweep)) == 1


def test_more_seeds_add_only_the_new_runs(database: Database, plan_of):
    recording.register(database, plan_of(2, 2))
    before = reading.runs(database, 1)
    recording.register(database, plan_of(2, 3))
    assert set(before) < set(reading.runs(database, 1))
    assert [each.seed for each in set(reading.runs(database, 1)) - set(before)] == [2, 2]


def test_what_a_plan_leaves_out_is_kept_and_no_longer_planned(database: Database, plan_of):
    recording.register(database, plan_of([0, 1], 2))
    start(database, 1).complete(1.0, 5, 1.0, {}, 10)
    less = plan_of([1], 1)
    recording.register(database, less)
    assert len(reading.runs(database, 1)) == 1
    assert [(len(each.cells), each.grid) for each in [reading.load_sweep(database)]] == [(1, less.grid)]
    assert len(rows(database, cell)) == 2
    assert Counter(row.planned for row in rows(database, sweep_run)) == {True: 1, False: 3}
    assert len(rows(database, run)) == 4

    recording.register(database, plan_of([0, 1], 2))
    assert Counter(each.state for each in reading.runs(database, 1)) == {RunState.COMPLETED: 1, RunState.PENDING: 3}


def test_sweeps_share_their_runs(database: Database, plan_of):
    first = recording.register(database, plan_of([0, 1], 2, "table 1"))
    second = recording.register(database, plan_of([1, 2], 2, "table 2"))
    shared = set(reading.runs(database, first)) & set(reading.runs(database, second))
    assert len(shared) == 2
    start(database, min(each.id for each in shared)).complete(1.0, 5, 2.0, {}, 10)
    for sweep_id in (first, second):
        assert [each.test_score for each in reading.runs(database, sweep_id)].count(2.0) == 1


def test_two_choices_may_come_to_one_cell(database: Database, plan_of):
    plan = plan_of([0, 1, 0], 2)
    again = replace(plan.cells[2], labels={"kernel": "the same, otherwise said"})
    recording.register(database, replace(plan, cells=(*plan.cells[:2], again)))
    loaded = reading.load_sweep(database)
    assert [each.id for each in loaded.cells] == [plan.cells[number].id for number in (0, 1, 0)]
    assert [each.labels["kernel"] for each in loaded.cells] == ["number 0", "number 1", "the same, otherwise said"]
    assert len(loaded.runs) == 4


def test_an_empty_plan_is_a_sweep_without_runs(database: Database, plan_of):
    assert reading.runs(database, recording.register(database, plan_of(0, 0))) == ()
    assert reading.runs(database, recording.register(database, plan_of(2, 0))) == ()


def test_statements_of_a_registration_do_not_grow_with_the_plan(database: Database, plan_of, statements):
    with statements() as few:
        recording.register(database, plan_of(2, 1, "small"))
    large = plan_of(100, 100, "large")
    with statements() as many:
        recording.register(database, large)
    assert len(many) == len(few) <= 11
    assert len(reading.runs(database, 2)) == 10_000


def test_repeating_adds_a_generation_to_finished_runs_only(database: Database, sweep_id: int):
    start(database, 1).complete(1.0, 5, 1.0, {}, 10)
    start(database, 2).diverge("loss is nan", 10)
    start(database, 3).interrupt(10)
    new = recording.repeat(database, [1, 2, 3, 4])
    assert new == (5, 6)
    assert recording.repeat(database, [1, 2]) == ()
    newest = {(each.cell_id, each.seed): each for each in reading.runs(database, sweep_id)}
    assert len(newest) == 4
    assert sorted(each.generation for each in newest.values()) == [0, 0, 1, 1]
    start(database, 5).complete(1.0, 5, 1.0, {}, 10)
    assert recording.repeat(database, [1]) == ()
    assert recording.repeat(database, [5]) == (7,)


def test_failed_runs_are_reset_in_their_sweep_only(database: Database, plan_of):
    first = recording.register(database, plan_of([0], 2, "one"))
    second = recording.register(database, plan_of([1], 1, "two"))
    for run_id in (1, 3):
        start(database, run_id).fail("ValueError: no", "Traceback", 0)
    assert recording.reset(database, [run.id for run in reading.runs(database, first)], (RunState.FAILED,)) == 1
    again = reading.runs(database, first)[0]
    assert (again.state, again.stalls, again.error, again.attempt) == (RunState.PENDING, 0, None, 1)
    assert reading.runs(database, second)[0].state is RunState.FAILED
    assert claims.claim(database, 1, "me", 60) == 2


def test_a_pruned_run_keeps_its_best_validation_and_why_it_was_pruned(database: Database, sweep_id: int):
    start(database).prune("worse than the median", 10, 3.5, 5, {"valid/loss": "in nats"}, "ab" * 32)
    pruned = record(database)
    assert (pruned.state, pruned.error, pruned.progress_step) == (RunState.PRUNED, "worse than the median", 10)
    assert (pruned.valid_score, pruned.valid_step, pruned.test_score) == (3.5, 5, None)
    assert pruned.weights_sha256 == "ab" * 32
    assert [attempt.outcome for attempt in reading.attempts(database, 1)] == ["pruned"]
    assert recording.repeat(database, [1]) == (5,)  # final, so that it can be done again


# Recording


def test_every_double_survives_storing(database: Database, sweep_id: int, figure):
    hand, survived = start(database), []

    @settings(deadline=None, max_examples=40)
    @given(st.lists(FLOATS, min_size=1, max_size=20))
    @example(SPECIAL)
    def survive(values: list[float]) -> None:
        hand.record([("valid/loss", step, value) for step, value in enumerate(values)], 0)
        stored = reading.curve(database, 1, "valid/loss")[: len(values)]
        assert [pattern(value) for _, value in stored] == [pattern(value) for value in values]
        survived.extend(values)

    survive()
    infinite = numpy.count_nonzero(~numpy.isfinite(survived))
    figure(f"{len(survived)} numbers, {infinite} of them infinite or NaN, each back with the same bits")


def test_every_score_survives_storing(database: Database, plan_of):
    recording.register(database, plan_of(1, 2 * len(SPECIAL)))
    for number, score in enumerate(SPECIAL):
        start(database, 2 * number + 1).complete(score, 5, score, {}, 10)
        start(database, 2 * number + 2).diverge("loss is nan", 10, score, 5, score)
    for ended in reading.runs(database, 1):
        assert pattern(ended.valid_score) == pattern(ended.test_score) == pattern(SPECIAL[ended.seed // 2])


def test_values_can_be_queried_beside_their_bits(database: Database, sweep_id: int):
    start(database).record([("valid/loss", 0, 2.5), ("valid/loss", 1, float("nan"))], 1)
    number, not_a_number = (row.value for row in rows(database, metric))
    assert number == 2.5 and (not_a_number is None or math.isnan(not_a_number))


def test_a_replay_that_gives_the_same_bits_differs_from_nothing(database: Database, sweep_id: int):
    hand = start(database)
    for value in (float("nan"), float("nan"), 0.0, -0.0, -0.0):
        hand.record([("train/loss", 3, value)], 3)
    (row,) = rows(database, metric)
    assert (row.writes, row.differs) == (5, 2)
    assert pattern(value_of(row.bits)) == pattern(-0.0)


def test_progress_never_falls_in_a_replay(database: Database, sweep_id: int):
    start(database).record([], 20)
    claims.abandon(database, 1, "me", 1, "killed")
    start(database).record([("train/loss", 11, 1.0)], 11)
    assert record(database).progress_step == 20


def test_the_environment_is_kept_once_and_each_run_points_to_it(database: Database, sweep_id: int):
    for run_id in (1, 2):
        start(database, run_id).begin({"torch": "2.13.0", "threads": 1}, "data-hash", "code-hash")
    start(database, 3).begin({"threads": 2, "torch": "2.13.0"}, "data-hash", "code-hash")
    assert sorted(row.environment["threads"] for row in rows(database, environment)) == [1, 2]
    runs = rows(database, run)
    assert runs[0].environment_id == runs[1].environment_id != runs[2].environment_id
    assert {(row.data_fingerprint, row.code_fingerprint) for row in runs} == {
        ("data-hash", "code-hash"),
        (None, None),
    }


@pytest.mark.parametrize("lines", [[], [""], ["a", ""], ["ein Hund", "\ud800", "two\nlines\r\n", "\x00\u2028", "🐈"]])
def test_outputs_come_back_as_they_were(database: Database, sweep_id: int, lines: list[str], figure):
    hand = start(database)
    hand.outputs("test/translations", ["an earlier attempt's"])
    hand.outputs("test/translations", lines)
    assert reading.outputs_of(database, [1], "test/translations").get(1, []) == lines
    (row,) = rows(database, output)
    assert row.count == len(lines)
    assert row.sha256 == hashlib.sha256(zlib.decompress(row.lines)).hexdigest()
    figure(f"{row.count} lines of {sum(map(len, lines))} characters back as they were: {lines!a}")


@pytest.mark.parametrize("value", [None, "1.5", [1.0], numpy.zeros(2), 10**400, 1j], ids=lambda value: repr(value)[:20])
def test_what_is_not_one_number_is_refused_and_nothing_of_its_batch_is_recorded(
    database: Database, sweep_id: int, value: object, figure
):
    hand = start(database)
    with pytest.raises(TypeError, match="train/loss at step 2 is not one number"):
        hand.record([("train/loss", 1, 1.0), ("train/loss", 2, value)], 2)
    assert rows(database, metric) == []
    assert record(database).progress_step == 0
    figure(f"refused, {len(rows(database, metric))} rows of its batch recorded")


@pytest.mark.parametrize("value", [numpy.float32(1.5), numpy.array(1.5), True, 3], ids=repr)
def test_one_number_of_any_type_will_do(database: Database, sweep_id: int, value: float):
    start(database).record([("train/loss", 1, value)], 1)
    assert reading.curve(database, 1, "train/loss") == [(1, float(value))]


def test_of_a_number_recorded_twice_in_a_batch_the_last_counts(database: Database, sweep_id: int, figure):
    start(database).record([("train/loss", 1, 1.0), ("train/loss", 1, 2.0)], 1)
    (row,) = rows(database, metric)
    assert (row.value, row.writes, row.differs) == (2.0, 2, 1)
    figure(f"{row.writes} writes, 1 row: the last value; {row.differs} counted as different")


@pytest.mark.parametrize("name", ["'; DROP TABLE run; --", '"; --', "%", "run WHERE 1=1"])
def test_a_name_is_never_a_statement(database: Database, plan_of, name: str, figure):
    sweep_id = recording.register(database, plan_of(1, 1, name))
    start(database).record([(name, 1, 1.0)], 1)
    assert reading.load_sweep(database, name).id == sweep_id
    assert reading.curve(database, 1, name) == [(1, 1.0)]
    assert reading.outputs_of(database, [1], name).get(1, []) == []
    with pytest.raises(KdxError, match="there is no sweep"):
        reading.load_sweep(database, f"{name}' OR '1'='1")
    assert len(rows(database, run)) == len(rows(database, sweep)) == 1
    figure(f"a name and no more: {len(rows(database, sweep))} of 1 sweeps, {len(rows(database, run))} of 1 runs stand")


def test_a_text_with_nul_is_kept_or_refused_in_one_message(database: Database, plan_of):
    try:
        recording.register(database, plan_of(1, 1, "a\x00b"))
    except DatabaseError as error:
        assert error.problem == "a text has a character NUL, which PostgreSQL does not keep"
        assert rows(database, sweep) == []
    else:
        assert [row.name for row in rows(database, sweep)] == ["a\x00b"]


def test_an_error_with_any_characters_is_recorded(database: Database, sweep_id: int):
    start(database).fail("a\x00b \udc80", "trace\x00 \udc80\n", 0)
    assert record(database).error == "a\\x00b \\udc80"
    assert reading.attempts(database, 1)[0].traceback == "trace\\x00 \\udc80\n"


# Ending


def test_a_run_says_why_it_ended_so(database: Database, sweep_id: int):
    start(database, 1).complete(3.8, 5, 3.9, {}, 5, undertrained="final validation loss 3.775 is not below 3.611")
    start(database, 2).diverge("loss is nan at step 12", 12)
    start(database, 3).fail("ValueError: no", "Traceback (most recent call last):\n…", 3)
    weak, diverged, failed, _ = reading.runs(database, sweep_id)
    assert (weak.state, weak.valid_score, weak.test_score, weak.error) == (RunState.COMPLETED, 3.8, 3.9, None)
    assert weak.undertrained == "final validation loss 3.775 is not below 3.611"
    assert (diverged.state, diverged.error) == (RunState.DIVERGED, "loss is nan at step 12")
    assert (diverged.valid_score, diverged.valid_step, diverged.test_score) == (None, None, None)
    assert (failed.state, failed.error) == (RunState.FAILED, "ValueError: no")
    assert reading.attempts(database, 3)[0].traceback == "Traceback (most recent call last):\n…"


def test_a_completed_run_has_its_scores_and_its_attempt_is_closed(database: Database, sweep_id: int):
    hand = start(database)
    hand.complete(31.5, 400, 30.25, {"bleu": "nrefs:1|case:mixed"}, 500)
    ended = record(database)
    assert (ended.state, ended.valid_score, ended.valid_step, ended.test_score) == (
        RunState.COMPLETED,
        31.5,
        400,
        30.25,
    )
    assert (ended.progress_step, ended.stalls, ended.error, ended.lease_left) == (500, 0, None, None)
    assert reading.origins_of(database, [1])[1].definitions == {"bleu": "nrefs:1|case:mixed"}
    (attempt,) = reading.attempts(database, 1)
    assert (attempt.outcome, attempt.last_step) == ("completed", 500)
    assert ended.seconds == pytest.approx(attempt.ended - attempt.started)


def test_runs_whose_metrics_mean_the_same_share_one_row_of_definitions(database: Database, sweep_id: int):
    for run_id, meaning in ((1, "greedy"), (2, "greedy"), (3, "beam 4")):
        start(database, run_id).complete(1.0, 1, 1.0, {"loss": "nats", "bleu": meaning}, 1)
    origins = reading.origins_of(database, [1, 2, 3])
    assert [origins[run_id].definitions["bleu"] for run_id in (1, 2, 3)] == ["greedy", "greedy", "beam 4"]
    assert len(rows(database, definitions)) == 2


def test_what_a_test_measured_by_document_is_that_of_its_last_attempt(database: Database, plan_of):
    recording.register(database, plan_of(1, 2))
    writer = start(database, 1)
    writer.documents("block", {"targets": [1.0, 2.0], "nats": [0.5, 0.25]})
    again = {"targets": [3.0, 2.0], "nats": [0.1 + 0.2, 1e-300], "right": [3.0, 0.0]}
    writer.documents("article", again)
    assert reading.load_sweep(database).documents == {1: DocumentRecord("article", again)}
