"""Forks workers from a process that has imported torch and Lightning and done nothing else.

A fresh import takes seconds, a fork a tenth of one. A worker that has done its work waits a moment for more, since the
first run of a process takes several times as long as the next one. It does not wait if it has run code from outside
kdx, which may have left something behind, or has used a GPU, whose memory it holds.

The server is a child of the sweep in a session of its own, so the terminal's Ctrl-C does not reach it. It ignores
signals that ask it to end: a machine that shuts down, or a batch system, sends one to every process, and without the
server the workers would die before their safe points. When the sweep ends for any reason, the socket between them
closes, and the server stops its workers and ends too.
"""

import contextlib
import ctypes
import faulthandler
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kdx.errors import ServerError
from kdx.sweep.messages import DONE, STOPPED, Work, receive, send, start, trouble

GRACE = 8.0  # seconds for workers to reach a safe point once the sweep is gone
FORK_TRIES, FORK_PAUSE = 25, 0.2  # while the system gives no process; seconds
# Options of mallopt(3): M_MMAP_MAX, so that large tensors come from the heap too; M_TRIM_THRESHOLD, M_TOP_PAD in bytes.
MALLOC = {-4: 0, -1: 2**31 - 1, -2: 2**26}
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HANDLED_BY_WORKER = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
IDLE = 1.0  # seconds that a worker waits for more work


@dataclass
class Child:
    """A worker process."""

    channel: socket.socket
    """Takes more work to it, and returns a packet when it has done its work."""
    run_id: int | None
    """The run that it works on; None while it waits for more."""
    idle_since: float = 0.0


def main(descriptor: int) -> NoReturn:
    """Serve on an inherited socket until its other end closes."""
    gc.disable()  # imports make many objects that stay, and collecting among them takes a quarter of their time
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    # The sweep blocked the signals, so that none came before this.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A sweep that is killed meanwhile leaves nothing behind; afterwards the server notices its end.
    _die_with(os.getppid())
    # The imports are the point of this process: every worker inherits them.
    from kdx.cell_code import read_code
    from kdx.sweep import worker
    from kdx.training.environment import commit

    # Both are cached, and every worker inherits them: one reads the sources, the other calls git.
    read_code()
    commit()
    _keep_memory()
    channel = socket.socket(fileno=descriptor)
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    signal.set_wakeup_fd(wake_end)
    _set_signal_at_end_of_parent(0)
    gc.freeze()  # a collection in a child would write to, and so copy, every page it inherited
    gc.enable()
    children: dict[int, Child] = {}
    while True:
        waiting = {child.channel.fileno(): child for child in children.values()}
        idle = any(child.run_id is None for child in children.values())
        ready, _, _ = select.select([channel.fileno(), wake, *waiting], [], [], IDLE if idle else None)
        for descriptor in waiting.keys() & ready:
            _hear(waiting[descriptor], channel)
        _end_idle(children)
        if wake in ready:
            os.read(wake, 4096)
            _reap(channel, children)
        if channel.fileno() in ready:
            message = receive(channel)
            if message is None:
                _end(children)
            _execute(message, channel, children, worker)


def _keep_memory() -> None:
    """Make the C library keep freed memory, in this process and its workers.

    Each step allocates again what the last one freed, and the system hands out pages one by one, cleared, which takes a
    quarter of a step's time on a virtual machine (translation-mini). A worker's memory is freed when its run ends.
    """
    glibc = ctypes.CDLL(None)
    if hasattr(glibc, "mallopt"):
        for option, value in MALLOC.items():
            glibc.mallopt(option, value)


def _execute(message: dict[str, Any], channel: socket.socket, children: dict[int, Child], worker: Any) -> None:
    if message["do"] == "start":
        work = Work(**message["work"])
        if not _hand_on(work, children):
            _start(work, channel, children, worker)
    elif message["do"] == "signal":
        for pid, child in children.items():
            if child.run_id is not None and message["run"] in (None, child.run_id):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, message["signal"])


def _of_kdx_alone(work: Work) -> bool:
    """Return whether a process has nothing of a work left when it is done, so that it may do another one."""
    return not work.components and work.gpu is None


def _hand_on(work: Work, children: Mapping[int, Child]) -> bool:
    """Give the work to a worker that waits for more; return False if there is none."""
    if not _of_kdx_alone(work):
        return False
    for child in children.values():
        if child.run_id is None:
            with contextlib.suppress(OSError):  # it was killed
                send(child.channel, start(work))
                child.run_id = work.run_id
                return True
    return False


def _start(work: Work, channel: socket.socket, children: dict[int, Child], worker: Any) -> None:
    if work.rivals is not None:
        # Once here, instead of half a second in every worker.
        import kdx.tune.pruning  # noqa: F401
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_BY_WORKER)
    server = os.getpid()
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid = _fork(channel, children)
        if pid == 0:
            # A worker notices that the server has closed its end only when nobody else has that end.
            for other in (here, *(child.channel for child in children.values())):
                other.close()
            _become_worker(work, channel, there, worker, server)
    except OSError as error:
        here.close()
        problem = f"the system gives no process for another worker: {error.strerror}"
        hint = "fewer --workers, or a higher limit (ulimit -u), then kdx resume"
        _say(channel, trouble(work.run_id, ServerError(problem, hint=hint)))
        _say(channel, {"event": "exit", "run": work.run_id, "code": STOPPED})
        return
    finally:
        there.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    children[pid] = Child(here, work.run_id)


def _fork(channel: socket.socket, children: dict[int, Child]) -> int:
    """Fork like os.fork, and retry for a while if the system has no process to give."""
    for _ in range(FORK_TRIES):
        with contextlib.suppress(OSError):
            return os.fork()
        _reap(channel, children)  # an ended process counts until it is reaped
        time.sleep(FORK_PAUSE)
    return os.fork()


def _become_worker(work: Work, channel: socket.socket, server_end: socket.socket, worker: Any, server: int) -> NoReturn:
    def another() -> Work | None:
        if not _of_kdx_alone(work):
            return None
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_BY_WORKER)
        _free_memory()
        with contextlib.suppress(OSError):  # the server is gone
            send(server_end, {"event": "exit", "code": DONE})
            message = receive(server_end)
            return None if message is None else Work(**message["work"])
        return None

    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _die_with(server)
        if work.gpu is not None:
            # In time: CUDA reads it when it is first used, and here nobody has used it yet.
            os.environ["CUDA_VISIBLE_DEVICES"] = work.gpu
        code = worker.work(work, channel, another)
    except BaseException:
        # The run could not even be recorded as failed.
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):  # their disk may be full
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _free_memory() -> None:
    """Return what the last run held to the system, and measure the memory of the next run from there."""
    gc.collect()
    glibc = ctypes.CDLL(None)
    if hasattr(glibc, "malloc_trim"):
        glibc.malloc_trim(0)
    with contextlib.suppress(OSError):  # proc(5): resets the peak of resident memory
        Path("/proc/self/clear_refs").write_text("5")


def _die_with(parent: int) -> None:
    """Make this process die with its parent, without which nobody could stop or reap it."""
    _set_signal_at_end_of_parent(signal.SIGKILL)
    if os.getppid() != parent:  # the parent was killed before that
        os._exit(70)


def _set_signal_at_end_of_parent(signum: int) -> None:
    """Ask for a signal when the parent ends; 0: for none."""
    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signum)


def _hear(child: Child, channel: socket.socket) -> None:
    """Report the end of a work whose worker waits for more."""
    with contextlib.suppress(OSError):  # it was killed, which `_reap` reports
        if receive(child.channel) is not None:
            _say(channel, {"event": "exit", "run": child.run_id, "code": DONE})
            child.run_id, child.idle_since = None, time.monotonic()


def _end_idle(children: Mapping[int, Child]) -> None:
    """End workers that have waited long enough, by closing what they listen to."""
    for child in children.values():
        if child.run_id is None and time.monotonic() - child.idle_since >= IDLE:
            _send_no_more(child)


def _send_no_more(child: Child) -> None:
    """Let a worker end that waits for more, now or when its work is done."""
    with contextlib.suppress(OSError):  # it has ended
        child.channel.shutdown(socket.SHUT_WR)


def _reap(channel: socket.socket, children: dict[int, Child]) -> None:
    for pid in list(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            child = children.pop(pid)
            child.channel.close()
            if child.run_id is not None:
                _say(channel, {"event": "exit", "run": child.run_id, "code": os.waitstatus_to_exitcode(status)})


def _say(channel: socket.socket, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the sweep is gone; the main loop notices that
        send(channel, message)


def _end(children: dict[int, Child]) -> NoReturn:
    for pid, child in children.items():
        _send_no_more(child)
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while children and time.monotonic() < deadline:
        for pid in list(children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del children[pid]
        time.sleep(0.05)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
