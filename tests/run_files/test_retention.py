"""What may go of a run's files, and above all what may not."""

from itertools import product

import pytest
from hypothesis import given
from inventories import NAMES, SHA, files, inventory, listings, run

from kdx.run_files.files import Kind, folder_of
from kdx.run_files.retention import Retention, RetentionRule, removable, rules_of
from kdx.store.records import FINAL, RunState

EVERYTHING = rules_of(Retention.NONE, unplanned=True, unknown=True)
DEFAULT = rules_of(Retention.ALL, unplanned=False, unknown=False)


def gone(rules, inventory, selected, listed) -> set:
    found = removable(inventory, selected, listed)
    return {file for rule in rules for file in found[rule]}


@given(listings())
def test_by_default_an_unfinished_run_keeps_everything_and_a_finished_one_its_weights_and_log(case):
    known, selected, listed = case
    runs = {folder_of(run): run for run in known.runs}
    for file in gone(DEFAULT, known, selected, listed):
        assert runs[file.folder].state in FINAL
        assert file.kind in (Kind.CHECKPOINT, Kind.HALF_WRITTEN, Kind.SET_ASIDE)


@given(listings())
def test_whatever_is_asked_for_nothing_of_a_running_run_or_of_another_program_goes(case):
    known, selected, listed = case
    runs = {folder_of(run): run for run in known.runs}
    for file in gone(EVERYTHING, known, selected, listed):
        assert file.kind is not Kind.OTHER
        assert file.folder not in runs or runs[file.folder].state is not RunState.RUNNING


@given(listings())
def test_what_a_sweep_plans_to_go_on_with_is_never_touched(case):
    known, selected, listed = case
    runs = {folder_of(run): run for run in known.runs}
    for file in gone(EVERYTHING, known, selected, listed):
        run = runs.get(file.folder)
        if run is not None and run.key in known.planned:
            assert run.state in FINAL


@given(listings())
def test_a_file_goes_by_one_rule_at_most_and_what_is_not_listed_never(case):
    known, selected, listed = case
    found = [file for files in removable(known, selected, listed).values() for file in files]
    assert len(found) == len(set(found))
    assert set(found) <= set(listed)


@given(listings())
def test_asking_for_more_never_keeps_more(case):
    known, selected, listed = case
    for unplanned, unknown in product((False, True), repeat=2):
        all_, chosen, none = (
            gone(rules_of(keep, unplanned=unplanned, unknown=unknown), known, selected, listed) for keep in Retention
        )
        assert gone(DEFAULT, known, selected, listed) <= all_ <= chosen <= none


@pytest.mark.parametrize("state", sorted(FINAL))
def test_each_file_of_a_finished_run_has_its_rule(state):
    one, other = run(1, state), run(2, state)
    found = removable(inventory(one, other), {1}, files(one) + files(other, (NAMES[2],)))
    assert {rule: [file.name for file in files] for rule, files in found.items()} == {
        RetentionRule.CHECKPOINTS: [f"{kind}.{SHA}.ckpt" for kind in ("step-000000120", "weights-000000100")],
        RetentionRule.LEFTOVERS: list(NAMES[4:6]),
        RetentionRule.SELECTED: [f"best-000000100.{SHA}.ckpt", f"average-000000120.{SHA}.ckpt"],
        RetentionRule.NOT_SELECTED: [f"best-000000100.{SHA}.ckpt"],
        RetentionRule.UNPLANNED: [],
        RetentionRule.UNKNOWN: [],
        RetentionRule.SUBMISSIONS: [],
    }


def test_what_no_sweep_plans_goes_as_a_whole_when_asked_for():
    for state in set(RunState) - {RunState.RUNNING}:
        known = inventory(run(1, state), planned=False)
        assert gone(DEFAULT, known, set(), files(run(1, state))) == set()
        left = set(files(run(1, state))) - gone(
            rules_of(Retention.ALL, unplanned=True, unknown=False), known, set(), files(run(1, state))
        )
        assert {file.name for file in left} == {"notes.txt", "weights-removed.txt"}


def test_another_generation_has_files_of_its_own():
    first, second = run(1), run(2, RunState.INTERRUPTED, seed=1, generation=1)
    listed = [*files(first, (NAMES[0],)), *files(second, (NAMES[0],))]
    assert gone(EVERYTHING, inventory(first, second), set(), listed) == {listed[0]}


def test_what_a_longer_run_continues_goes_with_the_weights_and_not_before():
    state = (f"shared-000000119.{SHA}.ckpt",)
    kept = removable(inventory(run(1, RunState.COMPLETED)), {1}, files(run(1, RunState.COMPLETED), state))
    assert [rule for rule, going in kept.items() if going] == [RetentionRule.SELECTED]
