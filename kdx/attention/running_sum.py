"""Running sums that have the same bits each time, on a GPU too.

On a GPU, torch's `cumsum` adds blocks in the order in which they end (https://github.com/pytorch/pytorch/issues/75240),
and torch 2.13 documents that it raises under deterministic algorithms. Its sources have had a repeatable form since
https://github.com/pytorch/pytorch/pull/140887; once that is confirmed on a GPU, `cumsum` is enough.
"""

import torch
from torch import Tensor


def running_sum(terms: Tensor, dim: int) -> Tensor:
    """Return Σ_{j ≤ i} of the terms along a dimension, in their shape.

    On a CPU, and without deterministic algorithms, it is torch's `cumsum`, to the bit.
    """
    return by_doubling(terms, dim) if _torch_refuses(terms) else terms.cumsum(dim)


def _torch_refuses(terms: Tensor) -> bool:
    return terms.device.type != "cpu" and torch.are_deterministic_algorithms_enabled()


def by_doubling(terms: Tensor, dim: int) -> Tensor:
    """Return `running_sum` by ⌈log2 T⌉ sums of whole tensors, each over twice as many terms as the one before (Hillis &
    Steele 1986). A term passes through at most ⌈log2 T⌉ additions, instead of T.
    """
    length, reach = terms.size(dim), 1
    while reach < length:
        later = terms.narrow(dim, reach, length - reach) + terms.narrow(dim, 0, length - reach)
        terms = torch.cat([terms.narrow(dim, 0, reach), later], dim)
        reach *= 2
    return terms
