"""Checks recorded cells and grids where they are read.

The grid's models are imported where they are needed, since they take 0.1 s to import and a list of runs needs none.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kdx.errors import KdxError
from kdx.store.refusals import edited

if TYPE_CHECKING:
    from kdx.grid.resolved_spec import ResolvedSpec


def check_grid(sweep_name: str, grid: Mapping[str, Any]) -> None:
    """Raise KdxError if this kdx cannot read the tables, evaluations or rule for seeds of a sweep."""
    # late: the grid's models, as above
    from pydantic import ValidationError

    # late: the same
    from kdx.grid.plan import Plan

    try:
        Plan.recorded(sweep_name, (), grid)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise KdxError(
            f"sweep {sweep_name}: this kdx cannot read its {error.title}: {where}: {fault['msg']}",
            hint="a newer kdx planned it, or somebody edited it",
        ) from error


def metrics_of_evaluations(grid: Mapping[str, Any]) -> dict[str, str]:
    """Return word → hash of the source, of the custom metrics of a sweep's evaluations.

    It reads no models of the grid, and leaves out what is of another shape, as after an edit of the database.
    """
    evaluations = grid.get("evaluations")
    requests = evaluations if isinstance(evaluations, list) else []
    entries = [each.get("components") for each in requests if isinstance(each, dict)]
    named = [item for entry in entries if isinstance(entry, dict) for item in entry.items()]
    return {word: sha256 for word, sha256 in named if isinstance(sha256, str)}


def whole_cell(cell_id: str, text: str) -> "ResolvedSpec":
    """Read a cell from its JSON; raise DatabaseError if the id is not its hash.

    Fetch all rows before the first is read: SQLite keeps its lock on an answer that an error left unfinished for as
    long as somebody holds the error.
    """
    # late: the grid's models, as above
    from kdx.grid.identity import id_of
    from kdx.grid.resolved_spec import ResolvedSpec

    with suppress(ValueError):
        spec = ResolvedSpec.read(text)
        if id_of(spec.plain) == cell_id:
            return spec
    raise edited(f"cell {cell_id}", "it is not what its id is the hash of")
