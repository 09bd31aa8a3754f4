"""Where kdx meets its machine: disks, permissions, terminals, readers, signals, the system's limits, other people."""

import contextlib
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import GRID, alive, family, kdx, rows, wait_for_rows
from waiting import has_begun, wait_until

from kdx.errors import TRY_AGAIN, KdxError
from kdx.store import reading
from kdx.store.database import open_database
from kdx.store.records import RunRecord, RunState

NOBODY = 65534
ONE_CELL = GRID.replace("axes: {kernel: [exponential, rbf]}\n", "")
SMALL = ONE_CELL.replace("steps: 120", "steps: 40")
ENDLESS = GRID.replace("steps: 120", "steps: 100000")
SWEEP = ("sweep", "grid.yaml", "--workers", "2")


def runs(folder: Path) -> tuple[RunRecord, ...]:
    with open_database(folder / "runs.db", write=False) as database:
        return reading.load_sweep(database).runs


def states(folder: Path) -> set[RunState]:
    return {run.state for run in runs(folder)}


def said(folder: Path) -> str:
    return (folder / "said.txt").read_text()


def at_work_until(true: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    wait_until(true, lambda: process.poll() is None)


@pytest.fixture
def at_work(tmp_path, data_home):
    """Starts a sweep; its process, once its runs have rows."""

    def at_work(grid: str = GRID, **how) -> subprocess.Popen[bytes]:
        (tmp_path / "grid.yaml").write_text(grid)
        process = kdx(tmp_path, *SWEEP, **how)
        wait_for_rows(tmp_path, process, 0)
        assert process.poll() is None
        return process

    return at_work


@pytest.fixture
def mount():
    """Mounts a disk of its own on a folder, or, with `remount` among the options, makes it another size."""
    mounted: set[Path] = set()

    def mount(folder: Path, options: str) -> None:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True)
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.decode()}")
        mounted.add(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


def test_without_an_inode_for_the_journal_the_disk_is_told_as_full(mount, tmp_path, data_home, figure):
    disk = tmp_path / "disk"
    mount(disk, "size=64m,nr_inodes=100")
    (tmp_path / "grid.yaml").write_text(SMALL)
    with contextlib.suppress(OSError):
        for number in range(100):
            (disk / str(number)).touch()
    (disk / "0").rename(disk / "runs.db")  # an empty file is a database to be
    code = kdx(tmp_path, *SWEEP, "--db", "disk/runs.db").wait(300)
    assert (code, said(tmp_path)) == (
        74,
        "error: disk/runs.db: the disk has no inode left for the journal\n"
        f"  hint: remove some files (df -i tells), {TRY_AGAIN}\n",
    )
    for number in range(1, 50):
        (disk / str(number)).unlink()
    assert kdx(tmp_path, *SWEEP, "--db", "disk/runs.db").wait(300) == 0
    figure(f"exit {code}; with inodes again: completed")


@pytest.fixture
def stranger():
    """A folder of somebody without privileges, and how they start kdx there."""
    folder = Path(tempfile.mkdtemp(prefix="kdx-"))
    path = {"HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    environment = {name: value for name, value in os.environ.items() if name != "KDX_DATA"} | path
    become: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("no setpriv here (Debian: util-linux)")
        os.chown(folder, NOBODY, NOBODY)
        # Python itself may lie where only root may read.
        reads = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *reads]

    def type_(*arguments: str) -> int:
        command = [*become, sys.executable, "-m", "kdx", *arguments]
        with (folder / "said.txt").open("ab") as said:
            return subprocess.run(
                command, cwd=folder, env=environment, stdout=said, stderr=said, timeout=300
            ).returncode

    yield folder, type_
    shutil.rmtree(folder)


@pytest.mark.long
def test_without_privileges_a_forbidden_folder_interrupts_the_sweep_and_fails_no_run(stranger, figure):
    folder, type_ = stranger
    (folder / "grid.yaml").write_text(SMALL)
    assert type_(*SWEEP, "--set", "seeds=1") == 0
    files = folder / "runs.files"
    files.chmod(0o555)
    code = type_(*SWEEP)
    assert code == 3
    assert "no permission: Permission denied\n  hint: look at its owner and mode" in said(folder)
    assert "runs.files/" in said(folder) and "Traceback" not in said(folder)
    assert states(folder) == {RunState.COMPLETED, RunState.INTERRUPTED}
    files.chmod(0o755)
    assert type_("resume") == 0
    assert states(folder) == {RunState.COMPLETED}
    figure(f"exit {code}, no run failed; permitted again: completed")


@pytest.mark.long
def test_nothing_is_writable_by_the_world_whatever_the_umask(at_work, tmp_path, figure):
    process = at_work(ENDLESS, umask=0)
    at_work_until(lambda: len([*(tmp_path / "runs.files").glob("*/*.ckpt")]) > 1, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 143
    assert kdx(tmp_path, "export", "--to", "results", umask=0).wait(300) == 0
    assert kdx(tmp_path, "db", "backup", "copy.db", umask=0).wait(300) == 0
    mine = {tmp_path / "grid.yaml", tmp_path / "said.txt"}
    made = [path for path in tmp_path.rglob("*") if path not in mine]
    assert len(made) > 10
    assert not [path for path in made if path.stat().st_mode & stat.S_IWOTH]
    figure(f"umask 000: {len(made)} files and folders, 0 of them writable by the world")


@pytest.mark.parametrize("ignored", [False, True], ids=["heeded", "ignored"])
def test_a_terminal_that_is_closed_stops_a_sweep_or_does_not_harm_it(ignored, tmp_path, data_home, figure):
    (tmp_path / "grid.yaml").write_text(ONE_CELL if ignored else ENDLESS)
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        if ignored:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        path = {"PYTHONPATH": str(Path(__file__).parents[2])}
        os.execve(sys.executable, [sys.executable, "-m", "kdx", *SWEEP], {**os.environ, **path})
    # Nobody reads the screen, either.
    wait_until(lambda: (tmp_path / "runs.db").exists() and any_rows(tmp_path))
    os.close(screen)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if ignored:
        assert code == 0
        assert states(tmp_path) == {RunState.COMPLETED}
    else:
        assert code == 129
        assert RunState.INTERRUPTED in states(tmp_path)
        assert states(tmp_path) <= {RunState.INTERRUPTED, RunState.PENDING}, "it stopped at safe points"
    figure(f"SIGHUP {'ignored' if ignored else 'heeded'}: exit {code}")


def any_rows(folder: Path) -> bool:
    with contextlib.suppress(KdxError):
        return bool(rows(folder))
    return False


@pytest.fixture
def undelivered(request):
    """How to start kdx so that none of its messages can be delivered."""
    with contextlib.ExitStack() as opened:
        match request.param:
            case "closed":
                yield {"stderr": None, "preexec_fn": lambda: os.close(2)}
            case "a full disk":
                yield {"stderr": opened.enter_context(Path("/dev/full").open("w"))}
            case "a reader that ended":
                reads, writes = os.pipe()
                os.close(reads)
                opened.callback(os.close, writes)
                yield {"stderr": writes}
            case "a reader that stalls":
                for end in (pipe := os.pipe()):
                    opened.callback(os.close, end)
                fill(pipe[1])
                yield {"stderr": pipe[1]}
            case "a terminal that stalls":
                for end in (terminal := pty.openpty()):
                    opened.callback(os.close, end)
                fill(terminal[1])
                yield {"stderr": terminal[1]}


def fill(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"x" * 4096)
    os.set_blocking(descriptor, True)


@pytest.mark.parametrize(
    "undelivered",
    [
        "a full disk",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("closed", "a reader that ended", "a reader that stalls", "a terminal that stalls")
        ),
    ],
    indirect=True,
)
def test_messages_that_cannot_be_delivered_end_and_block_nothing(undelivered, at_work, tmp_path, figure):
    (tmp_path / "grid.yaml").write_text(SMALL)
    code = kdx(tmp_path, *SWEEP, **undelivered).wait(300)
    assert code == 0 and states(tmp_path) == {RunState.COMPLETED}
    shutil.rmtree(tmp_path / "runs.files")
    (tmp_path / "runs.db").unlink()
    process = at_work(ENDLESS, **undelivered)
    process.send_signal(signal.SIGTERM)
    stopped = process.wait(300)
    assert stopped == 143 and RunState.INTERRUPTED in states(tmp_path)
    figure(f"exit {code}, all completed; SIGTERM: exit {stopped}")


def test_a_server_that_is_killed_is_replaced_and_its_runs_go_on(unbroken, tmp_path, data_home, figure):
    (tmp_path / "grid.yaml").write_text(GRID)
    process = kdx(tmp_path, *SWEEP)
    at_work_until(lambda: has_begun(tmp_path / "runs.files"), process)
    _, server, *workers = family(process.pid)
    os.kill(server, signal.SIGKILL)
    assert process.wait(300) == 0
    assert rows(tmp_path) == unbroken
    assert "forked from was killed by SIGKILL, and all workers with it: starting another\n" in said(tmp_path)
    assert not any(map(alive, workers))
    figure(f"{len(workers)} runs went on under another server, identical")


def test_a_server_that_was_stopped_takes_two_control_c_like_any_other(at_work, tmp_path, figure):
    process = at_work(ENDLESS)
    everyone = family(process.pid)
    os.kill(everyone[1], signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "once more ends at once" in said(tmp_path))  # two that come at once are one
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130
    wait_until(lambda: not any(map(alive, everyone)))
    figure("server stopped, asked twice: exit 130, no process left")


# Python runs this before anything else.
NO_PROCESS = """
import errno, os, sys

if "kdx.sweep.hosts.fork_server_process" in sys.orig_argv:
    fork, refused = os.fork, []

    def refusing():
        if len(refused) < 3:
            refused.append(None)
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    os.fork = refusing
"""


def test_a_system_that_has_no_process_to_give_is_asked_again(tmp_path, data_home, figure):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "sitecustomize.py").write_text(NO_PROCESS)
    (tmp_path / "grid.yaml").write_text(SMALL)
    assert kdx(tmp_path, *SWEEP, path=(str(tmp_path / "code"),)).wait(300) == 0
    assert states(tmp_path) == {RunState.COMPLETED}
    assert {run.attempt for run in runs(tmp_path)} == {1}
    figure("fork refused 3 times: completed, no attempt lost")


# Python runs this before anything else: Ctrl-C comes when a module is first asked for.
INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("WHEN"):
            del os.environ["WHEN"]
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
"""


@pytest.mark.parametrize("when", ["kdx.cli.app", "typer", "yaml", "numpy", "sqlalchemy", "rich.progress"])
def test_control_c_during_imports_is_quiet(when, tmp_path, data_home, figure):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED)
    (tmp_path / "grid.yaml").write_text(SMALL)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    process = kdx(tmp_path, *SWEEP, env=os.environ | {"PYTHONPATH": path, "WHEN": when})
    assert (process.wait(300), said(tmp_path)) == (130, "")
    figure(f"while {when} is imported: exit {process.returncode}, nothing said")


def test_a_working_folder_that_was_deleted_is_one_message(tmp_path, data_home, figure):
    gone = tmp_path / "gone"
    gone.mkdir()
    process = kdx(tmp_path, "sweep", "quickstart", cwd=gone, preexec_fn=gone.rmdir)
    assert process.wait(300) == 2
    assert said(tmp_path) == "error: the working folder was deleted\n  hint: cd to one that is there\n"
    figure(f"exit {process.returncode}, one message")
