"""Running sums that have the same bits in each repetition, on a GPU too.

There blocks of torch's `cumsum` add up in the order in which they come (https://github.com/pytorch/pytorch/issues/75240),
and torch 2.13 documents that it raises where deterministic algorithms are asked for. Its sources have had a form that
repeats since https://github.com/pytorch/pytorch/pull/140887; once a GPU has shown that it does, `cumsum` is enough.
"""

import torch
from torch import Tensor


def running_sum(terms: Tensor, dim: int) -> Tensor:
    """Σ_{j ≤ i} of the terms along a dimension, of their shape.

    On a CPU, and where deterministic algorithms are not asked for, it is torch's `cumsum`, to the bit.
    """
    return by_doubling(terms, dim) if _torch_refuses(terms) else terms.cumsum(dim)


def _torch_refuses(terms: Tensor) -> bool:
    return terms.device.type != "cpu" and torch.are_deterministic_algorithms_enabled()


def by_doubling(terms: Tensor, dim: int) -> Tensor:
    """`running_sum` in ⌈log2 T⌉ sums of whole tensors, each of twice as many terms as the one before (Hillis & Steele
    1986). No term passes through more than that many additions, where one after another passes through T.
    """
    length, reach = terms.size(dim), 1
    while reach < length:
        later = terms.narrow(dim, reach, length - reach) + terms.narrow(dim, 0, length - reach)
        terms = torch.cat([terms.narrow(dim, 0, reach), later], dim)
        reach *= 2
    return terms
