"""The base class of metrics of outputs."""

from collections.abc import Sequence
from typing import ClassVar


class OutputMetric:
    """A score of texts against their references; its facts are literals, see `kdx.words`."""

    name: ClassVar[str] = ""
    """Its name in a grid; empty for a base class."""
    source: ClassVar[str] = ""
    """The paper; empty if there is none."""
    better: ClassVar[str] = "max"
    """Its good end, `max` or `min`."""
    scale: ClassVar[str] = "percent"
    """What its number is: `percent` from 0 to 100, or another `kdx.tasks.definition.Scale`."""

    def score(self, lines: Sequence[str], references: Sequence[str]) -> float:
        """Return the score of lines against references, one for each line, as the corpus has both."""
        raise NotImplementedError

    def definition(self) -> str:
        """Return what the last score means, with all its settings, or the signature of the library that computed it."""
        return (type(self).__doc__ or "").partition("\n")[0].removesuffix(".")
