"""The server forks workers, tells how they end, and leaves none behind when its sweep is gone."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from grids import LONG
from waiting import GIVE_UP, wait_until

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.store.records import RunState
from kdx.sweep.hosts import fork_server_process as server
from kdx.sweep.hosts.fork_server_process import _execute
from kdx.sweep.messages import Work, receive, send, start


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def exit_of(channel: socket.socket) -> dict:
    while (message := receive(channel)) is not None:
        if message["event"] == "exit":
            return message
    raise AssertionError("the server has ended")


def claimed_runs(database: Database) -> list[Work]:
    """Both runs of a grid, which do not end by themselves, claimed."""
    grid = database.location.parent / "grid.yaml"
    grid.write_text(LONG.replace("steps: 800", "steps: 1000000"))
    plan = load_grid(grid)
    recording.register(database, plan)
    (cell,), runs = plan.cells, reading.load_sweep(database).runs
    attempts = [claims.claim(database, run.id, "me", 60.0) for run in runs]
    return [
        Work(
            run.id,
            attempt,
            "me",
            str(database.location),
            cell.spec.text,
            run.seed,
            f"{database.location}.{run.seed}",
        )
        for run, attempt in zip(runs, attempts, strict=True)
        if attempt is not None
    ]


@pytest.mark.slow
def test_a_server_tells_how_workers_end_and_ends_with_its_sweep(database, data_home):
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = f"from kdx.sweep.hosts import fork_server_process as server; server.GRACE = {GIVE_UP}; server.main(%d)"
    command = [sys.executable, "-c", program % there.fileno()]
    process = subprocess.Popen(command, pass_fds=[there.fileno()], start_new_session=True, stderr=subprocess.PIPE)
    there.close()
    killed, stopped = claimed_runs(database)

    # A worker that is killed leaves its run to the sweep.
    send(here, start(killed))
    wait_until(lambda: (Path(killed.folder) / "log.txt").exists())
    (worker,) = children(process.pid)
    os.kill(worker, signal.SIGKILL)
    assert exit_of(here) == {"event": "exit", "run": killed.run_id, "code": -signal.SIGKILL}
    assert reading.load_sweep(database).runs[0].state is RunState.RUNNING

    # One that cannot even open its database says why where the sweep can read it.
    send(
        here,
        start(Work(killed.run_id, 1, "me", str(database.location.parent / "absent.db"), "{}", 0, killed.folder)),
    )
    assert receive(here)["event"] == "trouble"
    assert exit_of(here)["code"] == 75

    # The sweep ends without a word: the worker comes to a safe point, and then there is no server either.
    send(here, start(stopped))
    wait_until(lambda: reading.load_sweep(database).runs[1].progress_step)
    (worker,) = children(process.pid)
    here.close()
    assert process.wait(300) == 0
    assert not Path(f"/proc/{worker}").exists()
    run = reading.load_sweep(database).runs[1]
    assert run.state is RunState.INTERRUPTED and run.progress_step > 0
    process.stderr.close()


@pytest.mark.parametrize(("gpu", "seen"), [("3", "3"), (None, "0,1,2,3")])
def test_a_worker_sees_the_gpu_of_its_run_alone(tmp_path, monkeypatch, gpu, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")

    class Worker:
        @staticmethod
        def work(claimed, channel, another):
            Path(claimed.folder).write_text(os.environ["CUDA_VISIBLE_DEVICES"])
            return 0

    claimed = Work(1, 1, "me", "runs.db", "{}", 0, str(tmp_path / "seen"), gpu=gpu)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    workers: dict[int, server.Child] = {}
    with here, there:
        _execute(start(claimed), there, workers, Worker)
    ((pid, child),) = workers.items()
    assert (os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), child.run_id) == (0, 1)
    assert (tmp_path / "seen").read_text() == seen
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


class Noting:
    """A worker that writes its process id where its work says, and asks for more."""

    @staticmethod
    def work(claimed, channel, another):
        while claimed is not None:
            Path(claimed.folder).write_text(str(os.getpid()))
            claimed = another()
        return 0


@pytest.fixture
def serving(monkeypatch, request):
    """The end of a sweep at a server whose workers only note their process id."""
    monkeypatch.setattr("kdx.sweep.worker.work", Noting.work)
    monkeypatch.setattr(server, "IDLE", getattr(request, "param", GIVE_UP))
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        here.close()
        server.main(there.fileno())
    there.close()
    yield here
    here.close()
    os.waitpid(pid, 0)


def noted(here: socket.socket, folder: Path, **work) -> int:
    """Return the process that did the work."""
    send(here, start(Work(len(list(folder.iterdir())), 1, "me", "runs.db", "{}", 0, str(folder / "noted"), **work)))
    assert exit_of(here)["code"] == 0
    return int((folder / "noted").read_text())


@pytest.mark.slow
def test_a_worker_that_is_done_takes_the_next_work(serving, tmp_path):
    first = noted(serving, tmp_path)
    assert noted(serving, tmp_path) == first


@pytest.mark.slow
@pytest.mark.parametrize("serving", [0.2], indirect=True)
def test_a_worker_ends_when_there_is_no_more_work(serving, tmp_path):
    first = noted(serving, tmp_path)
    wait_until(lambda: not Path(f"/proc/{first}").exists())
    assert noted(serving, tmp_path) != first


@pytest.mark.slow
def test_code_from_outside_kdx_and_a_gpu_have_a_process_of_their_own(serving, tmp_path):
    processes = [noted(serving, tmp_path, **work) for work in ({"components": ("text",)}, {"gpu": "0"}, {}, {}) * 2]
    assert len(set(processes)) < len(processes) and processes[2] == processes[3]
    assert len({*processes[:3], *processes[4:6]}) == 5


def test_a_worker_whose_server_died_before_it_could_notice_ends():
    pid = os.fork()
    if pid == 0:
        server._die_with(os.getpid())  # as any process but its parent
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 70


def test_what_a_worker_frees_it_keeps():
    """Else each step would ask the system for the same pages again."""
    code = (
        "import sys; from pathlib import Path; from kdx.sweep.hosts import fork_server_process as server\n"
        "if sys.argv[1:]: server._keep_memory()\n"
        "held = lambda: int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        "before = held(); freed = b'x' * 2**26; del freed\n"
        "print(held() - before)"
    )
    asked = [[sys.executable, "-c", code], [sys.executable, "-c", code, "keep"]]
    without, kept = (int(subprocess.run(one, capture_output=True, check=True).stdout) for one in asked)
    assert without < 2**24 < 2**25 < kept
