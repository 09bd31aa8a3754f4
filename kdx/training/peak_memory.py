"""The most memory that this process has held."""

import resource

import torch


def peak_memory() -> int:
    """Bytes: of its GPU, or, where it uses none, resident, pages that it shares with other processes included."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
