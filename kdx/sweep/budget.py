"""Reads budgets and other lengths of wall time, as a user types them."""

import re
from dataclasses import dataclass

from kdx.errors import KdxError

_WALL_TIME = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)(?P<unit>[smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Budget:
    """The time that a command may take."""

    text: str
    """The budget as the user typed it."""
    seconds: float
    deadline: float
    """When the command has to end, by the monotonic clock, in seconds."""


def read_wall_time(option: str, text: str, *, least: float = 0.0) -> float:
    """Return the seconds of an option that is a length of wall time, such as `90m`.

    Args:
        option: name of the option, for the message.
        least: smallest number of seconds.

    Raises:
        KdxError: the text is not a length of time, or too short.
    """
    match = _WALL_TIME.fullmatch(text)
    seconds = float(match["number"]) * _SECONDS[match["unit"]] if match else 0.0
    if match is None or seconds < least:
        raise KdxError(f"{option} `{text}`", allowed=f"wall time such as 30s, 90m or 6h; {least:g}s or more")
    return seconds
