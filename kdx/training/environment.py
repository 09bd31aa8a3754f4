"""What a run ran on, kept beside its numbers, since another environment may give other bits; and the memory it took."""

import os
import platform
import resource
import subprocess
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy
import torch

from kdx.grid.sections import Training
from kdx.training.canary import canary
from kdx.version import VERSION
from kdx.vocabulary import Arithmetic, Optimiser, Precision

_CHECKOUT = Path(str(files("kdx"))).parent


@cache
def commit(checkout: Path = _CHECKOUT) -> str | None:
    """Return the commit of the checkout that kdx runs from, with `-dirty` if files differ; None if kdx is installed."""
    if not (checkout / ".git").exists():
        return None
    describe = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # Without locks, since somebody may be committing at the same time.
        quietly = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(describe, capture_output=True, text=True, timeout=10, env=quietly)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


@cache
def _canary(device: str, precision: Precision, arithmetic: Arithmetic, threads: int) -> str:
    """The canary of this process, once for each setting that may change it."""
    return canary(torch.device(device), precision)


_version = cache(version)  # reads a file each time


def environment(training: Training) -> dict[str, Any]:
    """Versions, processor, thread count and arithmetic of this process; call it once the run's thread count is set."""
    cuda = torch.cuda.is_available()
    # Muon iterates in bf16, whatever the model's own format is.
    precision = Precision.BF16 if training.optimiser is Optimiser.MUON else training.precision
    return {
        "kdx": VERSION,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "pytorch_lightning": _version("pytorch-lightning"),
        "numpy": numpy.__version__,
        **({"lion_pytorch": _version("lion-pytorch")} if training.optimiser is Optimiser.LION else {}),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        # Named where it is not what every run had before there was a choice.
        **({"arithmetic": Arithmetic.FAST.value} if training.arithmetic is Arithmetic.FAST else {}),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        **({"gpu": gpu} if cuda and (gpu := os.environ.get("CUDA_VISIBLE_DEVICES")) else {}),
        "canary": _canary("cuda" if cuda else "cpu", precision, training.arithmetic, torch.get_num_threads()),
        "host": platform.node(),
        "cores": os.cpu_count(),
    }


def uses_gpu() -> bool:
    """Return whether this process has used a GPU, and so holds memory of it."""
    return torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def peak_memory() -> int:
    """The most memory that this process has held, in bytes.

    Memory of its GPU, or, where it uses none, resident memory, pages that it shares with other processes included.
    """
    if uses_gpu():
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
