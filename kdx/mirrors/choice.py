"""The mirrors that a user may choose."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kdx.errors import KdxError, installed_by
from kdx.store.refusals import without_password

if TYPE_CHECKING:
    from kdx.mirrors.interfaces import Mirror


class MirrorName(StrEnum):
    """The programs that runs can be mirrored to."""

    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    TRACKIO = "trackio"
    WANDB = "wandb"


_CLASSES = {
    MirrorName.TENSORBOARD: "TensorBoard",
    MirrorName.MLFLOW: "MLflow",
    MirrorName.TRACKIO: "Trackio",
    MirrorName.WANDB: "WandB",
}
"""The class of each, in a module of its own."""


def require(name: MirrorName) -> None:
    """Raise KdxError if the program is not installed."""
    if find_spec(name) is None:
        raise KdxError(f"{name} is not installed", hint=installed_by(name))


@contextmanager
def opened_mirror(name: MirrorName, beside: Path, *, hint: str | None = None) -> Iterator["Mirror"]:
    """Open the mirror of this name.

    Args:
        beside: where a mirror without settings of its own writes: a path that `.tensorboard` can be added to.
        hint: what to do after a failure of the program.

    Raises:
        KdxError: its program is not installed, or fails, now or later.
    """
    require(name)
    try:
        with getattr(import_module(f"kdx.mirrors.{name}_mirror"), _CLASSES[name])(beside) as mirror:
            yield mirror
    except KdxError:
        raise
    except Exception as fault:
        problem = without_password(f"{type(fault).__name__}: {fault}".splitlines()[0])
        raise KdxError(problem, place=name, hint=hint) from fault
