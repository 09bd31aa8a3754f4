"""Runs processes on this machine, forked from one that has imported torch (`fork_server_process`)."""

import contextlib
import os
import select
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

from kdx.errors import ServerEndedError, ServerError
from kdx.sweep import messages, server_process
from kdx.sweep.hosts import HostLost
from kdx.sweep.messages import Work, describe_exit

ENDS_WITHIN = 10.0  # seconds for the process to end, with its workers at their safe points
ENDS_AT_ONCE_WITHIN = 1.0  # seconds, where the workers are killed


class ForkServer:
    """A `Host` whose process is started with the first run if not before, and again after it was lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._wake, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)

    def start(self, work: Work, within: float) -> bool:
        try:
            if self._process is None:
                self._process, self._channel = server_process.take()
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
        return HostLost(problem, ServerEndedError(f"{problem}, and all workers with it", hint=hint))

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
