"""What a test measures document by document: sums, from which the error of a score over documents follows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kdx.data.documents import Documents


@dataclass(frozen=True)
class DocumentSums:
    """The sums of a test by document, in the order of the test."""

    unit: str
    """What a document is, in the singular: `article` or `block`."""
    sums: Mapping[str, list[float]]
    """Quantity → its sum in each document: `targets`, how many there are; `nats`, their -ln p; `right`, how many were
    predicted; of translations those that BLEU is made of (`kdx.training.bleu.Bleu.sums`)."""


class ByDocument:
    """Adds a test up by document. N is the number of targets."""

    def __init__(self, documents: Documents) -> None:
        """Takes the documents of the test's items."""
        self._unit = documents.unit
        self._of_items = torch.from_numpy(documents.of_items)
        self._count = int(self._of_items[-1]) + 1 if len(self._of_items) else 0
        self._sums: dict[str, Tensor] = {}

    def add(self, items: Tensor, **measured: Tensor) -> None:
        """Adds what was measured (N,) of targets, each of which belongs to an item (N,) of the test."""
        # On a GPU the order of a weighted count is not fixed, and so its last bits are not.
        documents = self._of_items[items.cpu()]
        for name, values in (("targets", torch.ones_like(documents)), *measured.items()):
            counted = torch.bincount(documents, values.double().cpu(), minlength=self._count)
            self._sums[name] = self._sums.get(name, 0) + counted

    def add_each(self, measure: Callable[[list[int]], Mapping[str, float]]) -> None:
        """Adds what is measured of a whole document, by its items' numbers in the test."""
        items = [torch.nonzero(self._of_items == document)[:, 0].tolist() for document in range(self._count)]
        measured = [measure(numbers) for numbers in items]
        for name in measured[0] if measured else ():
            self._sums[name] = torch.tensor([sums[name] for sums in measured], dtype=torch.float64)

    def sums(self) -> DocumentSums | None:
        """The sums; None where a score has no error over documents: there is one alone, or a sum is no number."""
        if self._count < 2 or not all(bool(torch.isfinite(sums).all()) for sums in self._sums.values()):
            return None
        return DocumentSums(self._unit, {name: sums.tolist() for name, sums in self._sums.items()})
