"""The mirrors that a user may choose."""

from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kdx.errors import KdxError

if TYPE_CHECKING:
    from kdx.mirrors.interfaces import Mirror


class MirrorName(StrEnum):
    """The programs that runs can be mirrored to."""

    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    TRACKIO = "trackio"
    WANDB = "wandb"


def require(name: MirrorName) -> None:
    """Raise KdxError if the program is not installed."""
    if find_spec(name) is None:
        raise KdxError(f"{name} is not installed", hint=f"pip install 'kdx[{name}]'")


def open_mirror(name: MirrorName, beside: Path) -> "Mirror":
    """Return the mirror of this name.

    Args:
        beside: where a mirror without settings of its own writes: a path that `.tensorboard` can be added to.

    Raises:
        KdxError: its program is not installed.
    """
    require(name)
    module = import_module(f"kdx.mirrors.{name}_mirror")
    mirror: Mirror = module.open_mirror(beside)
    return mirror
