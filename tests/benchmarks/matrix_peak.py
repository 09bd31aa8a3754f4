"""Work as a share of what this machine does at most: the operations a second of a large product, on one thread."""

import time
from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

SIZE = 1024
"""Rows and columns of the product."""


def operations(run: Callable[[], object]) -> int:
    """Floating-point operations of the matrix products in it, those of attention included, causal or not."""
    # Where attention is one operation, torch counts none of its products on a CPU.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        run()
    return int(counter.get_total_flops())


def seconds_at_peak(count: int) -> float:
    """Processor time of so many operations, if they were one large product; measured anew each time it is asked."""
    left, right = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE)
    product = torch.empty(SIZE, SIZE)
    start = time.process_time()
    torch.mm(left, right, out=product)
    return (time.process_time() - start) * count / (2 * SIZE**3)
