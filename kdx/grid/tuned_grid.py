"""Writes the winners of a search as a grid that tunes nothing: what the grid says, with an override for each cell."""

import os
from pathlib import Path
from typing import Any

import yaml

from kdx.errors import KdxError
from kdx.grid.cell_selector import lacks
from kdx.grid.extends import extended, set_values, without_removed
from kdx.grid.field_types import as_list
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.tuning import set_factor


def tuned_grid(plan: Plan, file: Path) -> bytes:
    """Return the text of such a grid, to be written to `file`; it extends the one that was searched.

    Args:
        plan: with its winners; what the command line set, seeds among it, is in the grid, too.

    Raises:
        KdxError: the plan comes from no file, or two of its cells cannot be told apart by their axes.
    """
    if not plan.file:
        raise KdxError("the grid is of no file, and none can extend it")
    faults: list[KdxError] = []
    of_grid, of_cells = set_values(plan.given, faults)
    root = without_removed(extended(Path(plan.file), faults, {}).overlaid(of_grid))
    # A list of the extending grid replaces that of the other.
    overrides: list[dict[str, Any]] = as_list(root.value["overrides"].plain()) if "overrides" in root.value else []
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    whole: dict[str, Any] = {}
    for cell in plan.trained:
        resolved = ResolvedSpec.of(cell.spec)
        values = of_cells.plain()
        for name in cell.search.space if cell.search else ():
            set_factor(values, name, resolved.value(name))
        if not values:
            continue
        # An option that a cell lacks is no choice of its axis.
        labels = {axis: label for axis, label in cell.labels.items() if not lacks(cell.spec, axis)}
        # A list is `a+b` as a choice, and `a/b` as a word of a condition.
        words = {axis: word for axis, word in resolved.words.items() if word.replace("/", "+") == labels.get(axis)}
        when = tuple((labels | words).items())
        if seen.setdefault(when, cell.id) != cell.id:
            raise KdxError(f"two winners stand for the same choice: {dict(when)}", hint="write them by hand")
        if when:
            overrides.append({"when": dict(when), "set": values})
        else:
            whole = values
    text: dict[str, Any] = {
        "extends": os.path.relpath(plan.file, file.resolve().parent),
        "name": f"{plan.name}-tuned",
        **{key: value for key, value in of_grid.plain().items() if key not in ("name", "tune", "overrides")},
        "tune": None,
        **({} if plan.seed_rule else {"seeds": list(plan.seeds)}),
        **({"overrides": overrides} if overrides else {}),
        **whole,
    }
    return yaml.safe_dump(text, sort_keys=False, allow_unicode=True).encode()
