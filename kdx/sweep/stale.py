"""Which code a run was computed with has changed since."""

from collections.abc import Mapping

from kdx.cell_code import code_of
from kdx.grid.spec import CellSpec


def changed_modules(spec: CellSpec, modules: Mapping[str, str] | None) -> tuple[str, ...]:
    """The modules that are other than when a run of the cell was computed, gone or new ones too, by name.

    Args:
        modules: module → hash, as recorded with the run; None: an older kdx recorded none, so that nobody knows.
    """
    if modules is None:
        return ()
    now = code_of(spec).modules
    if now == modules:
        return ()
    return tuple(sorted(name for name in now.keys() | modules.keys() if now.get(name) != modules.get(name)))
