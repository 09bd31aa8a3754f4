"""Runs processes on this machine, forked from one that has imported torch (`fork_server_process`)."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from kdx.errors import ServerEndedError, ServerError
from kdx.sweep import messages
from kdx.sweep.hosts import HostLost
from kdx.sweep.messages import Work, describe_exit

ENDS_WITHIN = 10.0  # seconds for the process to end, with its workers at their safe points
ENDS_AT_ONCE_WITHIN = 1.0  # seconds, where the workers are killed

# Signals that the process handles itself; they are blocked until it does.
_HANDLED_BY_PROCESS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1}


class ForkServer:
    """A `Host` whose process is started with the first run, and again after it was lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._wake, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)

    def start(self, work: Work, within: float) -> bool:
        try:
            if self._process is None:
                self._start_process()
            # A stopped process reads nothing, and a socket holds only so much.
            woken, ready, _ = select.select([self._wake], [self._channel], [], within)
            if ready:
                messages.send(self._channel, messages.start(work), socket.MSG_DONTWAIT)
                return True
        except OSError as error:
            raise self._lost(error) from error
        if woken:
            return False
        raise self._lost(at_once=True)

    def listen(self, seconds: float) -> Mapping[str, Any] | None:
        sources: list[Any] = [self._wake, *([self._channel] if self._process else [])]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._wake in ready:
            os.read(self._wake, 64)
            return None
        if not ready:
            return None
        message = messages.receive(self._channel)
        if message is None:
            raise self._lost()
        return message

    def wake(self) -> None:
        with contextlib.suppress(OSError):  # the pipe is full of wakes, or closed
            os.write(self._wake_end, b"!")

    def signal(self, signum: int, run_id: int | None = None) -> None:
        if self._process:
            # `listen` reports a process that is gone; a stopped one has to be killed.
            with contextlib.suppress(OSError):
                messages.send(self._channel, {"do": "signal", "signal": signum, "run": run_id}, socket.MSG_DONTWAIT)

    def close(self, *, at_once: bool) -> None:
        if self._process:
            self._end_process(ENDS_AT_ONCE_WITHIN if at_once else ENDS_WITHIN)
        wake_end, self._wake_end = self._wake_end, -1  # a signal may still come
        os.close(self._wake)
        os.close(wake_end)

    def _start_process(self) -> None:
        own_end, process_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with process_end:
            environment = os.environ | {"TOKENIZERS_PARALLELISM": "false"}
            if "CUDA_VISIBLE_DEVICES" not in environment:
                # Then numbers of GPUs are those of nvidia-smi; CUDA's own start with the fastest.
                environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_BY_PROCESS)
            try:
                module = "kdx.sweep.hosts.fork_server_process"
                self._process = subprocess.Popen(
                    # -P: modules are not looked for in the user's folder, where another one may have the same name.
                    [sys.executable, "-P", "-m", module, str(process_end.fileno())],
                    pass_fds=[process_end.fileno()],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    env=environment,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._channel = own_end

    def _lost(self, error: OSError | None = None, *, at_once: bool = False) -> HostLost:
        """Return the error for a process that has ended, does not answer, or could not be started."""
        process = "the process that workers are forked from"
        if self._process is None:
            problem = f"{process} could not be started: {error and error.strerror}"
            hint = "fewer --workers, or a higher limit (ulimit -u), then kdx resume"
            return HostLost(problem, ServerError(problem, hint=hint))
        code = self._end_process(0.0 if at_once else ENDS_WITHIN)
        if code < 0:
            return HostLost(f"{process} was {describe_exit(code)}")
        problem = f"{process} {describe_exit(code)}"
        hint = "its traceback is above; kdx resume continues from their checkpoints"
        return HostLost(problem, ServerEndedError(f"{problem}, and they with it", hint=hint))

    def _end_process(self, seconds: float) -> int:
        """End the process, whose workers have n seconds to reach a safe point, and return its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        self._channel.close()
        try:
            return process.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()  # its workers die with it
            return process.wait()
