"""Data to stdout, talk to stderr.

When nobody reads any more, as behind `head`, what is left goes nowhere and the command does its work to the end. Data
that cannot be written for another reason are an error; messages never are: what cannot be delivered is dropped.
"""

import io
import math
import os
import select
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from kdx.errors import Faults, KdxError
from kdx.sanitize import sanitize_lines

READS_WITHIN = 1.0  # seconds for a reader of messages to make room, before they count as not to be delivered


def out(data: Any) -> None:
    """The result: text as it is, or something rich can draw."""
    with _read_or_not(sys.stdout):
        text = data if isinstance(data, str) else _drawn(data)
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def out_lines(lines: Iterable[str]) -> None:
    """The result, line by line; no more of them are made once nobody reads."""
    out_parts(f"{line}\n" for line in lines)


def out_parts(parts: Iterable[str]) -> None:
    """The result, one part behind the other; no more of them are made once nobody reads."""
    with _read_or_not(sys.stdout):
        for part in parts:
            sys.stdout.write(part)


def is_terminal() -> bool:
    """Whether somebody looks at the result as it comes."""
    return sys.stdout.isatty()


def out_json(data: Any) -> None:
    """The result, for programs; NaN and ±Inf, which JSON lacks, are null."""
    import orjson

    out(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())


def say(text: str) -> None:
    """A message, without the control characters that a name may carry."""
    print(sanitize_lines(text), file=sys.stderr, flush=True)


def error(fault: KdxError) -> None:
    """One problem, or all of a grid's, each led by its place, as editors read it."""
    say(str(fault) if isinstance(fault, Faults) else f"error: {fault}")


def _drawn(data: Any) -> str:
    from rich.console import Console

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    with console.capture() as capture:
        console.print(data)
    return capture.get()


@contextmanager
def _read_or_not(stream: TextIO) -> Iterator[None]:
    """Flushes what was written; once its reader has ended, `stream` leads nowhere.

    Raises:
        OSError: it cannot be written for another reason, such as a full disk.
    """
    try:
        yield
        stream.flush()
    except OSError as error:
        # Closing it would not do: what is still buffered is written once more at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, stream.name) from error


class _Messages(io.RawIOBase):
    """Messages on their way to a descriptor; writing them never fails, and waits only where that harms nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._way = _without_waiting(descriptor)
        self._stalled = False
        self.waits = math.inf
        """Seconds for a reader that stalls."""

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data)
        # One that stalled once is not waited for again before it reads.
        until = time.monotonic() + (0.0 if self._stalled else self.waits)
        try:
            while left:
                wait = max(until - time.monotonic(), 0.0)
                _, ready, _ = select.select([], [self._way], [], None if wait == math.inf else wait)
                with suppress(BlockingIOError):  # a terminal with room for less than one sign
                    if ready:
                        # More than this would wait in a pipe that has room for some.
                        left = left[os.write(self._way, left[: select.PIPE_BUF]) :]
                        continue
                if time.monotonic() >= until:
                    self._stalled = True
                    break
                time.sleep(0.02)
            else:
                self._stalled = False
        except OSError:
            pass  # the terminal is gone, the disk full
        return len(data)


def _without_waiting(descriptor: int) -> int:
    """A terminal, opened once more so that writing does not wait; of anything else the descriptor as it is.

    One that has room for a part of what is written makes the writer wait for the rest. And what `descriptor` itself is
    set to holds for every process that has it, the shell too.
    """
    if os.isatty(descriptor):
        with suppress(OSError):  # somebody else's, as after su
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return descriptor


def prepare_streams() -> None:
    """Has all three standard streams lead somewhere, and makes writing messages safe.

    Where one was closed, the next file to be opened would take its number: the database, for one. The processes that
    kdx starts inherit them.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where the locale lacks a sign of ours, such as ×, a command goes on all the same.
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        encoding = sys.stderr.encoding if sys.stderr else None
        sys.stderr = io.TextIOWrapper(_Messages(2), encoding, "backslashreplace", write_through=True)


def never_wait_for_readers() -> None:
    """From now on a reader of messages that stalls holds nothing up."""
    if isinstance(messages := getattr(sys.stderr, "buffer", None), _Messages):
        messages.waits = READS_WITHIN
