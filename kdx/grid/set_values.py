"""What `--set training.steps=100` sets: any key of a grid, typed as in the file, over all that the file says."""

from collections.abc import Sequence

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors
from kdx.grid.model import GRID
from kdx.grid.settings import at_path, settings
from kdx.grid.source import Node, read_value
from kdx.grid.synonyms import did_you_mean

_OF_A_GRID = tuple(key for key in GRID if key != "extends")


def set_values(given: Sequence[str], faults: list[KdxError]) -> tuple[Node, Node | None]:
    """What is set in the grid itself, such as its seeds, and what in every cell; None where that is nothing.

    Args:
        given: each `key=value`; the last of a key wins.
    """
    grid = Node(Place("--set", 0, 0), {}, {})
    cell = Node(grid.place, {}, {})
    for text in given:
        key, equals, value = text.partition("=")
        place = Place(f"--set {shortened(text)}", 0, 0)
        if not equals or not key:
            faults.append(KdxError("this sets nothing", place=place, allowed="key=value, such as training.steps=100"))
            continue
        node = read_value(value, place, faults)
        if node is None:
            continue
        first, *rest = key.split(".")
        known = factors() if first in settings() else (*factors(), *_OF_A_GRID)
        if first in _OF_A_GRID:
            # A factor of an axis is one key, dots and all.
            path = (first, ".".join(rest)) if first == "axes" and rest else (first, *rest)
            grid = grid.overlaid(at_path(path, node))
        elif key in factors() or key in settings():
            cell = cell.overlaid(at_path((first, *rest), node))
        else:
            problem, hint = f"unknown key `{shortened(key)}`", did_you_mean(key, known)
            faults.append(KdxError(problem, place=place, allowed=known, hint=hint))
    return grid, cell if cell.value else None
