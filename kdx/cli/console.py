"""Data to stdout, talk to stderr.

When nobody reads any more, as behind `head`, what is left goes nowhere and the command does its work to the end.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from kdx.errors import Faults, KdxError
from kdx.report.inert import inert as one_line


def out(data: Any) -> None:
    """The result: text as it is, or something rich can draw."""
    text = data if isinstance(data, str) else _drawn(data)
    with _read_or_not(sys.stdout):
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
    with _read_or_not(sys.stderr):
        print(inert(text), file=sys.stderr)


def error(fault: KdxError) -> None:
    """One problem, or all of a grid's, each led by its place, as editors read it."""
    say(str(fault) if isinstance(fault, Faults) else f"error: {fault}")


def inert(text: str) -> str:
    """Text that cannot drive a terminal; its lines and their indentation stay."""
    lines = text.split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + one_line(line) for line in lines)


def _drawn(data: Any) -> str:
    from rich.console import Console

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    with console.capture() as capture:
        console.print(data)
    return capture.get()


@contextmanager
def _read_or_not(stream: TextIO) -> Iterator[None]:
    """Flushes what was written; once its reader has ended, `stream` leads nowhere."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        # Closing it would not do: what is still buffered is written once more at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
