"""Typing `kdx` in a folder, in real processes."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

from kdx.errors import KdxError
from kdx.store import reading
from kdx.store.database import open_database
from kdx.store.records import RunRecord, RunState

KDX = Path(sys.executable).parent / "kdx"


def kdx(*arguments: str, folder: Path, code: int = 0) -> tuple[str, str]:
    """What a command that ends with this exit code writes to stdout and to stderr."""
    done = subprocess.run([sys.executable, "-m", "kdx", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


class Terminal:
    """Somebody at work in a folder, with a data home of their own and no other setting of kdx."""

    def __init__(self, folder: Path, data_home: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KDX_", "PYTHON"))}
        path = f"{KDX.parent}:{os.environ['PATH']}"
        self.environment = kept | {"KDX_DATA": str(data_home), "PATH": path, "TERM": "xterm", "COLUMNS": "100"}
        self._started: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        """Kill what a test that failed has left at work, since it would slow the others."""
        left = [process for process in self._started if process.poll() is None]
        for process in left:
            process.kill()
            process.wait()
        for worker in self.workers() if left else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """The command line as it stands, to its end."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """kdx at work, its messages going to `messages`."""
        with (self.folder / "messages").open("w") as messages:
            process = subprocess.Popen(
                [KDX, *arguments], cwd=self.folder, env=self.environment, stderr=messages, stdout=subprocess.PIPE
            )
        self._started.append(process)
        return process

    def messages(self) -> str:
        return (self.folder / "messages").read_text()

    def runs(self, database: str = "runs.db") -> tuple[RunRecord, ...]:
        with open_database(self.folder / database, write=False) as opened:
            return reading.load_sweep(opened).runs

    def is_at_work(self, since: int = 0, database: str = "runs.db") -> bool:
        """Whether every run of a sweep is running, and beyond a step."""
        with contextlib.suppress(KdxError):  # the database is yet to be made
            return all(run.progress_step > since and run.state is RunState.RUNNING for run in self.runs(database))
        return False

    def has_rows(self) -> bool:
        """Whether anything is recorded of any run."""
        with contextlib.suppress(KdxError):
            return any(run.progress_step for run in self.runs())
        return False

    def workers(self) -> list[int]:
        """Processes of sweeps in this folder, beside the sweeps themselves: servers and what they forked."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                there = (process / "cwd").readlink() == self.folder
                if there and b"kdx.sweep.hosts.fork_server_process" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return found


class LiveTerminal:
    """A command on a pseudo-terminal, as somebody sees it."""

    def __init__(self, terminal: Terminal, *arguments: str) -> None:
        self.seen = bytearray()
        pid, self.screen = pty.fork()
        if pid == 0:
            os.chdir(terminal.folder)
            os.execve(KDX, [str(KDX), *arguments], terminal.environment)
        self.pid = pid
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self.screen, 4096)
            except OSError:  # the other side has ended
                return
            if not part:
                return
            self.seen += part

    def press_control_c(self) -> None:
        os.write(self.screen, b"\x03")

    def end(self) -> tuple[int, str]:
        """The exit code, and all that was seen."""
        _, status = os.waitpid(self.pid, 0)
        self._reader.join()
        os.close(self.screen)
        return os.waitstatus_to_exitcode(status), self.seen.decode()


def stop_for_good(processes: list[int]) -> None:
    """Leaves processes alive but at rest, so that no signal but SIGKILL ends them."""
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
