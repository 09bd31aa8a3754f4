"""`kdx worker`: real processes that share what is to be done, come and go."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from looked_after import refused
from terminal import kdx
from waiting import wait_until

from kdx.grid.load import load_grid
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState

GRID = """\
name: shared
task: answer
data: {corpus: copy, length: 4}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: %(steps)s, batch_tokens: 64, warmup: 5, validate_every: 50, learning_rate: 1e-2}
seeds: %(seeds)s
"""
MANY = 10**6
"""Steps of a run that does not end while a test looks at it."""
ELSEWHERE = """
import sys
import kdx.store.machine
kdx.store.machine.machine = lambda: "another-machine"
from kdx.sweep import lease_holder
lease_holder.LEASE, lease_holder.RENEW_EVERY = 30.0, 0.5
from kdx.cli.app import main
sys.argv[0] = "kdx"
main()
"""
"""kdx on another machine, with a short lease."""
LATE = """
import os, sys, time
real = time.monotonic
time.monotonic = lambda: real() + 7200.0 * os.path.exists("late")
from kdx.cli.app import main
sys.argv[0] = "kdx"
main()
"""
"""kdx by a clock that is two hours ahead from the moment when there is a file `late`."""


@pytest.fixture
def folder(tmp_path, data_home) -> Path:
    return tmp_path


def planned(folder: Path, text: str = GRID, database: str = "runs.db", **how) -> None:
    (folder / "grid.yaml").write_text(text % {"steps": 40, "seeds": 2, **how})
    plan = load_grid(folder / "grid.yaml")
    with open_database(folder / database, write=True, create=True) as opened:
        recording.register(opened, plan)


def worker(folder: Path, *words: str, program: str | None = None) -> subprocess.Popen[str]:
    start = ["-c", program] if program else ["-m", "kdx"]
    command = [sys.executable, *start, "worker", "--workers", "1", *words]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)


def dies(process: subprocess.Popen[str]) -> None:
    """All of its processes end at once, as where a machine loses its power."""
    for pid in family(process.pid):
        with suppress(ProcessLookupError):  # the others end with their sweep
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(descendant for child in children for descendant in family(int(child)))]


def ends(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=300)[1]
    return process.returncode, said


def runs(folder: Path, database: str = "runs.db"):
    with open_database(folder / database, write=False) as opened:
        return reading.load_sweep(opened).runs


def attempts(folder: Path) -> dict[int, list]:
    with open_database(folder / "runs.db", write=False) as opened:
        return {run.seed: list(reading.attempts(opened, run.id)) for run in reading.load_sweep(opened).runs}


def numbers(folder: Path, database: str = "runs.db") -> list[tuple]:
    """Every number of every run, as bits."""
    with closing(sqlite3.connect(folder / database)) as connection:
        return connection.execute(
            "SELECT cell_id, seed, name, step, metric.bits, differs FROM metric JOIN run ON run.id = run_id "
            "WHERE name NOT LIKE '%seconds%' ORDER BY 1, 2, 3, 4"
        ).fetchall()


def interrupted(folder: Path) -> None:
    """The first run has a checkpoint to go on from."""
    first = worker(folder)
    wait_until(lambda: any(run.progress_step for run in runs(folder)), lambda: first.poll() is None)
    first.send_signal(signal.SIGTERM)
    assert ends(first)[0] == 143


@pytest.mark.slow
def test_two_workers_share_a_sweep_and_each_run_is_done_once(folder):
    planned(folder, seeds=4)
    first, second = worker(folder), worker(folder)
    (code, said), (other_code, also_said) = ends(first), ends(second)
    assert (code, other_code) == (0, 0), said + also_said
    assert [run.state for run in runs(folder)] == [RunState.COMPLETED] * 4
    assert [len(tried) for tried in attempts(folder).values()] == [1] * 4
    # The first may come too late to any run.
    assert any(text.startswith("works on shared: 4 runs\n") and "ended here: " in text for text in (said, also_said))
    assert said.endswith("next: kdx report\n") and also_said.endswith("next: kdx report\n")


@pytest.mark.long
def test_what_one_worker_was_killed_at_another_that_came_later_ends_with_the_same_bits(folder):
    planned(folder, steps=4000, seeds=2)
    interrupted(folder)
    victim = worker(folder)
    wait_until(
        lambda: runs(folder)[0].attempt == 2 and attempts(folder)[0][1].resumed_step, lambda: victim.poll() is None
    )
    added = worker(folder)
    wait_until(lambda: [run.state for run in runs(folder)].count(RunState.RUNNING) == 2, lambda: added.poll() is None)
    dies(victim)
    code, said = ends(added)
    assert code == 0, said
    tried = attempts(folder)
    assert [attempt.outcome for attempt in tried[0]] == ["interrupted", "lost", "completed"]
    assert all(attempt.resumed_step > 0 for attempt in tried[0][1:])
    assert [attempt.outcome for attempt in tried[1]] == ["completed"]
    planned(folder, database="whole.db", steps=4000, seeds=2)
    assert ends(worker(folder, "--db", "whole.db"))[0] == 0
    assert numbers(folder) == numbers(folder, "whole.db") != []


@pytest.mark.long
def test_at_the_end_of_its_time_a_worker_leaves_a_checkpoint_and_another_goes_on(folder):
    planned(folder, steps=MANY, seeds=1)
    process = worker(folder, "--max-time", "1h", program=LATE)
    wait_until(lambda: runs(folder)[0].progress_step, lambda: process.poll() is None)
    (folder / "late").touch()
    code, said = ends(process)
    assert code == 130 and "--max-time 1h has passed; others continue, or: kdx worker\n" in said
    (run,) = runs(folder)
    assert run.state is RunState.INTERRUPTED and run.checkpoint_step == run.progress_step > 0
    other = worker(folder)
    wait_until(lambda: runs(folder)[0].progress_step > run.progress_step, lambda: other.poll() is None)
    other.send_signal(signal.SIGTERM)
    code, said = ends(other)
    assert code == 143 and "1 run ended here: 1 interrupted" in said
    assert [attempt.resumed_step for attempt in attempts(folder)[0]] == [0, run.checkpoint_step]


@pytest.mark.long
def test_a_worker_on_another_machine_joins_at_once_and_takes_over_when_a_lease_has_lapsed(folder):
    planned(folder, steps=MANY, seeds=2)
    first = worker(folder, program=ELSEWHERE)
    wait_until(lambda: any(run.checkpoint_step for run in runs(folder)), lambda: first.poll() is None)
    other = worker(folder, "--workers", "2")
    wait_until(lambda: [run.state for run in runs(folder)].count(RunState.RUNNING) == 2, lambda: other.poll() is None)
    dies(first)
    died = time.time()
    wait_until(
        lambda: runs(folder)[0].attempt == 2 and attempts(folder)[0][1].resumed_step, lambda: other.poll() is None
    )
    lost, goes_on = attempts(folder)[0]
    assert lost.outcome == "lost" and lost.owner.startswith("another-machine/")
    assert goes_on.started >= lost.ended > died, "not before its lease has lapsed"
    assert goes_on.owner == attempts(folder)[1][0].owner
    other.send_signal(signal.SIGTERM)
    assert ends(other)[0] == 143


@pytest.mark.long
def test_a_sweep_that_is_added_while_a_worker_waits_is_done(folder):
    planned(folder, seeds=1)
    process = worker(folder, "--wait", "1h", program=LATE)
    wait_until(lambda: [run.state for run in runs(folder)] == [RunState.COMPLETED], lambda: process.poll() is None)
    planned(folder, GRID.replace("name: shared", "name: added"), seeds=2)
    wait_until(lambda: [run.state for run in runs(folder)] == [RunState.COMPLETED] * 2, lambda: process.poll() is None)
    (folder / "late").touch()
    code, said = ends(process)
    assert code == 0 and "works on added: 2 runs" in said and "2 runs ended here: 2 completed" in said


@pytest.mark.long
def test_a_run_of_another_processor_is_left_to_workers_that_have_it(folder, monkeypatch):
    planned(folder, steps=2000, seeds=1)
    interrupted(folder)
    planned(folder, GRID.replace("name: shared", "name: added"), steps=10, seeds=1)
    with monkeypatch.context() as patch:
        patch.setenv("ATEN_CPU_CAPABILITY", "default")
        code, said = ends(worker(folder))
    assert code == 4 and "1 run left to other workers: other conditions here: cpu_capability " in said
    assert "1 completed, 1 interrupted" in said and "--if-changed restart, or continue, takes those" in said
    shown = kdx("status", "shared", folder=folder)[0]
    assert "waits for a worker like machine " in shown and "cpu_capability " in shown
    code, said = ends(worker(folder))
    assert code == 0, said
    planned(folder, database="whole.db", steps=2000, seeds=1)
    assert ends(worker(folder, "--db", "whole.db"))[0] == 0
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        connection.execute(
            "DELETE FROM metric WHERE run_id IN (SELECT id FROM run WHERE cell_id IN"
            " (SELECT cell_id FROM sweep_cell WHERE sweep_id = 2))"
        )
        connection.commit()
    assert numbers(folder) == numbers(folder, "whole.db") != []


FAULTY = '''
from torch import Tensor

from kdx.attention.interfaces import KernelFunction


class Faulty(KernelFunction):
    """Fails after some steps."""

    formula = "k(q, k) = 1"
    gives = "weight"
    calls = 0

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        type(self).calls += 1
        if type(self).calls > 3:
            raise ValueError(f"call {type(self).calls}")
        return (query @ key.transpose(-1, -2)).exp()
'''


@pytest.mark.slow
def test_a_cell_whose_runs_fail_alike_is_paused_and_the_rest_ends(folder, components):
    (folder / "faulty.py").write_text(FAULTY)
    planned(folder, f"{GRID}axes: {{kernel: [exponential, 'faulty.py:Faulty']}}\n", steps=10, seeds=4)
    (folder / "faulty.py").rename(folder / "moved.py")
    code, said = ends(worker(folder))
    assert code == 4 and "1 cell of shared left to other workers: " in said and "--components FOLDER" in said
    assert [run.state for run in runs(folder)].count(RunState.COMPLETED) == 4
    (folder / "moved.py").rename(folder / "faulty.py")
    code, said = ends(worker(folder))
    assert code == 4 and "2 runs ended here: 2 failed; not done: 2 failed, 2 paused; see kdx status\n" in said
    states = [run.state for run in runs(folder)]
    assert (states.count(RunState.FAILED), states.count(RunState.PENDING)) == (2, 2)
    shown = kdx("status", "shared", folder=folder)[0]
    paused = "2 runs of its cell failed alike: ValueError in weight (faulty.py)"
    again = "kdx retry shared state=failed\n"
    assert shown.count(f"paused: {paused}") == 3 and f"is paused: {paused}; {again}" in shown
    assert f"is paused: {paused}; {again}" in kdx("status", folder=folder)[0]
    again = ends(worker(folder))
    assert again[0] == 4 and "no run ended here; not done: 2 failed, 2 paused" in again[1]
    (folder / "faulty.py").write_text(FAULTY)
    kdx("retry", "shared", "state=failed", folder=folder, code=4)
    assert [attempt.outcome for attempt in attempts(folder)[0]][-1] in ("failed", "completed")
    assert sum(len(tried) for tried in attempts(folder).values()) >= 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quik"], "there is no sweep `quik`"),
        (["--max-time", "0m"], "--max-time `0m`\n  allowed: wall time such as 30s, 90m or 6h; 1s or more"),
        (["--wait", "soon"], "--wait `soon`"),
        (["--leave-unlike", "5"], "--leave-unlike `5`"),
    ],
)
def test_bad_input_is_one_message_and_starts_nothing(folder, words, said):
    planned(folder)
    error = refused("worker", *words)
    assert error.exit_code == 2 and said in str(error)
    assert [run.state for run in runs(folder)] == [RunState.PENDING] * 2
