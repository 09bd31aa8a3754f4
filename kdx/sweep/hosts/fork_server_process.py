"""Forks workers from a process that has imported torch and Lightning and done nothing else.

A fresh import takes seconds, a fork a tenth of one. The server is a child of the sweep in a session of its own, so the
terminal's Ctrl-C does not reach it. It ignores signals that ask it to end: a machine that shuts down, or a batch
system, sends one to every process, and without the server the workers would die before their safe points. When the
sweep ends for any reason, the socket between them closes, and the server stops its workers and ends too.
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
from typing import Any, NoReturn

from kdx.errors import ServerError
from kdx.sweep.messages import STOPPED, Work, receive, send, trouble

GRACE = 8.0  # seconds for workers to reach a safe point once the sweep is gone
FORK_TRIES, FORK_PAUSE = 25, 0.2  # while the system gives no process; seconds
# Options of mallopt(3): M_MMAP_MAX, so that large tensors come from the heap too; M_TRIM_THRESHOLD, M_TOP_PAD in bytes.
MALLOC = {-4: 0, -1: 2**31 - 1, -2: 2**26}
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(descriptor: int) -> NoReturn:
    """Serve on an inherited socket until its other end closes."""
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    # The sweep blocked the signals, so that none came before this.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
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
    gc.collect()
    gc.freeze()  # a collection in a child would write to, and so copy, every page it inherited
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([channel.fileno(), wake], [], [])
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


def _execute(message: dict[str, Any], channel: socket.socket, children: dict[int, int], worker: Any) -> None:
    if message["do"] == "start":
        work = Work(**message["work"])
        if work.rivals is not None:
            # Once here, instead of half a second in every worker.
            import kdx.tune.pruning  # noqa: F401
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1})
        server = os.getpid()
        try:
            pid = _fork(channel, children)
            if pid == 0:
                _become_worker(work, channel, worker, server)
        except OSError as error:
            problem = f"the system gives no process for another worker: {error.strerror}"
            hint = "fewer --workers, or a higher limit (ulimit -u), then kdx resume"
            _say(channel, trouble(work.run_id, ServerError(problem, hint=hint)))
            _say(channel, {"event": "exit", "run": work.run_id, "code": STOPPED})
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        children[pid] = work.run_id
    elif message["do"] == "signal":
        for pid, run_id in children.items():
            if message["run"] in (None, run_id):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, message["signal"])


def _fork(channel: socket.socket, children: dict[int, int]) -> int:
    """Fork like os.fork, and retry for a while if the system has no process to give."""
    for _ in range(FORK_TRIES):
        with contextlib.suppress(OSError):
            return os.fork()
        _reap(channel, children)  # an ended process counts until it is reaped
        time.sleep(FORK_PAUSE)
    return os.fork()


def _become_worker(work: Work, channel: socket.socket, worker: Any, server: int) -> NoReturn:
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _die_with(server)
        if work.gpu is not None:
            # In time: CUDA reads it when it is first used, and here nobody has used it yet.
            os.environ["CUDA_VISIBLE_DEVICES"] = work.gpu
        code = worker.work(work, channel)
    except BaseException:
        # The run could not even be recorded as failed.
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):  # their disk may be full
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _die_with(server: int) -> None:
    """Make this process die with the server, without which nobody could stop or reap it."""
    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != server:  # the server was killed before that
        os._exit(70)


def _reap(channel: socket.socket, children: dict[int, int]) -> None:
    for pid in list(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            run_id = children.pop(pid)
            _say(channel, {"event": "exit", "run": run_id, "code": os.waitstatus_to_exitcode(status)})


def _say(channel: socket.socket, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the sweep is gone; the main loop notices that
        send(channel, message)


def _end(children: dict[int, int]) -> NoReturn:
    for pid in children:
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
