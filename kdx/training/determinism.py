"""Randomness as a function: the generator is seeded anew wherever numbers are drawn."""

import hashlib
import json

import torch


def seed_of(*parts: str | int) -> int:
    """A 63-bit seed from any tuple, the same in every process and Python version (unlike `hash`)."""
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def reseed(*parts: str | int) -> None:
    """Put torch's generators, on every device, into the state that `parts` name."""
    seed = seed_of(*parts)
    # torch.manual_seed would also queue the seed for GPUs that nobody uses, with a stack trace: 2 ms at every step.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def fix_arithmetic(threads: int) -> None:
    """Same bits in every repetition on the CPU: the thread count decides how sums are split (it changes the bits)."""
    torch.set_num_threads(threads)
    # Some CUDA kernels have no deterministic form; there kdx promises no bits, so a warning is enough.
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling would write every new tensor twice, 3% of a step, and helps only code that reads unwritten memory.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
