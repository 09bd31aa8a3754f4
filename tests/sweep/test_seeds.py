"""A sweep whose rule adds seeds runs those that are needed, breadth first, and then ends."""

from dataclasses import replace

import pytest

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.report import seeds_until
from kdx.report.tables import tables
from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.records import RunState
from kdx.sweep.decide import Action, Decision, PlanLookups, decide, decisions_in

GRID = """
name: tiny
task: translation
data: {corpus: synthetic-translation}
seeds: {min: 3, max: %(most)s, until: decided}
axes: {kernel: [exponential, rbf, linear]}
tables: [{name: t, rows: [kernel], baseline: exponential, cell: mean}]
"""
SCORES = {
    "exponential": [30.0, 30.1, 29.9, 30.05, 29.95, 30.0, 30.1],
    "rbf": [20.0, 20.1, 19.9, 20.05, 19.95, 20.0, 20.1],
    "linear": [30.35, 29.8, 30.0, 30.1, 29.9, 30.05, 30.0],
}


def planned(tmp_path, most: int = 6) -> Plan:
    (tmp_path / "grid.yaml").write_text(GRID % {"most": most})
    return load_grid(tmp_path / "grid.yaml")


def ended(database: Database, decision: Decision, state: RunState = RunState.COMPLETED) -> None:
    """As if the run had been trained, with its score of `SCORES`."""
    record = decision.record
    assert record
    attempt = claims.claim(database, record.id, "me", 60)
    hand = recording.RunWriter(database, record.id, "me", attempt)
    score = SCORES[decision.run.cell.spec.kernel][decision.run.seed]
    if state is RunState.COMPLETED:
        hand.complete(score, 10, score, {}, 10)
    elif state is RunState.FAILED:
        hand.fail("no way", "", 0)


def swept(database: Database, plan: Plan, fails: tuple[tuple[str, int], ...] = ()) -> list[tuple[str, int]]:
    """(kernel, seed) of each run in the order in which it was begun, one after the other."""
    recording.register(database, plan)
    begun: list[tuple[str, int]] = []
    while able := [one for one in decisions_in(database, plan) if one.action is Action.START]:
        run = (able[0].run.cell.spec.kernel, able[0].run.seed)
        begun.append(run)
        ended(database, able[0], RunState.FAILED if run in fails else RunState.COMPLETED)
    assert {one.action for one in decisions_in(database, plan)} == {Action.SKIP}, "nothing is waited for for ever"
    return begun


FIRST = [(kernel, seed) for seed in range(3) for kernel in SCORES]
OPEN = [(kernel, seed) for seed in range(3, 6) for kernel in ("exponential", "linear")]


def test_seeds_are_added_breadth_first_to_what_is_open_and_to_its_baseline(tmp_path, database):
    plan = planned(tmp_path)
    assert swept(database, plan) == FIRST + OPEN
    said = {(one.run.cell.spec.kernel, one.run.seed): one.reason for one in decisions_in(database, plan)}
    assert {said["rbf", seed] for seed in (3, 4, 5)} == {"decided after 3 seeds"}
    (table,) = tables(reading.load_sweep(database))
    assert [one.n for one in table.differences] == [3, 6]
    assert "Not decided after 6 seeds, the most: linear." in table.notes


def test_what_is_to_be_done_without_a_database_is_what_is_to_be_done_at_first(tmp_path):
    decisions = decisions_in(None, planned(tmp_path))
    assert [one.action for one in decisions] == [Action.START] * 9 + [Action.WAIT] * 9
    assert {one.reason for one in decisions[9:]} == {"if the comparison is still open after 3 seeds"}
    assert all(one.needed for one in decisions)


@pytest.mark.slow
def test_a_higher_maximum_runs_only_what_is_new(tmp_path, database):
    swept(database, planned(tmp_path))
    assert swept(database, planned(tmp_path, most=7)) == [("exponential", 6), ("linear", 6)]


def test_a_failed_seed_counts_as_ended_and_is_looked_at_once_it_has_a_score(tmp_path, database):
    plan = planned(tmp_path)
    assert swept(database, plan, fails=(("rbf", 1),)) == FIRST + [(k, 3) for k in SCORES] + OPEN[2:]
    failed = [one.record.id for one in decisions_in(database, plan) if one.record.state is RunState.FAILED]
    recording.reset(database, failed, [RunState.FAILED])
    (again,) = (one for one in decisions_in(database, plan) if one.action is Action.START)
    assert (again.run.cell.spec.kernel, again.run.seed) == ("rbf", 1)
    ended(database, again)
    assert {one.action for one in decisions_in(database, plan)} == {Action.SKIP}


def test_the_tables_are_read_again_only_when_a_run_has_ended(tmp_path, database, monkeypatch):
    plan = planned(tmp_path)
    recording.register(database, plan)
    reads = []
    whole = reading.results
    monkeypatch.setattr(reading, "results", lambda *given: reads.append(1) or whole(*given))
    lookups = PlanLookups(plan)
    for _ in range(3):
        decisions = decisions_in(database, plan, lookups)
    assert len(reads) == 1
    ended(database, decisions[0])
    decisions_in(database, plan, lookups)
    assert len(reads) == 2


def test_a_run_beyond_the_needed_seeds_is_left_alone_whatever_its_state_and_evaluated_if_it_is_there(tmp_path):
    plan = planned(tmp_path)
    (cell, *_) = plan.cells
    one = {cell.id: seeds_until.Needed(3, "decided after 3 seeds", False)}
    alone = replace(plan, cells=(cell,))
    decisions = decide(alone, {}, lambda _: None, lambda _: None, {}, lambda _: False, one)
    assert [each.action for each in decisions] == [Action.START] * 3 + [Action.SKIP] * 3
    assert [each.needed for each in decisions] == [True] * 3 + [False] * 3
