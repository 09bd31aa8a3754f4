"""Chooses runs by `KEY=VALUE`, for all commands that show runs."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kdx.errors import KdxError, did_you_mean

Row = TypeVar("Row", bound=Mapping[str, Any])

PLAIN = ("state", "seed", "run", "cell", "tag")
"""Keys that every run has beside its choices."""


def chosen(rows: list[Row], conditions: Sequence[str]) -> list[Row]:
    """The runs that fulfil all of `key=value`.

    Args:
        rows: each has `state`, `seed`, `run`, `cell`, and `choices`: axis → choice. It may have `tags`;
            `invalidated` and `not_needed`, reasons that a run has beside its state, by which it is chosen as by a
            state.

    Raises:
        KdxError: there is no such key, or no run has the value.
    """
    for text in conditions:
        key, equals, value = text.partition("=")
        known = tuple(dict.fromkeys([*PLAIN, *(axis for row in rows for axis in row["choices"])]))
        if not equals:
            raise KdxError(f"`{text}` chooses nothing", allowed="key=value, such as state=failed")
        if rows and key not in known:
            raise KdxError(f"unknown key `{key}` in `{text}`", allowed=known, hint=did_you_mean(key, known))
        words = [_words(row, key) for row in rows]
        found = [row for row, its in zip(rows, words, strict=True) if value in its]
        if rows and not found:
            values = tuple(dict.fromkeys(word for its in words for word in its))
            allowed = values or "no run has one yet"
            raise KdxError(f"no run has {text}", allowed=allowed, hint=did_you_mean(value, values))
        rows = found
    return rows


def _words(row: Mapping[str, Any], key: str) -> Sequence[str]:
    """What a run has under a key; several words where it has several tags."""
    if key == "tag":
        return [str(word) for word in row.get("tags", ())]
    if key == "state":
        return [str(row["state"]), *(word for word in ("invalidated", "not_needed") if row.get(word))]
    return [str(row[key]) if key in PLAIN else str(row["choices"].get(key, "–"))]
