"""Finds grids: by a path, or by the name of an experiment that came with kdx."""

import contextlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from kdx.errors import Faults, KdxError, did_you_mean, shortened
from kdx.files import not_a_file


def folder() -> Path:
    """The shipped experiments: inside the installed package, or beside it in a checkout."""
    package = Path(str(files("kdx")))
    inside = package / "experiments"
    return inside if inside.is_dir() else package.parent / "experiments"


@cache
def names() -> tuple[str, ...]:
    """Names of the shipped grids, such as `quickstart` or `tsai2019/table1`."""
    return tuple(sorted(str(path.relative_to(folder()).with_suffix("")) for path in folder().rglob("*.yaml")))


def _grids_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.y*ml"))
    except (OSError, ValueError):
        return []


def find(grid: str | Path, beside: Path = Path()) -> Path:
    """The file of a grid.

    Args:
        grid: a path, or the name of a shipped grid.
        beside: where a relative path begins.

    Raises:
        Faults: there is no such file and no shipped grid of that name, or it is a folder, a named pipe, a device.
    """
    path = beside / grid
    what = None
    # No file can have a name that is too long or has a NUL, or lie where nobody may look.
    with contextlib.suppress(OSError, ValueError):
        if (what := not_a_file(path.stat().st_mode)) is None:
            return path
    known = names()
    if str(grid) in known:
        return folder() / f"{grid}.yaml"
    problem = f"`{shortened(grid)}` is {what}, not a grid" if what else f"no grid `{shortened(grid)}`"
    local = [str(Path(grid).parent / file.name) for file in _grids_in(path.parent)]
    meant = did_you_mean(str(grid), local) or did_you_mean(f"{grid}.yaml", local)
    alike = " or ".join(f"`{name}`" for name in known if name.rpartition("/")[2] == Path(grid).stem)
    meant = meant or (f"did you mean {alike}?" if alike else did_you_mean(str(grid), known))
    # Whoever names a file wants no list of others.
    is_file = Path(grid).suffix in (".yaml", ".yml")
    shipped = "the name of a shipped one" if meant or is_file else f"one of {', '.join(known)}"
    hint = meant or "`kdx init` copies the shipped grids here"
    raise Faults([KdxError(problem, allowed=f"a YAML file, or {shipped}", hint=hint)])
