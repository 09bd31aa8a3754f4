"""What a test measures apart for its easy and its hard targets: means over the slices of `kdx.tasks.difficulty`."""

import torch
from torch import Tensor

from kdx.tasks.difficulty import EDGES, slice_names


class Slices:
    """The sums of a test, by respect and slice. N is the number of targets."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        """Respect → (2, slices), float64: the sum of what was measured, and the number of targets."""

    def add(self, respect: str, values: Tensor, measured: Tensor) -> None:
        """Adds what was measured (N,) of targets whose difficulty in some respect is `values` (N,), integers."""
        # On a GPU the order of a weighted count is not fixed, and so its last bits are not.
        where = torch.bucketize(values.cpu(), torch.tensor(EDGES))
        amounts = torch.bincount(where, measured.double().cpu(), minlength=len(EDGES))
        counted = torch.bincount(where, minlength=len(EDGES))
        self._sums[respect] = self._sums.get(respect, 0) + torch.stack([amounts, counted])

    def means(self) -> dict[str, float]:
        """Slice, such as `pairs=5-8`, → the mean over its targets, of each slice that has any."""
        return {
            name: amount / there
            for respect, sums in self._sums.items()
            for name, amount, there in zip(slice_names(respect), *sums.tolist(), strict=True)
            if there
        }
