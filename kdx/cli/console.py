"""Data to stdout, talk to stderr."""

import json
import sys
from typing import Any

from kdx.errors import KdxError
from kdx.report.inert import inert as one_line


def out(data: Any) -> None:
    """The result: text as it is, or something rich can draw."""
    if isinstance(data, str):
        sys.stdout.write(data if data.endswith("\n") else f"{data}\n")
        return
    from rich.console import Console

    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, soft_wrap=False).print(data)


def out_json(data: Any) -> None:
    """The result, for programs; NaN and ±Inf, which JSON lacks, are null."""
    out(json.dumps(_finite(data), indent=2, allow_nan=False))


def say(text: str) -> None:
    """A message, without the control characters that a name may carry."""
    print(inert(text), file=sys.stderr, flush=True)


def error(fault: KdxError) -> None:
    """One problem, or all of a grid's."""
    say(f"error: {fault}" if "\n" not in str(fault) or not hasattr(fault, "faults") else str(fault))


def inert(text: str) -> str:
    """Text that cannot drive a terminal; its lines and their indentation stay."""
    lines = text.split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + one_line(line) for line in lines)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        return None
    return data
