"""Sums of what a test measures, kept apart by slice of difficulty (`kdx.tasks.difficulty`) and by document.

N is the number of targets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kdx.data.documents import Documents
from kdx.tasks.difficulty import EDGES, slice_names


class GroupSums:
    """Sums of measurements of targets, by group."""

    def __init__(self, groups: int) -> None:
        """Start with sums of 0 in each group."""
        self._groups = groups
        self.sums: dict[str, Tensor] = {}
        """Quantity → its sum in each group, float64; `targets` is the number of targets."""

    def add(self, groups: Tensor, **measured: Tensor) -> None:
        """Add measurements (N,) of targets, each of which belongs to a group (N,)."""
        # On a GPU the order of summation in a weighted count is not fixed, so its last bits would vary.
        groups = groups.cpu()
        for name, values in (("targets", torch.ones_like(groups)), *measured.items()):
            counted = torch.bincount(groups, values.double().cpu(), minlength=self._groups)
            self.sums[name] = self.sums.get(name, 0) + counted


class Slices:
    """Means over the slices of a test, for each measure of difficulty."""

    def __init__(self) -> None:
        self._respects: dict[str, GroupSums] = {}

    def add(self, respect: str, values: Tensor, measured: Tensor) -> None:
        """Add measurements (N,) of targets whose difficulty in some respect is `values` (N,), integers."""
        sums = self._respects.setdefault(respect, GroupSums(len(EDGES)))
        sums.add(torch.bucketize(values.cpu(), torch.tensor(EDGES)), measured=measured)

    def means(self) -> dict[str, float]:
        """Return slice (such as `pairs=5-8`) → the mean over its targets, for each slice that has any."""
        return {
            name: amount / count
            for respect, group in self._respects.items()
            for name, amount, count in zip(
                slice_names(respect), group.sums["measured"].tolist(), group.sums["targets"].tolist(), strict=True
            )
            if count
        }


@dataclass(frozen=True)
class DocumentSums:
    """The sums of a test by document, in the order of the test; the error of a score follows from them."""

    unit: str
    """The kind of document, in the singular: `article` or `block`."""
    sums: Mapping[str, list[float]]
    """Quantity → its sum in each document: `targets`, their number; `nats`, their -ln p; `right`, the number predicted
    correctly; for translations, the sums that BLEU is computed from (`kdx.training.bleu.Bleu.sums`)."""


class ByDocument:
    """Sums a test by document."""

    def __init__(self, documents: Documents | None) -> None:
        """Take the documents of the test's items; None to sum nothing."""
        self._unit = documents.unit if documents else ""
        self._of_items = torch.from_numpy(documents.of_items) if documents else torch.zeros(0, dtype=torch.long)
        self._count = int(self._of_items[-1]) + 1 if len(self._of_items) else 0
        self._sums = GroupSums(self._count)

    def add(self, items: Tensor, **measured: Tensor) -> None:
        """Add measurements (N,) of targets, each of which belongs to an item (N,) of the test."""
        if self._count:
            self._sums.add(self._of_items[items.cpu()], **measured)

    def add_each(self, measure: Callable[[list[int]], Mapping[str, float]]) -> None:
        """Add what `measure` returns for each whole document, given its items' numbers in the test."""
        items = [torch.nonzero(self._of_items == document)[:, 0].tolist() for document in range(self._count)]
        measured = [measure(numbers) for numbers in items]
        for name in measured[0] if measured else ():
            self._sums.sums[name] = torch.tensor([sums[name] for sums in measured], dtype=torch.float64)

    def sums(self) -> DocumentSums | None:
        """Return the sums; None if they give a score no error: fewer than two documents, or a sum is not finite."""
        sums = self._sums.sums
        if self._count < 2 or not all(bool(torch.isfinite(amounts).all()) for amounts in sums.values()):
            return None
        return DocumentSums(self._unit, {name: amounts.tolist() for name, amounts in sums.items()})
