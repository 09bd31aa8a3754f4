"""The memory that this process has in use."""

import os
from pathlib import Path

import torch


def memory() -> str:
    """The most that the GPU had in use at once, or else what is resident of this process now, in words."""
    # It initialises no device: another process may have the GPU, and a run on the processor does not need it.
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB of GPU memory at most"
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 1e9:.2f} GB resident"
