"""Which GPUs there are, without asking CUDA: a process that has asked it cannot be forked into workers."""

import os
from itertools import takewhile
from pathlib import Path


def cards(root: Path = Path("/")) -> tuple[str, ...]:
    """What `CUDA_VISIBLE_DEVICES` calls each GPU that runs may take; empty where there is none.

    Those it names, where it is set (none, where it is empty or -1), else all of the machine.

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
