"""Where grids are found: a path, or the name of an experiment that came with kdx."""

from pathlib import Path

import kdx
from kdx.errors import Faults, KdxError, did_you_mean


def folder() -> Path:
    """The shipped experiments: inside the installed package, or beside it in a checkout."""
    package = Path(kdx.__file__).parent
    inside = package / "experiments"
    return inside if inside.is_dir() else package.parent / "experiments"


def names() -> tuple[str, ...]:
    """Names of the shipped grids, such as `quickstart` or `tsai2019/table1`."""
    return tuple(sorted(str(path.relative_to(folder()).with_suffix("")) for path in folder().rglob("*.yaml")))


def find(grid: str | Path) -> Path:
    """The file of a grid.

    Raises:
        Faults: there is no such file and no shipped grid of that name.
    """
    path = Path(grid)
    if path.is_file():
        return path
    shipped = folder() / f"{grid}.yaml"
    if str(grid) in names():
        return shipped
    known = names()
    hint = did_you_mean(str(grid), known) or "`kdx init` copies the shipped grids here"
    raise Faults([KdxError(f"no grid `{grid}`", allowed=f"a YAML file, or one of {', '.join(known)}", hint=hint)])
