"""The names of checkpoint files: the kind of content, the optimiser step, and the SHA-256 of the content.

Training writes these files; `kdx.run_files` reads their names without torch, so this module is below both.
"""

import re
from enum import StrEnum
from typing import NamedTuple, Self


class CheckpointKind(StrEnum):
    """The kind of content of a checkpoint file."""

    STEP = "step"
    """Everything that a run needs to resume at its step, except the weights files that it lists."""
    WEIGHTS = "weights"
    """Weights at a validation, which a `STEP` may list."""
    BEST = "best"
    """The weights of the best validation, which a finished run keeps."""
    AVERAGE = "average"
    """The mean of the weights at the last validations, which a finished run keeps."""
    SHARED = "shared"
    """Everything that a run of more steps needs to continue from this one's, see `Training.shared_steps`."""


_KINDS = "|".join(CheckpointKind)
_NAME = re.compile(rf"(?P<kind>{_KINDS})-(?P<step>\d{{9}})\.(?P<sha256>[0-9a-f]{{64}})\.ckpt")
_SET_ASIDE = re.compile(r"[a-z]+-\d{9}\.[0-9a-f]{64}\.corrupt")


class CheckpointName(NamedTuple):
    """A file name such as `step-000000120.….ckpt`."""

    kind: CheckpointKind
    step: int
    """Optimiser steps done."""
    sha256: str
    """SHA-256 of the file's content."""

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return what a file name says; None if it is not the name of a checkpoint file."""
        match = _NAME.fullmatch(name)
        return match and cls(CheckpointKind(match["kind"]), int(match["step"]), match["sha256"])

    def __str__(self) -> str:
        return f"{self.kind}-{self.step:09d}.{self.sha256}.ckpt"


def set_aside_name(name: str) -> str:
    """Return the name under which a damaged checkpoint file of this name is kept, never to be read again."""
    return f"{name.removesuffix('.ckpt')}.corrupt"


def is_set_aside(name: str) -> bool:
    """Return whether a file has a name made by `set_aside_name`."""
    return _SET_ASIDE.fullmatch(name) is not None
