"""What is wrong with runs and files is found, and nothing else."""

from functools import partial

from hypothesis import given
from inventories import NAMES, SHA, files, inventory, listings, run

from kdx.run_files.files import Kind, folder_of
from kdx.run_files.repair import Repair, diagnose
from kdx.store.records import RunState
from kdx.sweep.decide import why_lost
from kdx.sweep.lease_holder import Liveness

BEST = f"best-000000100.{SHA}.ckpt"


def liveness(owner: str) -> Liveness:
    return {"gone": Liveness.GONE, "here": Liveness.HERE}.get(owner, Liveness.UNKNOWN)


lost = partial(why_lost, liveness=liveness)


def diagnosed(*arguments, **options) -> list[tuple[str, str, Repair | None]]:
    return [(one.place, one.problem, one.repair) for one in diagnose(*arguments, why_lost=lost, **options)]


def test_nothing_is_wrong_with_what_is_as_it_should_be():
    done = run(1)
    alive = run(2, RunState.RUNNING, lease_left=5.0)
    slept = run(5, RunState.RUNNING, owner="here", lease_left=-5.0)
    waiting, stopped = run(3, RunState.PENDING), run(4, RunState.INTERRUPTED)
    listed = files(done, (BEST, "log.txt")) + files(alive) + files(slept) + files(stopped, (NAMES[0],))
    assert diagnosed(inventory(done, alive, slept, waiting, stopped), listed, set()) == []


def test_a_run_whose_process_is_gone_or_whose_lease_has_lapsed_is_given_back():
    gone = run(1, RunState.RUNNING, owner="gone", lease_left=5.0)
    lapsed = run(2, RunState.RUNNING, owner="elsewhere", lease_left=-1.0)
    assert diagnosed(inventory(gone, lapsed), [], set()) == [
        ("run 1 (00000000, seed 1)", "running, but its process is gone", Repair.GIVE_BACK),
        ("run 2 (00000000, seed 2)", "running, but its lease has lapsed", Repair.GIVE_BACK),
    ]


def test_a_damaged_file_is_set_aside_and_a_half_written_one_removed():
    one = run(1, RunState.INTERRUPTED)
    listed = files(one)
    found = diagnosed(inventory(one), listed, {listed[0]})
    folder = folder_of(one)
    assert found == [
        (f"{folder}/{NAMES[0]}", "does not match its checksum", Repair.SET_ASIDE),
        (f"{folder}/{NAMES[5]}", "left half-written by a killed process", Repair.REMOVE),
    ]


def test_a_completed_run_without_its_weights_is_told_and_cannot_be_repaired():
    lost, kept = run(1), run(2)
    listed = files(kept, (BEST,)) + files(lost, ("log.txt",))
    missing = [("run 1 (00000000, seed 1)", "completed, but its weights are not there", None)]
    assert diagnosed(inventory(lost, kept), listed, set()) == missing
    damaged = files(lost, (BEST,))
    assert diagnosed(inventory(lost, kept), [*listed, *damaged], set(damaged))[0] == missing[0]


def test_weights_that_nobody_needs_are_not_missed():
    kept = run(9)
    there = files(kept, (BEST,))
    removed, diverged, older = run(1), run(2, RunState.DIVERGED), run(3, generation=0)
    newer = run(4, seed=3, generation=1)
    listed = there + files(removed, ("weights-removed.txt",)) + files(newer, (BEST,))
    assert diagnosed(inventory(kept, removed, diverged, newer, older), listed, set()) == []
    assert diagnosed(inventory(run(5), planned=False), there, set()) == []


@given(listings())
def test_what_a_live_process_or_an_unknown_run_has_is_left_alone(case):
    known, _, listed = case
    damaged = {file for file in listed if file.kind in (Kind.CHECKPOINT, Kind.WEIGHTS)}
    runs = {folder_of(run): run for run in known.runs}
    for one in diagnose(known, listed, damaged, lost):
        if one.file:
            run = runs[one.file.folder]
            assert run.state is not RunState.RUNNING or run.owner == "gone" or not (run.lease_left or -1) > 0
            assert one.repair is not Repair.REMOVE or one.file.kind is Kind.HALF_WRITTEN
        if one.repair is Repair.GIVE_BACK:
            assert one.run and one.run.state is RunState.RUNNING


@given(listings())
def test_every_damaged_file_of_a_run_at_rest_is_found_once(case):
    known, _, listed = case
    damaged = {file for file in listed if file.kind in (Kind.CHECKPOINT, Kind.WEIGHTS)}
    resting = {folder_of(run) for run in known.runs if run.state is not RunState.RUNNING}
    found = [one.file for one in diagnose(known, listed, damaged, lost) if one.repair is Repair.SET_ASIDE]
    assert len(found) == len(set(found))
    assert {file for file in damaged if file.folder in resting} <= set(found)


def test_where_all_files_are_gone_that_is_one_finding():
    stopped = run(2, RunState.INTERRUPTED, checkpoint_step=5)
    (found,) = diagnosed(inventory(run(1), stopped), None, set())
    assert found[1] == "is gone, with the weights of 1 runs and the checkpoints of 1"
    assert diagnosed(inventory(run(3, RunState.PENDING)), None, set()) == []
    # One that was passed on without its files.
    assert diagnosed(inventory(run(1), stopped), [], set()) == []


def test_a_checkpoint_that_is_recorded_and_not_there_is_missed():
    kept, lost = (run(number, RunState.INTERRUPTED, checkpoint_step=5, progress_step=7) for number in (1, 2))
    never = run(3, RunState.INTERRUPTED, progress_step=7)
    listed = files(kept, (NAMES[0],)) + files(lost, ("log.txt",)) + files(never, ("log.txt",))
    problem = "interrupted at step 7, but it has no checkpoint left"
    assert diagnosed(inventory(kept, lost, never), listed, set()) == [("run 2 (00000000, seed 2)", problem, None)]
