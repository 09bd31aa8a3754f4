"""Writes data to stdout and messages to stderr.

When the reader of stdout has ended, as behind `head`, the rest is discarded and the command does its work to the end.
Data that cannot be written for another reason are an error; messages that cannot be written are dropped.
"""

import io
import math
import os
import select
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from kdx.errors import Faults, KdxError, StorageError
from kdx.report.writers.rows import to_text
from kdx.report.writers.styles import SHOWN, styled
from kdx.report.writers.widths import folded
from kdx.sanitize import spelled_out

FOUND = 5
"""Exit code of a command that found something wrong."""
_ESCAPE = "\x1b"
"""Starts a colour. Names have none; the lines that have one were fitted before."""
_NO_BREAKS = str.maketrans(dict.fromkeys("\t\x85\u2028\u2029", " "))
_NARROWEST, _USUAL, _WIDEST = 20, 80, 160
"""Columns of the narrowest terminal, of one that does not say, and of what is drawn where there is none."""
READS_WITHIN = 1.0  # seconds that a message waits for a reader that is slow, before it is dropped


_waits = False
"""Whether the last line on the terminal is what the command waits for."""


def out(data: Any) -> None:
    """Write a result: text, or something that rich can draw."""
    with _read_or_not(sys.stdout):
        text = data if isinstance(data, str) else drawn(data)
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def out_lines(lines: Iterable[str]) -> None:
    """Write a result for people line by line, folded on a terminal; the iteration ends once nobody reads."""
    columns = width()
    with _read_or_not(sys.stdout):
        for line in lines:
            sys.stdout.writelines(f"{part}\n" for part in _fitted(line, sys.stdout, columns))


def out_text(parts: Iterable[str], *, at_once: bool = False) -> None:
    """Write a text part by part, on a terminal line by line and folded; the iteration ends once nobody reads.

    Args:
        at_once: whether a reader gets each part before the next one is made.
    """
    with _read_or_not(sys.stdout):
        for part in _folded_parts(parts) if is_terminal() else parts:
            sys.stdout.write(part)
            if at_once:
                sys.stdout.flush()


def _folded_parts(parts: Iterable[str]) -> Iterator[str]:
    columns, rest = width(), ""
    for part in parts:
        *lines, rest = (rest + part).split("\n")
        yield "".join(f"{shown}\n" for line in lines for shown in folded(line, columns))
    yield "\n".join(folded(rest, columns))


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def width(stream: TextIO | None = None) -> int | None:
    """Return the columns of a stream, stdout by default; None where it is no terminal: programs read whole lines."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    columns = 0
    if (given := os.environ.get("COLUMNS", "")).isdecimal():
        columns = int(given)
    else:
        with suppress(OSError, ValueError):  # it is gone
            columns = os.get_terminal_size(stream.fileno()).columns
    return max(columns or _USUAL, _NARROWEST)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    indent: int = 0,
    spare: Sequence[str] = (),
    optional: Collection[str] = (),
    apart: bool = False,
) -> Iterator[str]:
    """Return the lines of a table on stdout, see `kdx.report.writers.rows.to_text`; states are in colour.

    Args:
        optional: columns that are left out if they are blank in all rows.
        apart: whether an empty line comes before the table; without rows there is neither.
    """
    rows, whole = list(rows), width()
    if apart and not rows:
        return
    if apart:
        yield ""
    filled = {at for row in rows for at, value in enumerate(row) if value not in (None, "")}
    kept = [at for at, column in enumerate(columns) if column not in optional or at in filled]
    shown = [[row[at] for at in kept] for row in rows]
    room = None if whole is None else whole - indent
    for line in to_text([columns[at] for at in kept], shown, room, spare=spare, paint=painted):
        yield f"{'':{indent}}{line}".rstrip()


def painted(text: str, stream: TextIO | None = None) -> str:
    """Return a text for a stream, stdout by default, with its states and verdicts in colour if the stream has any."""
    stream = stream or sys.stdout
    if not stream.isatty() or not SHOWN.search(text):
        return text
    return _by_rich(styled(text), stream, None, soft_wrap=True, end="")


def out_json(data: Any) -> None:
    """Write a record, such as a dataclass, as JSON; NaN and ±Inf, which JSON lacks, become null."""
    out(as_json(data))


def as_json(data: Any) -> str:
    """Return the text that `out_json` writes."""
    # Every command imports this module; few write JSON.
    import orjson

    return orjson.dumps(data, _plain, orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def _fitted(text: str, stream: TextIO, columns: int | None) -> Iterator[str]:
    """Yield the lines of a text as they are shown, unless a colour says that they were fitted before."""
    if _ESCAPE in text:
        yield text
    else:
        yield from (painted(line, stream) for line in folded(text, columns))


def _plain(value: Any) -> Any:
    """Return a mapping, a named tuple or a set as JSON has it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(type(value))


def say(text: str) -> None:
    """Write a message, without the control characters that a name may contain. Blanks stay, as commands need them."""
    waits_for("")
    lines = _fitted(spelled_out(text.translate(_NO_BREAKS), keep="\n"), sys.stderr, width(sys.stderr))
    print("\n".join(lines), file=sys.stderr, flush=True)


def waits_for(what: str) -> None:
    """Show on a terminal what the command waits for, until its next message; an empty text ends that."""
    global _waits
    if (what or _waits) and sys.stderr.isatty():
        print(f"\r\x1b[K{what and f'{what} …'}", end="", file=sys.stderr, flush=True)
        _waits = bool(what)


def error(fault: KdxError) -> None:
    """Write one problem, or all of a grid, each after its place in the form that editors understand."""
    in_places = isinstance(fault, Faults) and any(each.place for each in fault.faults)
    say(str(fault) if in_places else f"error: {fault}")


def drawn(data: Any) -> str:
    """Return what rich draws for stdout."""
    return _by_rich(data, sys.stdout, width() or _WIDEST)


def _by_rich(data: Any, stream: TextIO, columns: int | None, **how: Any) -> str:
    # late: few commands draw anything, and help, completion and pipes are quick without
    from rich.console import Console

    console = Console(file=stream, width=columns)
    with console.capture() as capture:
        console.print(data, **how)
    return capture.get()


@contextmanager
def _read_or_not(stream: TextIO) -> Iterator[None]:
    """Flush `stream`; if its reader has ended, it is redirected to the null device.

    Raises:
        OSError: the stream cannot be written for another reason, such as a full disk.
    """
    try:
        yield
        stream.flush()
    except OSError as error:
        # Closing it is not enough, since Python writes the buffered rest again at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, stream.name) from error


class _Messages(io.RawIOBase):
    """A stream of messages to a descriptor; writing never fails, and waits only where that does no harm."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._way = _without_waiting(descriptor)
        self._stalled = False
        self.waits = math.inf
        """Seconds to wait for a stalled reader."""

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data)
        # Do not wait again for a stalled reader before it reads.
        until = time.monotonic() + (0.0 if self._stalled else self.waits)
        try:
            while left:
                wait = max(until - time.monotonic(), 0.0)
                _, ready, _ = select.select([], [self._way], [], None if wait == math.inf else wait)
                with suppress(BlockingIOError):  # a terminal with room for less than one character
                    if ready:
                        # Larger writes would wait for a pipe with less room.
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
    """Reopen a terminal so that writing does not wait; returns any other descriptor unchanged.

    A terminal with room for a part of the text makes the writer wait for the rest. Flags of `descriptor` itself would
    hold for every process that shares it, such as the shell.
    """
    if os.isatty(descriptor):
        with suppress(OSError):  # it belongs to another user, as after su
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return descriptor


def prepare_streams() -> None:
    """Open closed standard streams, and makes writing messages safe.

    Else the next opened file, such as the database, would take the number of a closed stream. The processes that kdx
    starts inherit the streams.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        raise StorageError("stdout is closed: there is nowhere to write the result", hint="add > FILE")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A command does not fail if the locale lacks a character, such as ×.
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        encoding = sys.stderr.encoding if sys.stderr else None
        sys.stderr = io.TextIOWrapper(_Messages(2), encoding, "backslashreplace", write_through=True)


def never_wait_for_readers() -> None:
    """From now on a stalled reader of messages blocks nothing."""
    if isinstance(messages := getattr(sys.stderr, "buffer", None), _Messages):
        messages.waits = READS_WITHIN
