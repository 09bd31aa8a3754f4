"""`kdx schema`: writes the JSON Schema of a grid, for editors."""

import json
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, say
from kdx.errors import KdxError, by_place
from kdx.grid.components import add_installed, find_components
from kdx.grid.extends import extended
from kdx.grid.model import GRID
from kdx.grid.schema import grid_schema
from kdx.grid.shipped import find


def schema(
    grids: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.grids, metavar="GRID", help="Grids whose custom components are allowed, too."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of grids, for editors.

    It has the components of installed packages, and the custom components of the named grids.

    Example: kdx schema > grid.schema.json
    """
    for fault in add_installed(GRID):
        say(f"note: {fault}")
    faults: list[KdxError] = []
    for grid in grids or ():
        faults.extend(find_components(extended(find(grid), faults), GRID))
    if faults:
        raise by_place(faults)
    # For programs: with the blanks of an indented text it is twice as long.
    out(json.dumps(grid_schema(), separators=(",", ":"), ensure_ascii=False))
