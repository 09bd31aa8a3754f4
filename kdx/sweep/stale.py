"""Finds the code that has changed since a run, or one of its evaluations, was computed."""

from collections.abc import Iterable, Mapping

from kdx.cell_code import code_of, evaluation_code_of
from kdx.grid.spec import CellSpec
from kdx.store.records import EvaluationRecord


def changed_modules(spec: CellSpec, modules: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the modules that changed since a run of the cell was computed, including new and removed ones.

    Args:
        modules: module → hash, as recorded with the run; None if it was not started.
    """
    return () if modules is None else _changed(code_of(spec).modules, modules)


def changed_evaluations(
    spec: CellSpec, planned: Iterable[str], recorded: Mapping[str, EvaluationRecord]
) -> dict[str, tuple[str, ...]]:
    """Return id → the modules that changed since the evaluation was made, for evaluations with any.

    Args:
        planned: ids of the evaluations that a plan has of a run of the cell.
        recorded: id → evaluation of the run.
    """
    before = {key: each.provenance.modules for key, each in recorded.items() if each.provenance}
    now = evaluation_code_of(spec).modules if before else {}
    changed = {key: _changed(now, modules) for key in planned if (modules := before.get(key)) is not None}
    return {key: modules for key, modules in changed.items() if modules}


def _changed(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    if now == before:
        return ()
    return tuple(sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name)))
