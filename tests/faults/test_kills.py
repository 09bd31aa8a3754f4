"""A run that is killed at any moment, again and again, ends with the bits of one that never was."""

import errno
import itertools
import os
import signal
import time
from functools import partial

import pytest
from lengths import count
from victims import SPECS, Run, killed
from waiting import wait_until

from kdx.store import claims, reading
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import FINAL, RunState
from kdx.sweep import worker
from kdx.sweep.recorder import DatabaseRecorder

# Operation → what it is called by. A kill comes before it or after it.
POINTS = {
    "rows are committed": ("kdx.store.recording", "RunWriter.together"),
    "a file is forced to disk": ("os", "fsync"),
    "a checkpoint gets its name": ("pathlib", "Path.rename"),
    "an old checkpoint goes": ("pathlib", "Path.unlink"),
    # Both within the transaction that ends the run.
    "the translations are kept": ("kdx.store.recording", "RunWriter.outputs"),
    "the run is completed": ("kdx.store.recording", "RunWriter.complete"),
}


@pytest.fixture(autouse=True)
def patience(monkeypatch, data_home):
    # Kills come faster than steps, and a run without progress would count as one that kills its workers.
    monkeypatch.setattr(claims, "STALLS", 10**6)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What each run leaves when nothing happens to it, and how long it takes."""
    made = {}

    def of(name: str):
        if name not in made:
            run = Run(tmp_path_factory.mktemp(name) / "whole", SPECS[name])
            start = time.monotonic()
            run.to_the_end()
            made[name] = run.left(), time.monotonic() - start
        return made[name]

    return of


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name == "averaged" else []) for name in SPECS]
)
def test_a_run_killed_at_random_moments_ends_as_if_it_had_never_been(name, unbroken, series, figure, tmp_path):
    whole, seconds = unbroken(name)
    kills = runs = replayed = 0
    while kills < count("RUN_KILLS", 3) / len(SPECS):
        run = Run(tmp_path / str(runs), SPECS[name])
        acknowledged: dict[tuple[str, int], int] = {}
        while run.record().state not in FINAL and kills < count("RUN_KILLS", 3) / len(SPECS):
            kills += killed(run.attempt(), series.uniform(0.02, 0.8 * seconds))
            seen = run.rows()
            assert acknowledged.items() <= seen.items(), "an acknowledged row was lost"
            acknowledged = seen
        run.to_the_end()
        assert run.left() == whole
        runs += 1
        replayed += run.attempts - 1
    figure(f"{kills} kills, {runs} of {runs} runs identical, 0 acknowledged rows lost, integrity ok {runs}/{runs}")


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_at_each_point_of_the_protocol_ends_as_if_it_had_never_been(point, unbroken, figure, tmp_path):
    whole, _ = unbroken("averaged")
    met = 0
    for occurrence in itertools.islice(itertools.count(1), count("OCCURRENCES", 1)):
        nth = occurrence if occurrence < 4 else 3 * occurrence
        run, kills = Run(tmp_path / str(occurrence), SPECS["averaged"]), 0
        for moment in ("before", "after"):
            if run.record().state not in FINAL:
                pid = run.attempt(partial(kill_at, *POINTS[point], moment, nth))
                kills += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        if not kills:
            break
        met += kills
        run.to_the_end()
        assert run.left() == whole
        if point == "the run is completed":
            with open_database(run.path, write=False) as database:
                resumed = [attempt.resumed_step for attempt in reading.attempts(database, 1)]
            # What a short attempt began from is recorded with its end, which the second one does not reach.
            assert (resumed[0], resumed[-1], len(resumed)) == (0, 39, 3), (
                "until its end is recorded, all is there that it could go on from"
            )
    assert met > 1, "the run never came to this point"
    figure(f"{met} of {met} identical")


def test_a_run_asked_to_stop_at_each_point_of_the_protocol_ends_as_if_it_had_never_been(unbroken, figure, tmp_path):
    whole, _ = unbroken("averaged")
    run, steps = Run(tmp_path / "run", SPECS["averaged"]), []
    for point in itertools.islice(POINTS, 4):
        for moment, signum in (("before", signal.SIGTERM), ("after", signal.SIGINT)):
            pid = run.attempt(partial(kill_at, *POINTS[point], moment, 4, signum))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == worker.STOPPED, point
            record = run.record()
            assert (record.state, record.stalls) == (RunState.INTERRUPTED, 0)
            # Where it stopped, there is a checkpoint.
            assert list(run.files.glob(f"step-{record.progress_step:09d}.*.ckpt"))
            steps.append(record.progress_step)
    assert steps == sorted(steps)
    run.to_the_end()
    assert run.left() == whole
    figure(f"{len(steps)} stops in the midst of a checkpoint, identical")


# After the folder above its own, the third checkpoint: the file, and then its folder.
@pytest.mark.parametrize("nth", [6, 7], ids=["file", "folder"])
def test_a_checkpoint_that_cannot_be_forced_to_disk_is_not_counted_on(nth, unbroken, figure, tmp_path):
    whole, _ = unbroken("averaged")
    run = Run(tmp_path / "run", SPECS["averaged"])

    def failing() -> None:
        real, calls = os.fsync, itertools.count(1)

        def fsync(descriptor: int) -> None:
            if next(calls) == nth:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        os.fsync = fsync

    pid = run.attempt(failing)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == worker.STOPPED
    record, files = run.record(), run.files
    assert (record.state, record.error) == (RunState.INTERRUPTED, None)
    assert not list(files.glob(".tmp*"))
    # Those before stay: of the newest nobody knows whether it would survive.
    assert {int(path.name[5:14]) for path in files.glob("step-*.ckpt")} >= {1, 2}
    run.to_the_end()
    assert run.left() == whole
    figure(f"interrupted at step {record.progress_step}, then identical")


def test_a_run_whose_database_is_locked_and_then_taken_away_waits_and_makes_no_other(unbroken, figure, tmp_path):
    whole, _ = unbroken("prediction")
    run, aside = Run(tmp_path / "run", SPECS["prediction"]), tmp_path / "aside.db"
    ready, locked = run.folder / "ready", run.folder / "locked"

    def waits_before_its_third_commit() -> None:
        real, calls = RunWriter.together, itertools.count(1)

        def together(*arguments) -> None:
            if next(calls) == 3:
                ready.touch()
                wait_until(locked.exists)
            real(*arguments)

        RunWriter.together = together

    pid = run.attempt(waits_before_its_third_commit)
    wait_until(ready.exists)
    seconds = 2.0
    with open_database(run.path, write=True) as database, database.write():
        locked.touch()
        time.sleep(seconds)
        assert os.waitpid(pid, os.WNOHANG)[0] == 0, "it waits"
        run.path.rename(aside)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == worker.STOPPED
    assert not run.path.exists()
    aside.rename(run.path)
    assert run.record().state is RunState.RUNNING
    run.to_the_end()
    assert run.left() == whole
    figure(f"locked for {seconds:.0f} s, then gone: interrupted, no other database made, then identical")


def kill_at(module: str, name: str, moment: str, occurrence: int, signum: int = signal.SIGKILL) -> None:
    """Has this process send itself a signal at the n-th call of a function."""
    holder = __import__(module, fromlist=["_"])
    *path, last = name.split(".")
    for step in path:
        holder = getattr(holder, step)
    real, calls = getattr(holder, last), itertools.count(1)

    def dies(*arguments, **keywords):
        dying = next(calls) == occurrence
        if dying and moment == "before":
            os.kill(os.getpid(), signum)
        result = real(*arguments, **keywords)
        if dying:
            os.kill(os.getpid(), signum)
        return result

    setattr(holder, last, dies)


@pytest.mark.parametrize("point", ["why_pruned", "checkpointed", "prune"])
def test_a_run_killed_while_it_is_pruned_ends_pruned(point, figure, tmp_path):
    """Once it has answered, the recorder is not asked again: another time it might say otherwise."""

    def prunes_and_dies() -> None:
        def why_pruned(recorder, step, metrics):
            return "worse than the median" if step == 22 else None

        DatabaseRecorder.why_pruned = why_pruned
        holder = RunWriter if point == "prune" else DatabaseRecorder
        original = getattr(holder, point)

        def dies(*given, **named):
            if point == "prune" or 22 in given:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*given, **named)

        setattr(holder, point, dies)

    def prunes() -> None:
        DatabaseRecorder.why_pruned = lambda recorder, step, metrics: "again" if step == 22 else None

    run = Run(tmp_path / "run", SPECS["prediction"])
    assert os.waitstatus_to_exitcode(os.waitpid(run.attempt(prunes_and_dies), 0)[1]) == -signal.SIGKILL
    assert run.record().state is RunState.RUNNING
    os.waitpid(run.attempt(prunes if point == "why_pruned" else lambda: None), 0)
    record = run.record()
    told = "again" if point == "why_pruned" else "worse than the median"
    assert (record.state, record.error, record.progress_step, record.test_score) == (RunState.PRUNED, told, 22, None)
    (weights,) = run.files.glob("*.ckpt")
    assert record.weights_sha256 in weights.name
    assert max(step for _, step in run.rows()) == 22
    figure(f"killed at {point}: {record.state}: {record.error}")
