"""Randomness as a function, and repeatable arithmetic: what a run's bits depend on apart from its cell and seed."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kdx.grid.sections import Training
from kdx.vocabulary import Arithmetic


def seed_of(*parts: str | int) -> int:
    """Return a 63-bit seed made from any tuple, the same in every process and Python version (unlike `hash`)."""
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def reseed(*parts: str | int) -> None:
    """Seed torch's generators on every device with `parts`."""
    seed = seed_of(*parts)
    # torch.manual_seed would also queue the seed for unused GPUs, with a stack trace: 2 ms at every step.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextmanager
def deterministic() -> Iterator[None]:
    """Allow deterministic algorithms only, until the end of the block."""
    before, warning = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warning)


def fix_arithmetic(training: Training) -> None:
    """Set everything that the bits of results in this process depend on; call it before torch first uses a GPU.

    Under exact arithmetic an operation without a deterministic form raises a RuntimeError, on any device. Products of
    32-bit numbers are computed in 32 bits on a GPU too, never in TF32.
    """
    # On a CPU the number of threads decides how sums are split.
    torch.set_num_threads(training.threads)
    exact = training.arithmetic is Arithmetic.EXACT
    torch.use_deterministic_algorithms(exact)
    # Filling would write every new tensor twice, 3% of a step, and helps only code that reads unwritten memory.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # Without it torch refuses every deterministic product on a GPU, since cuBLAS may sum in another order each time.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # The benchmark would choose an algorithm by measured time, so another run might get another algorithm.
    torch.backends.cudnn.benchmark = False
    # Partial sums of a bf16 product would be added in 16 bits.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = not exact
