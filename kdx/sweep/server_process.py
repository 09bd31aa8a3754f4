"""Starts the process that workers are forked from (`kdx.sweep.hosts.fork_server_process`).

It imports torch and Lightning, which takes longer than all that a command does before it trains. So a command may start
it before its own imports: then both run side by side. Only the standard library is imported here.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

# Signals that the process handles itself; they are blocked until it does.
_HANDLED_BY_PROCESS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1}


ServerProcess = tuple[subprocess.Popen[bytes], socket.socket]
"""A process that serves, and the end of the socket that leads to it; it ends when that end closes."""

_early: list[ServerProcess] = []
"""The process that was started before it was needed, until it is taken."""


@contextmanager
def early() -> Iterator[None]:
    """Start the process, and kill it at the end unless it was taken by then.

    Raises:
        ModuleNotFoundError: torch is not installed.
    """
    with suppress(OSError):  # `take` tries again, and its caller reports why it failed
        _early.append(_started())
    try:
        yield
    finally:
        while _early:
            process, channel = _early.pop()
            channel.close()
            process.kill()
            process.wait()


def take() -> ServerProcess:
    """Return the process that was started early; if there is none, start one.

    Raises:
        OSError: the system gives no process.
        ModuleNotFoundError: torch is not installed.
    """
    return _early.pop() if _early else _started()


def require_torch() -> None:
    """Raise ModuleNotFoundError if torch is not installed, where else a process that imports it would end."""
    if find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")


def _started() -> ServerProcess:
    require_torch()
    own_end, process_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with process_end:
        environment = os.environ | {"TOKENIZERS_PARALLELISM": "false"}
        if "CUDA_VISIBLE_DEVICES" not in environment:
            # Then numbers of GPUs are those of nvidia-smi; CUDA's own start with the fastest.
            environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_BY_PROCESS)
        try:
            module = "kdx.sweep.hosts.fork_server_process"
            process = subprocess.Popen(
                # -P: modules are not looked for in the user's folder, where another one may have the same name.
                [sys.executable, "-P", "-m", module, str(process_end.fileno())],
                pass_fds=[process_end.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process, own_end
