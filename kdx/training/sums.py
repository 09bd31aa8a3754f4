"""What a test measures of its targets apart: by slice of difficulty (`kdx.tasks.difficulty`), and by document.

N is the number of targets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kdx.data.documents import Documents
from kdx.tasks.difficulty import EDGES, slice_names


class GroupSums:
    """The sums of what is measured of targets, by group."""

    def __init__(self, groups: int) -> None:
        """Takes the number of groups."""
        self._groups = groups
        self.sums: dict[str, Tensor] = {}
        """Quantity → its sum in each group, float64; `targets` is the number of targets."""

    def add(self, groups: Tensor, **measured: Tensor) -> None:
        """Add what was measured (N,) of targets, each of which belongs to a group (N,)."""
        # On a GPU the order of a weighted count is not fixed, and so its last bits are not.
        groups = groups.cpu()
        for name, values in (("targets", torch.ones_like(groups)), *measured.items()):
            counted = torch.bincount(groups, values.double().cpu(), minlength=self._groups)
            self.sums[name] = self.sums.get(name, 0) + counted


class Slices:
    """Means over the slices of a test, in each respect."""

    def __init__(self) -> None:
        self._respects: dict[str, GroupSums] = {}

    def add(self, respect: str, values: Tensor, measured: Tensor) -> None:
        """Add what was measured (N,) of targets whose difficulty in some respect is `values` (N,), integers."""
        sums = self._respects.setdefault(respect, GroupSums(len(EDGES)))
        sums.add(torch.bucketize(values.cpu(), torch.tensor(EDGES)), measured=measured)

    def means(self) -> dict[str, float]:
        """Return slice, such as `pairs=5-8`, → the mean over its targets, for each slice that has any."""
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
    """The sums of a test by document, in the order of the test, from which the error of a score follows."""

    unit: str
    """What a document is, in the singular: `article` or `block`."""
    sums: Mapping[str, list[float]]
    """Quantity → its sum in each document: `targets`, their number; `nats`, their -ln p; `right`, how many were
    predicted; of translations those that BLEU is made of (`kdx.training.bleu.Bleu.sums`)."""


class ByDocument:
    """Adds a test up by document."""

    def __init__(self, documents: Documents | None) -> None:
        """Takes the documents of the test's items; None if nothing is to be added up."""
        self._unit = documents.unit if documents else ""
        self._of_items = torch.from_numpy(documents.of_items) if documents else torch.zeros(0, dtype=torch.long)
        self._count = int(self._of_items[-1]) + 1 if len(self._of_items) else 0
        self._sums = GroupSums(self._count)

    def add(self, items: Tensor, **measured: Tensor) -> None:
        """Add what was measured (N,) of targets, each of which belongs to an item (N,) of the test."""
        if self._count:
            self._sums.add(self._of_items[items.cpu()], **measured)

    def add_each(self, measure: Callable[[list[int]], Mapping[str, float]]) -> None:
        """Add what is measured of a whole document, by its items' numbers in the test."""
        items = [torch.nonzero(self._of_items == document)[:, 0].tolist() for document in range(self._count)]
        measured = [measure(numbers) for numbers in items]
        for name in measured[0] if measured else ():
            self._sums.sums[name] = torch.tensor([sums[name] for sums in measured], dtype=torch.float64)

    def sums(self) -> DocumentSums | None:
        """Return the sums; None if a score has no error over documents: there is at most one, or a sum is no number."""
        sums = self._sums.sums
        if self._count < 2 or not all(bool(torch.isfinite(amounts).all()) for amounts in sums.values()):
            return None
        return DocumentSums(self._unit, {name: amounts.tolist() for name, amounts in sums.items()})
