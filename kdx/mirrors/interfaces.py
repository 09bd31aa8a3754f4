"""What a mirror is asked for."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from kdx.store.records import RunState


class MirroredRun(NamedTuple):
    """A run as other programs know it."""

    id: int
    """Number of the run in the database."""
    key: str
    """The same for the same run of the same database, so that a mirror finds what it has of it."""
    sweep: str
    """The sweep that planned it last, and the project or experiment in the other program."""
    name: str
    """Its choices, seed and generation, such as `rbf · seed 0`."""
    settings: Mapping[str, Any]
    """Its choices as the grid words them, its seed, and every field of its cell by dotted key."""


class Point(NamedTuple):
    """One number of a run."""

    name: str
    """Such as `valid/bleu`."""
    step: int
    value: float


Known = Callable[[str], int]
"""Returns the highest step of a metric that the other program has; -1: none."""


class Mirror(AbstractContextManager["Mirror"], ABC):
    """Writes runs to another program, several side by side; each method raises what goes wrong there.

    Made of a path, to which an ending such as `.tensorboard` can be added, by a program without settings of its own.
    """

    place: str | None = None
    """The folder or address where the runs are; not every mirror knows it before the first run has begun."""

    def __exit__(self, *ended: object) -> None:
        """Release what belongs to no run."""

    @abstractmethod
    def begin(self, run: MirroredRun) -> Known:
        """Create a run, or find it again, and return what is there of it."""

    @abstractmethod
    def write(self, run: MirroredRun, points: Collection[Point]) -> None:
        """Add numbers to a run that was begun, in the order of their steps."""

    @abstractmethod
    def end(self, run: MirroredRun, state: RunState) -> None:
        """Close a run that has ended, or that is followed no more."""


def plain(name: str) -> str:
    """Return a name of at most 100 bytes without the signs that folders and projects do not take, such as / ."""
    known = re.sub(r"[^\w.,+=() -]+", "-", name).encode()[:100].decode(errors="ignore")
    return known.strip(" .-") or "-"


def by_step(points: Collection[Point]) -> dict[int, dict[str, float]]:
    """Return step → metric → value."""
    steps: dict[int, dict[str, float]] = {}
    for point in points:
        steps.setdefault(point.step, {})[point.name] = point.value
    return steps
