"""How the fields of a cell fit together: what is refused, and what settles the fields that the grid leaves open.

Each rule reads the cell as the rules before it left it, so their order counts.
"""

from kdx.grid.fields import CellFields
from kdx.grid.rules.options import resolve_components, resolve_options
from kdx.grid.rules.position import resolve_position, resolve_space
from kdx.grid.rules.task import resolve_select, resolve_task


def resolve(cell: CellFields) -> None:
    """Settle every field of a new cell.

    Raises:
        PydanticCustomError: fields do not fit together; the error names the field.
    """
    resolve_space(cell)
    resolve_position(cell)
    resolve_options(cell)
    resolve_task(cell)
    resolve_select(cell)
    resolve_components(cell)
