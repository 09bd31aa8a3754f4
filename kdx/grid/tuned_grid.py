"""Writes the winners of a search as a grid that tunes nothing: what the grid says, with an override for each cell."""

import os
from pathlib import Path
from typing import Any

import yaml

from kdx.errors import FaultList, KdxError
from kdx.grid.extends import extended
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.settings import list_of


def tuned_grid(plan: Plan, file: Path) -> bytes:
    """The text of such a grid, to be written to `file`; it extends the one that was searched.

    Args:
        plan: with its winners.

    Raises:
        KdxError: the plan comes from no file, or two of its cells cannot be told apart by their axes.
    """
    if not plan.file:
        raise KdxError("the grid is of no file, and none can extend it")
    faults = FaultList()
    root = extended(Path(plan.file), faults, {})
    # A list of the extending grid replaces that of the other.
    overrides: list[dict[str, Any]] = [
        one.plain() for one in list_of(root.value.get("overrides"), faults, "overrides", most=1000)
    ]
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    whole: dict[str, Any] = {}
    for cell in plan.trained:
        if cell.search is None:
            continue
        found = ResolvedSpec.of(cell.spec)
        values = {name: found.value(name) for name in cell.search.space}
        when = tuple(cell.labels.items())
        if seen.setdefault(when, cell.id) != cell.id:
            raise KdxError(f"two winners stand for the same choice: {dict(when)}", hint="write them by hand")
        if when:
            overrides.append({"when": dict(when), "set": values})
        else:
            whole = values
    text: dict[str, Any] = {
        "extends": os.path.relpath(plan.file, file.resolve().parent),
        "name": f"{plan.name}-tuned",
        "tune": None,
        **({"overrides": overrides} if overrides else {}),
    }
    for name, value in whole.items():
        inner = text
        *path, last = name.split(".")
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = value
    return yaml.safe_dump(text, sort_keys=False, allow_unicode=True).encode()
