"""Which code a run, or an evaluation of one, was computed with has changed since."""

from collections.abc import Iterable, Mapping

from kdx.cell_code import code_of, evaluation_code_of
from kdx.grid.spec import CellSpec


def changed_modules(spec: CellSpec, modules: Mapping[str, str] | None) -> tuple[str, ...]:
    """The modules that are other than when a run of the cell was computed, gone or new ones too, by name.

    Args:
        modules: module → hash, as recorded with the run; None if it has not begun.
    """
    return () if modules is None else _changed(code_of(spec).modules, modules)


def changed_evaluations(
    spec: CellSpec, asked: Iterable[str], made: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Id of an evaluation → the modules that are other than when it was made, for those of which some are.

    Args:
        asked: ids of the evaluations that a plan asks for of a run of the cell.
        made: id → module → hash, as recorded with each evaluation of the run that succeeded.
    """
    now = evaluation_code_of(spec).modules if made else {}
    found = {each: _changed(now, made[each]) for each in asked if each in made}
    return {each: modules for each, modules in found.items() if modules}


def _changed(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    if now == before:
        return ()
    return tuple(sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name)))
