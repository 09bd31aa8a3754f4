"""Chooses runs by `KEY=VALUE`, for all commands that show runs."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Row = TypeVar("Row", bound=Mapping[str, Any])

PLAIN = ("state", "seed", "run", "cell")
"""Keys that every run has beside its choices."""


def chosen(rows: list[Row], conditions: Sequence[str]) -> list[Row]:
    """The runs that fulfil all of `key=value`.

    Args:
        rows: each has the keys of `PLAIN`, and `choices`: axis → choice.

    Raises:
        KdxError: there is no such key, or no run has the value.
    """
    from kdx.errors import KdxError, did_you_mean

    for text in conditions:
        key, equals, value = text.partition("=")
        known = tuple(dict.fromkeys([*PLAIN, *(axis for row in rows for axis in row["choices"])]))
        if not equals:
            raise KdxError(f"`{text}` chooses nothing", allowed="key=value, such as state=failed")
        if rows and key not in known:
            raise KdxError(f"unknown key `{key}` in `{text}`", allowed=known, hint=did_you_mean(key, known))
        words = [str(row[key]) if key in PLAIN else row["choices"].get(key, "–") for row in rows]
        found = [row for row, word in zip(rows, words, strict=True) if word == value]
        if rows and not found:
            values = tuple(dict.fromkeys(words))
            raise KdxError(f"no run has {text}", allowed=values, hint=did_you_mean(value, values))
        rows = found
    return rows
