"""Reversing: the same tokens from the last to the first, after a mark.

a c c b =        answer: b c c a
"""

from dataclasses import dataclass

from kdx.data.corpora.copy import Copy


@dataclass(frozen=True, kw_only=True)
class Reverse(Copy):
    """The same tokens from the last to the first, after a mark."""

    name = "reverse"

    def answer(self, given: list[int]) -> list[int]:
        return given[::-1]
