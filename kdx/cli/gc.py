"""`kdx gc`: lists and removes files of runs that are no longer needed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated

import typer

from kdx.cli.console import say, table
from kdx.cli.context import Answering, Context
from kdx.cli.slurm_jobs import submitted
from kdx.cli.wording import count_of, size
from kdx.report.selection.best_seed import selected_runs
from kdx.run_files.files import RunFile, files_beside, listing, remove
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.run_files.retention import Retention, RetentionRule, removable, rules_of
from kdx.slurm.submission import Submission, files_of, remove_empty
from kdx.store.database import Database, open_database
from kdx.store.reading import inventory, load_sweep, names, searching, sweeps
from kdx.store.records import ENDED

_OPTION = {
    RetentionRule.NOT_SELECTED: " --keep selected",
    RetentionRule.SELECTED: " --keep none",
    RetentionRule.UNPLANNED: " --unplanned",
    RetentionRule.UNKNOWN: " --unknown",
}
"""The options that put a rule into force; the others always are."""


def gc(
    context: Answering,
    keep: Annotated[Retention, typer.Option("--keep", help="Finished runs whose weights are kept.")] = Retention.ALL,
    unplanned: Annotated[bool, typer.Option("--unplanned", help="All files of runs that no sweep plans, too.")] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help="Files of runs not in this database, too.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Remove the files, instead of listing them.")] = False,
) -> None:
    """List or remove files of runs that are no longer needed.

    Without --apply nothing is removed. A finished run keeps the weights that were tested, and its log; an unfinished
    one keeps everything. Nothing in the database is removed. Folders of Slurm jobs are removed once the jobs have left
    the queue and their sweep is done. With --keep selected, only the run whose score stands for its cell in the tables
    of a sweep keeps its weights.

    Example: kdx gc --keep selected --apply
    """
    rules = rules_of(keep, unplanned=unplanned, unknown=unknown)
    with open_database(context.db, write=apply) as database:
        refuse_stranger(database)
        files = files_beside(database.location)
        # Slurm is asked before the database is locked: it may take a minute, and jobs that have ended stay so.
        ended = list(_ended(database))
        # While the database is locked nobody claims, plans or ends a run, so the decisions stay valid.
        with database.write() if apply else nullcontext():
            files_by_rule = removable(inventory(database), _selected(database), listing(files))
            files_by_rule[RetentionRule.SUBMISSIONS] = [file for each in ended for file in files_of(files, each)]
            for rule in rules if apply else ():
                for file in files_by_rule[rule]:
                    remove(files, file, leave_word=rule is not RetentionRule.UNKNOWN)
            for submission in ended if apply else ():
                remove_empty(submission)
    record = [
        {
            "rule": rule.name.lower(),
            "files": [f"{file.folder}/{file.name}" for file in listed],
            "bytes": sum(file.size for file in listed),
            "chosen": rule in rules,
            "removed": apply and rule in rules,
        }
        for rule, listed in files_by_rule.items()
    ]
    context.answer(record, lambda: _lines(files_by_rule, rules if apply else (), context))
    removable_now = [file for rule in rules for file in files_by_rule[rule]]
    counts = f"{count_of(len(removable_now), 'file')}, {size(sum(file.size for file in removable_now))}"
    again = context.command("gc", options=f"{''.join(dict.fromkeys(_OPTION.get(rule, '') for rule in rules))} --apply")
    if apply:
        say(f"removed {counts}")
    elif removable_now:
        say(f"nothing was removed; {counts} would be by: {again}")
    else:
        say("nothing was removed, and by these rules nothing would be")


def _ended(database: Database) -> Iterator[Submission]:
    """Return submissions whose jobs have left Slurm's queue, of sweeps that are removed or have nothing left to do."""
    submissions = submitted(database)
    if not submissions:
        return
    recorded = sweeps(database)
    search = searching(database, [sweep.id for sweep in recorded])
    unfinished = {sweep.name for sweep in recorded if sweep.id in search or set(sweep.counts) - ENDED}
    for name, of_sweep in submissions.items():
        if name not in unfinished:
            # Where Slurm does not answer, it is unknown whether they have left it.
            yield from (each.submission for each in of_sweep if each.queued is not None and not each.queued)


def _selected(database: Database) -> frozenset[int]:
    """Return the ids of the runs whose scores are in the tables of some sweep."""
    # Sweeps are loaded one at a time, so that they are never all in memory.
    records = (load_sweep(database, sweep_id) for sweep_id in names(database).values())
    return frozenset(run.id for sweep in records for run in selected_runs(sweep).values())


def _lines(
    files_by_rule: Mapping[RetentionRule, Sequence[RunFile]], removed: Collection[RetentionRule], context: Context
) -> Iterator[str]:
    """Return a line for each rule: files, bytes, and the command that removes them."""
    rows = []
    for rule, files in files_by_rule.items():
        command = context.command("gc", options=f"{_OPTION.get(rule, '')} --apply")
        how = "removed" if rule in removed else command if files else ""
        rows.append((len(files), size(sum(file.size for file in files)), str(rule), how))
    yield from table(("files", "size", "what", "removed by"), rows)
