"""The cache of one attention between the calls of incremental decoding."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor


class Keys(NamedTuple):
    """Projected keys, with what a query must know about them."""

    key: Tensor
    """(B, H, Tk, D), H the number of heads of keys."""
    value: Tensor
    """(B, H, Tk, D)"""
    positions: Tensor
    """Integers, (Tk,) or (B, Tk)."""
    padding: Tensor | None
    """True where a key is padding, (B, Tk); None if nowhere."""
    read: Mapping[str, Tensor] = MappingProxyType({})
    """`PositionScheme.reads` → what the scheme reads off the tokens, (B, H, Tk, C)."""


class Cache:
    """The keys seen so far, so that a new token costs one row of work. Make an empty one for each new sequence.

    Self-attention adds the keys of every call; encoder–decoder attention keeps those of the first.
    """

    def __init__(self) -> None:
        self.keys: Keys | None = None
        self.next: Tensor | None = None
        """Position after the last query, (1,) or (B, 1)."""

    def append(self, new: Keys) -> Keys:
        """Append keys, and return all keys."""
        old = self.keys
        if old is None:
            self.keys = new
            return new
        padding = None
        if old.padding is not None or new.padding is not None:
            padding = torch.cat([_padding(old), _padding(new)], -1)
        positions = [old.positions, new.positions]
        if old.positions.dim() != new.positions.dim():
            positions = [row.expand(new.key.size(0), -1) for row in positions]
        self.keys = Keys(
            torch.cat([old.key, new.key], 2),
            torch.cat([old.value, new.value], 2),
            torch.cat(positions, -1),
            padding,
            {name: torch.cat([before, new.read[name]], 2) for name, before in old.read.items()},
        )
        return self.keys

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: integers (B',), repeats allowed.

        This selects the surviving hypotheses of a beam, or drops finished sentences.
        """

        def picked(field: Tensor) -> Tensor:
            return field if field.dim() == 1 else field.index_select(0, rows)

        if self.next is not None:
            self.next = picked(self.next)
        if self.keys is not None:
            key, value, positions, padding, read = self.keys
            padding = padding if padding is None else picked(padding)
            read = {name: picked(features) for name, features in read.items()}
            self.keys = Keys(picked(key), picked(value), picked(positions), padding, read)


def _padding(keys: Keys) -> Tensor:
    rows, _, length, _ = keys.key.shape
    return keys.key.new_zeros(rows, length, dtype=torch.bool) if keys.padding is None else keys.padding
