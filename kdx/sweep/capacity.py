"""How much memory runs have here, and models that do not fit into it, whatever else they need."""

import os
from contextlib import suppress
from pathlib import Path

from kdx.errors import KdxError, by_place
from kdx.grid.messages import in_file
from kdx.grid.plan import Plan
from kdx.grid.spec import CellSpec
from kdx.sweep.gpus import memory_of
from kdx.vocabulary import Optimiser

_BYTES = 4
"""Of a weight; whatever the format of the arithmetic is, weights stay in 32 bits."""


def memory(gpus: tuple[str, ...], root: Path = Path("/")) -> int | None:
    """Bytes that a run can have at most: of the largest of these GPUs, or, without any, of this machine.

    Args:
        root: of the file system in which the system shows a limit of this process.

    Returns:
        None where the system does not say it.
    """
    if gpus:
        known = memory_of(gpus)
        return max(its.total for its in known.values()) if len(known) == len(gpus) else None
    with suppress(OSError, ValueError):
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        with suppress(OSError, ValueError):  # `max`: no limit
            limits.append(int((root / "sys/fs/cgroup/memory.max").read_text()))
        return min(limits)
    return None


def least_memory(spec: CellSpec) -> int:
    """Bytes that training needs at least: weights of the feed-forward layers, their gradients, and means of those."""
    model = spec.model
    weights = (model.encoder_layers + model.decoder_layers) * 2 * model.width * model.inner
    means = 2 if spec.training.optimiser is Optimiser.ADAMW else 1
    return _BYTES * weights * (2 + means)


def refuse_what_does_not_fit(plan: Plan, available: int | None) -> None:
    """Of a plan whose cells need more memory than there is.

    Args:
        available: bytes; None: not known, so that nothing is refused.

    Raises:
        Faults: each such cell, at its layers' width in the grid.
    """
    if available is None:
        return
    faults: dict[str, KdxError] = {}
    for cell in plan.cells:
        least = least_memory(cell.spec)
        if least > available:
            fault = KdxError(
                f"a model that does not fit: the feed-forward layers alone need {least / 1e9:,.1f} GB to be trained",
                place="model.inner",
                allowed=f"at most {available / 1e9:,.1f} GB, which there are here",
                hint="make model.inner, model.width or the number of layers smaller",
            )
            located = in_file(fault, cell)
            faults.setdefault(str(located), located)
    if faults:
        raise by_place(faults.values())
