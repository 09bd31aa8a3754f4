"""Decides which files of runs are kept, and by which rule others may be removed, as a pure function of runs and files.

A run that is not finished keeps everything. A finished run (completed, diverged or pruned) keeps its tested weights and
its log; its checkpoints may be removed. Other files are removed only when the user names their rule.
"""

from collections.abc import Iterable, Set
from enum import StrEnum

from kdx.run_files.files import Kind, RunFile, folder_of
from kdx.store.records import FINAL, Inventory, RunRecord, RunState


class RetentionRule(StrEnum):
    """Why a file may be removed. At most one rule applies to a file."""

    CHECKPOINTS = "checkpoints of finished runs"
    LEFTOVERS = "half-written and damaged files of finished runs"
    NOT_SELECTED = "weights of finished runs that no table selects"
    SELECTED = "weights of the runs that a table selects"
    UNPLANNED = "all files of runs that no sweep plans"
    UNKNOWN = "files of runs that are not in this database"
    SUBMISSIONS = "scripts, sources and logs of Slurm jobs that have ended"


class Retention(StrEnum):
    """The runs whose weights are kept."""

    ALL = "all"
    SELECTED = "selected"
    NONE = "none"


def rules_of(retention: Retention, *, unplanned: bool, unknown: bool) -> frozenset[RetentionRule]:
    """Return the rules in force; the rules for checkpoints, leftovers and submissions always are."""
    rules = {RetentionRule.CHECKPOINTS, RetentionRule.LEFTOVERS, RetentionRule.SUBMISSIONS}
    rules |= {RetentionRule.NOT_SELECTED} if retention is not Retention.ALL else set()
    rules |= {RetentionRule.SELECTED} if retention is Retention.NONE else set()
    rules |= {RetentionRule.UNPLANNED} if unplanned else set()
    return frozenset(rules | ({RetentionRule.UNKNOWN} if unknown else set()))


def removable(
    inventory: Inventory, selected: Set[int], listed: Iterable[RunFile]
) -> dict[RetentionRule, list[RunFile]]:
    """Return rule → the files of runs that may be removed by it; a file without a rule always stays.

    Args:
        selected: ids of the runs whose score is in some table.
    """
    runs = {folder_of(run): run for run in inventory.runs}
    removable_files: dict[RetentionRule, list[RunFile]] = {rule: [] for rule in RetentionRule}
    for file in listed:
        run = runs.get(file.folder)
        planned = run is not None and run.key in inventory.planned
        rule = _rule(file.kind, run, planned, run is not None and run.id in selected)
        if rule:
            removable_files[rule].append(file)
    return removable_files


def _rule(kind: Kind, run: RunRecord | None, planned: bool, selected: bool) -> RetentionRule | None:
    if kind is Kind.OTHER:
        return None
    if run is None:
        return RetentionRule.UNKNOWN
    if run.state is RunState.RUNNING or kind is Kind.NOTE:
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
        case Kind.WEIGHTS | Kind.STATE:
            return RetentionRule.SELECTED if selected else RetentionRule.NOT_SELECTED
        case _:
            return None
