"""What a run keeps of its files, and under which rule each of the others may go: a pure function of both.

A run that is not finished keeps everything. A finished one (completed, diverged or pruned) keeps the weights that were
tested and its log; what it needed to go on from may go. The rest goes only when it is asked for by name.
"""

from collections.abc import Iterable, Set
from enum import StrEnum

from kdx.run_files.files import Kind, RunFile, folder_of
from kdx.store.records import FINAL, Inventory, RunRecord, RunState


class RetentionRule(StrEnum):
    """Why a file may go. A file falls under one rule at most."""

    CHECKPOINTS = "checkpoints of finished runs"
    LEFTOVERS = "half-written and damaged files of finished runs"
    NOT_SELECTED = "weights of finished runs that no table selects"
    SELECTED = "weights of the runs that a table selects"
    UNPLANNED = "all files of runs that no sweep plans"
    UNKNOWN = "files of runs that are not in this database"


class Retention(StrEnum):
    """Whose weights are kept."""

    ALL = "all"
    SELECTED = "selected"
    NONE = "none"


def rules_of(retention: Retention, *, unplanned: bool, unknown: bool) -> frozenset[RetentionRule]:
    """The rules that are in force; those of the first line always are."""
    rules = {RetentionRule.CHECKPOINTS, RetentionRule.LEFTOVERS}
    rules |= {RetentionRule.NOT_SELECTED} if retention is not Retention.ALL else set()
    rules |= {RetentionRule.SELECTED} if retention is Retention.NONE else set()
    rules |= {RetentionRule.UNPLANNED} if unplanned else set()
    return frozenset(rules | ({RetentionRule.UNKNOWN} if unknown else set()))


def removable(
    inventory: Inventory, selected: Set[int], listed: Iterable[RunFile]
) -> dict[RetentionRule, list[RunFile]]:
    """RetentionRule → the files that it lets go; what falls under no rule stays under all of them.

    Args:
        selected: ids of the runs whose score stands in some table.
    """
    runs = {folder_of(run): run for run in inventory.runs}
    found: dict[RetentionRule, list[RunFile]] = {rule: [] for rule in RetentionRule}
    for file in listed:
        run = runs.get(file.folder)
        planned = run is not None and (run.cell_id, run.seed) in inventory.planned
        rule = _rule(file.kind, run, planned, run is not None and run.id in selected)
        if rule:
            found[rule].append(file)
    return found


def _rule(kind: Kind, run: RunRecord | None, planned: bool, selected: bool) -> RetentionRule | None:
    if kind is Kind.OTHER:
        return None
    if run is None:
        return RetentionRule.UNKNOWN
    if run.state is RunState.RUNNING or kind is Kind.REMOVED:
        return None
    if not planned:
        return RetentionRule.UNPLANNED
    if run.state not in FINAL:
        return None
    match kind:
        case Kind.CHECKPOINT:
            return RetentionRule.CHECKPOINTS
        case Kind.HALF_WRITTEN | Kind.SET_ASIDE:
            return RetentionRule.LEFTOVERS
        case Kind.WEIGHTS:
            return RetentionRule.SELECTED if selected else RetentionRule.NOT_SELECTED
        case _:
            return None
