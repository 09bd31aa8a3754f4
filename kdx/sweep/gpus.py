"""Finds the visible GPUs, and chooses one for a run."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path


def visible_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """The names of the GPUs that runs may use, as in `CUDA_VISIBLE_DEVICES`; empty where there is none.

    If the variable is set, these are the GPUs that it names (none if it is empty or -1), else all of the machine. CUDA
    is not asked, since a process that has used it cannot be forked into workers.

    Args:
        root: root of the file system in which NVIDIA's driver shows the GPUs.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        # In some containers the driver shows only its devices.
        shown = [*root.glob("proc/driver/nvidia/gpus/*")] or [*root.glob("dev/nvidia[0-9]*")]
        return tuple(map(str, range(len(shown))))
    # CUDA too stops reading at the first invalid name.
    names = takewhile(lambda name: name and not name.startswith("-"), map(str.strip, named.split(",")))
    return tuple(dict.fromkeys(names))


def least_used_gpu(gpus: Sequence[str], in_use: Iterable[str | None]) -> str | None:
    """The GPU with the fewest runs, the first of equals; None where there is none.

    Args:
        in_use: the GPU of each active run.
    """
    runs = Counter(in_use)
    return min(gpus, key=runs.__getitem__, default=None)
