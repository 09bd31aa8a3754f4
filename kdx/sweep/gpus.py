"""Which GPUs there are, and which of them a run gets."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path


def visible_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """What `CUDA_VISIBLE_DEVICES` calls each GPU that runs may take; empty where there is none.

    Those it names, where it is set (none, where it is empty or -1), else all of the machine. CUDA is not asked, for a
    process that has asked it cannot be forked into workers.

    Args:
        root: of the file system in which the driver of NVIDIA shows them.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        # In some containers the driver shows its devices alone.
        shown = [*root.glob("proc/driver/nvidia/gpus/*")] or [*root.glob("dev/nvidia[0-9]*")]
        return tuple(map(str, range(len(shown))))
    # CUDA too reads no further than the first that is none.
    names = takewhile(lambda name: name and not name.startswith("-"), map(str.strip, named.split(",")))
    return tuple(dict.fromkeys(names))


def least_used_gpu(gpus: Sequence[str], in_use: Iterable[str | None]) -> str | None:
    """The GPU with the fewest runs, the first of several; None where there is none.

    Args:
        in_use: the GPU of each run at work.
    """
    runs = Counter(in_use)
    return min(gpus, key=runs.__getitem__, default=None)
