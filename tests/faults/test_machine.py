"""A full disk, a killed sweep, a killed machine: nothing is lost, and nobody is left behind."""

import contextlib
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from lengths import count
from processes import GRID, SECRET, alive, family, kdx, rows, wait_for_rows
from victims import SPECS, Run
from waiting import wait_until

from kdx.run_files.files import folder_of
from kdx.store import reading
from kdx.store.database import open_database
from kdx.store.records import RunState

# Python runs this before anything else: the first worker to come to step 20 sleeps for ever, as one does whose disk or
# device never answers, and hears no signal that asks it to stop.
HANGS = """
import sys, time
from pathlib import Path

if "kdx.sweep.hosts.fork_server_process" in sys.orig_argv:
    from kdx.training.module import TaskModule

    step, hung = TaskModule.training_step, Path(__file__).with_name("hung")

    def hangs(module, batch, index):
        if index == 20 and not hung.exists():
            hung.write_text(module.trainer.default_root_dir)
            while True:
                time.sleep(1e6)
        return step(module, batch, index)

    TaskModule.training_step = hangs
else:
    import kdx.sweep.supervisor

    kdx.sweep.supervisor.HANG_GRACE = 1.0
"""


def test_a_machine_that_dies_again_and_again_ends_with_every_cell_once_and_the_same(
    unbroken, series, figure, tmp_path, data_home
):
    kills, sweeps, wanted = 0, 0, count("TREE_KILLS", 1)
    while kills < wanted:
        sweeps += 1
        folder = tmp_path / str(sweeps)
        folder.mkdir()
        (folder / "grid.yaml").write_text(GRID)
        kills += killed_until_it_ends(folder, series, wanted - kills)
        # However early they died, none counts as one that kills its worker.
        assert kdx(folder, "resume", "--workers", "2").wait(600) == 0
        assert rows(folder) == unbroken
        with open_database(folder / "runs.db", write=False) as database:
            runs = reading.load_sweep(database).runs
            ends = [a.outcome for run in runs for a in reading.attempts(database, run.id)]
        assert {run.state for run in runs} == {RunState.COMPLETED} and ends.count("completed") == len(runs)
    figure(f"{kills} times all processes killed, {sweeps} of {sweeps} sweeps identical, each run completed once")


def killed_until_it_ends(folder: Path, series, most: int) -> int:
    """Kills a sweep and all its processes, again whenever it has come on; how often, until it ended or `most` times."""
    kills, acknowledged = 0, {}
    command = ("sweep", "grid.yaml", "--workers", "2")
    while kills < most:
        process = kdx(folder, *command)
        wait_for_rows(folder, process, len(acknowledged))
        time.sleep(series.uniform(0, 1.0))
        everyone = family(process.pid)
        if process.poll() is not None:
            break
        for pid in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        kills += 1
        seen = rows(folder)
        assert acknowledged.items() <= seen.items()
        acknowledged = seen
        command = ("resume", "--workers", "2")
    return kills


@pytest.mark.long
def test_a_signal_to_every_process_of_a_sweep_stops_it_where_it_can_go_on(figure, tmp_path, data_home):
    """As a machine that shuts down, or a batch system, sends it; the latter may ask for the stacks before."""
    (tmp_path / "grid.yaml").write_text(GRID.replace("steps: 120", "steps: 100000"))
    process = kdx(tmp_path, "sweep", "grid.yaml", "--workers", "2")
    wait_for_rows(tmp_path, process, 10)
    logs = partial((tmp_path / "runs.files").glob, "*/log.txt")
    for signum in (signal.SIGUSR1, signal.SIGTERM):
        everyone = family(process.pid)
        assert len(everyone) == 4, "stacks are all that was asked for"
        for pid in everyone:
            os.kill(pid, signum)
        if signum == signal.SIGUSR1:
            wait_until(lambda: len([log for log in logs() if "hread 0x" in log.read_text()]) == 2)
    asked = time.monotonic()
    assert process.wait(300) == 128 + signal.SIGTERM
    with open_database(tmp_path / "runs.db", write=False) as database:
        stopped = [run for run in reading.load_sweep(database).runs if run.progress_step]
    assert stopped and {run.state for run in stopped} == {RunState.INTERRUPTED}
    for run in stopped:
        assert list((tmp_path / "runs.files").glob(f"{run.cell_id}-{run.seed}-0/step-{run.progress_step:09d}.*.ckpt"))
    figure(f"{len(stopped)} runs stopped with a checkpoint of their last step, {time.monotonic() - asked:.1f} s")


@pytest.mark.long
def test_two_sweeps_on_one_database_share_its_runs_and_keep_no_secret(unbroken, figure, tmp_path, data_home):
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    # A name is no place.
    (folder / "grid.yaml").write_text(GRID.replace("name: machine", "name: ../../machine"))
    both = [kdx(folder, "sweep", "grid.yaml", "--workers", "1") for _ in range(2)]
    assert [process.wait(600) for process in both] == [0, 0]
    assert rows(folder) == unbroken
    with open_database(folder / "runs.db", write=False) as database:
        found = [a for run in reading.load_sweep(database).runs for a in reading.attempts(database, run.id)]
    assert [(attempt.number, attempt.outcome) for attempt in found] == [(1, "completed")] * 4
    owners = {attempt.owner for attempt in found}
    # What was in the environment is in no file, name or value.
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 8
    hits = sum(secret.encode() in path.read_bytes() for path in written for secret in (SECRET, "SERVICE_TOKEN"))
    outside = sum(not path.is_relative_to(folder) for path in written)
    assert hits == outside == 0
    figure(
        f"{len(found)} runs by {len(owners)} sweeps, each once, identical; "
        f"{hits} of {len(written)} files tell secrets, {outside} lie outside"
    )


@pytest.mark.long
def test_a_training_thread_that_hangs_is_found_and_its_run_tried_again(unbroken, figure, tmp_path, data_home):
    (tmp_path / "grid.yaml").write_text(GRID)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "sitecustomize.py").write_text(HANGS)
    code = str(tmp_path / "code")
    process = kdx(tmp_path, "sweep", "grid.yaml", "--workers", "2", "--hang-after", "30", path=(code,))
    wait_until((tmp_path / "code" / "hung").exists, lambda: process.poll() is None)
    begun, name = time.monotonic(), Path((tmp_path / "code" / "hung").read_text()).name
    with open_database(tmp_path / "runs.db", write=False) as database:
        (run,) = (run for run in reading.load_sweep(database).runs if folder_of(run) == name)
        # On a machine under load a worker may have seemed to hang before.
        wait_until(lambda: reading.attempts(database, run.id)[run.attempt - 1].outcome)
        attempt = reading.attempts(database, run.id)[run.attempt - 1]
    seconds = time.monotonic() - begun
    assert (attempt.outcome, attempt.traceback) == ("lost", "hung: no sign of life for 30 s")
    assert process.wait(600) == 0
    assert rows(tmp_path) == unbroken
    assert "in hangs" in (tmp_path / "runs.files" / name / "log.txt").read_text(), "where it hung"
    figure(f"found and ended after {seconds:.1f} s, its run identical")


def test_no_worker_outlives_its_sweep(figure, tmp_path, data_home):
    (tmp_path / "grid.yaml").write_text(GRID.replace("steps: 120", "steps: 100000"))
    process = kdx(tmp_path, "sweep", "grid.yaml", "--workers", "2")
    wait_for_rows(tmp_path, process, 0)
    # The sweep, its server, two workers.
    wait_until(lambda: len(family(process.pid)) == 4, lambda: process.poll() is None)
    everyone = family(process.pid)
    killed = time.monotonic()
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: not any(alive(pid) for pid in everyone))
    figure(f"{time.monotonic() - killed:.1f} s until no process was left")


@pytest.mark.parametrize("kilobytes", [40, 150])
def test_a_run_on_a_full_disk_is_interrupted_and_goes_on_when_there_is_room(
    kilobytes, figure, tmp_path, data_home, capfd
):
    whole, full = Run(tmp_path / "whole", SPECS["prediction"]), Run(tmp_path / "full", SPECS["prediction"])
    whole.to_the_end()

    def little_room() -> None:
        # A file that may not grow stands for a disk that is full; the errors are EFBIG and SQLite's own.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, resource.RLIM_INFINITY))

    pid = full.attempt(little_room)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    record = full.record()
    acknowledged = full.rows()
    # Where the database itself has no room, not even the interruption can be recorded.
    assert code == 75 and record.state in (RunState.INTERRUPTED, RunState.RUNNING) and record.error is None
    full.to_the_end()
    assert acknowledged.items() <= full.rows().items()
    assert full.left() == whole.left()
    figure(f"{kilobytes} KiB a file: {record.state} at step {record.progress_step}, then identical")
