"""`kdx gc`: lists and removes files of runs that are no longer needed."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from kdx.cli.amounts import size
from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Files, Json, in_database
from kdx.cli.slurm_jobs import submitted
from kdx.report.selection.best_seed import selected_runs
from kdx.run_files.files import RunFile, files_beside, listing, remove
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.run_files.retention import Retention, RetentionRule, removable, rules_of
from kdx.slurm.submission import Submission, files_of, remove_empty
from kdx.store.database import Database, open_database
from kdx.store.reading import inventory, load_sweep, names, sweeps
from kdx.store.records import OVER
from kdx.store.search_progress import progress


def gc(
    db: Db = DATABASE,
    files_in: Files = None,
    keep: Annotated[
        Retention, typer.Option("--keep", help="The finished runs whose weights are kept.")
    ] = Retention.ALL,
    unplanned: Annotated[
        bool,
        typer.Option("--unplanned", help="Also all files of runs that no sweep plans."),
    ] = False,
    unknown: Annotated[
        bool,
        typer.Option("--unknown", help="Also files of runs that are not in this database."),
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Remove the files, instead of only listing them.")] = False,
    json: Json = False,
) -> None:
    """List and remove files of runs that are no longer needed.

    Without --apply nothing is removed. A finished run keeps the weights that were tested, and its log; an
    unfinished one keeps everything. Nothing in the database is removed.
    Folders of jobs in Slurm go once the jobs have left its queue and
    nothing of their sweep is left to do.
    With --keep selected, only the run whose score stands for its cell in
    the tables of a sweep keeps its weights.

    Example: kdx gc --keep selected --apply
    """
    rules = rules_of(keep, unplanned=unplanned, unknown=unknown)
    with open_database(db, write=apply) as database:
        refuse_stranger(database)
        files = files_beside(database.location)
        # Slurm is asked before the database is locked: it may take a minute, and jobs that are over stay so.
        over = list(_over(database))
        if apply:
            # While the database is locked nobody claims, plans or ends a run, so the decisions stay valid.
            with database.write():
                found = _found(database, over)
                for rule in rules:
                    for file in found[rule]:
                        remove(files, file, leave_word=rule is not RetentionRule.UNKNOWN)
                for one in over:
                    remove_empty(one)
        else:
            found = _found(database, over)
    if json:
        out_json(
            [
                {
                    "rule": rule.name.lower(),
                    "files": [f"{file.folder}/{file.name}" for file in listed],
                    "bytes": _bytes(listed),
                    "asked": rule in rules,
                    "removed": apply and rule in rules,
                }
                for rule, listed in found.items()
            ]
        )
    else:
        out(_text(found, rules, apply, db))
    say(_closing([file for rule in rules for file in found[rule]], apply, keep, unplanned, unknown, db))


def _found(database: Database, over: Sequence[Submission]) -> dict[RetentionRule, list[RunFile]]:
    files = files_beside(database.location)
    found = removable(inventory(database), _selected(database), listing(files))
    found[RetentionRule.SUBMISSIONS] = [file for one in over for file in files_of(files, one)]
    return found


def _over(database: Database) -> Iterator[Submission]:
    """Submissions whose jobs have left Slurm's queue, of sweeps with nothing left to do, or that were removed."""
    submissions = submitted(database)
    if not submissions:
        return
    unfinished = {one.id for one in sweeps(database) if set(one.counts) - OVER}
    unfinished |= {one.sweep_id for one in progress(database) if one.left}
    for sweep_id, its in submissions.items():
        if sweep_id not in unfinished:
            # Where Slurm does not answer, nobody knows whether they have left it.
            yield from (one.submission for one in its if one.queued is not None and not one.queued)


def _selected(database: Database) -> frozenset[int]:
    """Ids of the runs whose scores are in the tables of some sweep."""
    # Sweeps are loaded one at a time, so that they are never all in memory.
    records = (load_sweep(database, sweep_id) for sweep_id in names(database).values())
    return frozenset(run.id for sweep in records for run in selected_runs(sweep).values())


def _bytes(listed: list[RunFile]) -> int:
    return sum(file.size for file in listed)


def _text(found: dict[RetentionRule, list[RunFile]], rules: frozenset[RetentionRule], apply: bool, db: str) -> str:
    """A line for each rule: files, bytes, and the command that removes them or that they are removed."""
    command = {
        RetentionRule.NOT_SELECTED: " --keep selected",
        RetentionRule.SELECTED: " --keep none",
        RetentionRule.UNPLANNED: " --unplanned",
        RetentionRule.UNKNOWN: " --unknown",
    }
    lines = []
    for rule, listed in found.items():
        state = "removed" if apply and rule in rules else f"kdx gc{command.get(rule, '')} --apply{in_database(db)}"
        lines.append(f"{len(listed):7,} {size(_bytes(listed)):>10}  {rule:48} {state if listed else ''}".rstrip())
    header = f"{'files':>7} {'size':>10}  {'what':48} {'' if apply else 'removed by'}".rstrip()
    return "\n".join([header, *lines])


def _closing(listed: list[RunFile], apply: bool, keep: Retention, unplanned: bool, unknown: bool, db: str) -> str:
    counts = f"{len(listed)} file{'' if len(listed) == 1 else 's'}, {size(_bytes(listed))}"
    if apply:
        return f"removed {counts}"
    if not listed:
        return "nothing was removed, and by these rules nothing would be"
    options = f" --keep {keep}" if keep is not Retention.ALL else ""
    options += " --unplanned" * unplanned + " --unknown" * unknown
    return f"nothing was removed; {counts} would be by: kdx gc{options} --apply{in_database(db)}"
