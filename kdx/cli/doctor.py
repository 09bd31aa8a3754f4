"""`kdx doctor`: checks and repairs the database, the runs and their files."""

import platform
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from kdx.cli.console import FOUND, say
from kdx.cli.context import Answering, Context
from kdx.cli.suggest import retry_runs
from kdx.cli.wording import counts_of, size
from kdx.run_files.files import Kind, RunFile, damaged, files_beside, folder_of, listing, remove, set_aside
from kdx.run_files.folder_ownership import STRANGE, is_strange, settled_here
from kdx.run_files.repair import LOST_WEIGHTS, Finding, Repair, diagnose
from kdx.sanitize import sanitize_lines
from kdx.store import claims
from kdx.store.check import Checked, look_through
from kdx.store.database import Database, database_at, open_database
from kdx.store.reading import inventory
from kdx.store.records import Inventory
from kdx.store.schema import REVISION
from kdx.store.sqlite.file import filesystem
from kdx.sweep.decide import why_lost
from kdx.sweep.lease_holder import Liveness, liveness
from kdx.version import VERSION

LIBRARIES = ("torch", "pytorch-lightning", "numpy", "sqlalchemy", "optuna")
LEAST_FREE = 100_000_000  # bytes; or three of the largest checkpoints if they are larger


def doctor(
    context: Answering,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired.")] = False,
) -> None:
    """Check and repair the database, the runs and their files.

    With --fix, runs whose process is gone are given back to kdx resume, damaged files are set aside, and what killed
    processes left half-written is removed. No result is ever deleted. Exit code 5 if a problem remains.

    Example: kdx doctor --fix
    """
    db = context.db
    checked, closed = look_through(db), database_at(db)
    files = files_beside(closed.location)
    runs = Inventory((), frozenset())
    listed: tuple[RunFile, ...] = ()
    if checked.faults:
        # A database that cannot be trusted says nothing about runs and files.
        rescue = f"restore a backup, or save what is left with: {closed.recovery}"
        problems = [Finding(db, fault, hint=rescue) for fault in checked.faults]
    else:
        files, runs, listed, problems = _examine(context)
    problems += _disk(files, listed)
    repaired = _repair(context, problems) if fix and any(finding.repair for finding in problems) else set()
    facts = _facts(db, checked, runs, files, listed)
    findings = [
        {
            "place": each.place,
            "problem": each.problem,
            "repair": each.repair and each.repair.name.lower(),
            "hint": _hint(each),
            "repaired": each in repaired,
        }
        for each in problems
    ]
    context.answer({**facts, "findings": findings}, lambda: _lines(facts, problems, repaired))
    say(_closing(problems, repaired, context))
    if set(problems) - repaired:
        raise typer.Exit(FOUND)


def _hint(finding: Finding) -> str | None:
    """Return what to do about a finding."""
    return f"--fix: {finding.repair}" if finding.repair else finding.hint


def _examine(context: Context) -> tuple[Path, Inventory, tuple[RunFile, ...], list[Finding]]:
    """Return the folder of files of a sound database, its runs, their files, and what is wrong with them."""
    with open_database(context.db, write=False) as database:
        files = files_beside(database.location)
        strange, settled = is_strange(database), settled_here(database)
    # Reading the files may take minutes, for which no database is open, and during which runs may end.
    broken = frozenset() if strange else damaged(files, listing(files))
    problems = [Finding(str(files), STRANGE, hint="put the folder beside its own database")] if strange else []
    with open_database(context.db, write=False) as database:
        runs = inventory(database)
        # Files are listed after the records are read, so that those of a run that just ended are included.
        listed = () if strange else listing(files)
        existing = listed if listed or not settled else None
        for finding in diagnose(runs, existing, broken, partial(why_lost, liveness=liveness)):
            if finding.problem == LOST_WEIGHTS and finding.run is not None:
                again = retry_runs(context, database, [finding.run.id])
                finding = replace(finding, hint=f"{again} makes them anew")
            problems.append(finding)
    return files, runs, listed, problems


def _repair(context: Context, problems: Sequence[Finding]) -> set[Finding]:
    """Make every repair that is still needed, and return the repaired findings."""
    with context.write() as database:
        repaired = {
            finding for finding in problems if finding.repair is Repair.GIVE_BACK and _give_back(database, finding)
        }
        files = files_beside(database.location)
        broken = {finding.file for finding in problems if finding.file and finding.repair is Repair.SET_ASIDE}
        # While the database is locked nobody claims a run, so nobody begins to write files that are repaired.
        with database.write():
            lost = partial(why_lost, liveness=liveness)
            listed = listing(files)
            still = {finding.file for finding in diagnose(inventory(database), listed, broken, lost)}
            for finding in problems:
                if finding.file is None or finding.file not in still:
                    continue
                if finding.repair is Repair.SET_ASIDE:
                    set_aside(files, finding.file)
                else:
                    remove(files, finding.file, leave_word=False)
                repaired.add(finding)
    return repaired


def _give_back(database: Database, finding: Finding) -> bool:
    """Give back a run whose process is gone; return whether it still is."""
    run = finding.run
    if run is None or run.owner is None or (now := liveness(run.owner)) is Liveness.HERE:
        return False
    reason = f"kdx doctor found it {finding.problem}"
    # A process that cannot be seen from here may have renewed the lease by now.
    lapsed = now is not Liveness.GONE
    return bool(claims.abandon(database, run.id, run.owner, run.attempt, reason, only_lapsed=lapsed, stalled=False))


def _disk(files: Path, listed: Sequence[RunFile]) -> list[Finding]:
    free, _ = _free(files)
    needed = max(LEAST_FREE, 3 * max((file.size for file in listed), default=0))
    if free >= needed:
        return []
    problem = f"{size(free)} are free on its disk; a sweep wants {size(needed)}"
    return [Finding(str(files), problem, hint="free some space, with kdx gc for one")]


def _free(files: Path) -> tuple[int, str | None]:
    """Return the free bytes on the disk of the folder, and the kind of its file system."""
    folder = next(folder for folder in (files.absolute(), *files.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(folder).free, filesystem(folder)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # as where results are only read
        return "not installed"


def _facts(db: str, checked: Checked, runs: Inventory, files: Path, listed: Sequence[RunFile]) -> dict[str, Any]:
    free, kind = _free(files)
    known = {folder_of(run) for run in runs.runs}
    software, software_version = database_at(db).software()
    libraries = {name: _version(name) for name in LIBRARIES}
    return {
        "versions": {"kdx": VERSION, "python": platform.python_version(), software: software_version, **libraries},
        "database": {
            "name": db,
            "schema": REVISION,
            "sound": not checked.faults,
            "rows": checked.rows,
            "numbers_that_a_replay_changed": checked.differing,
            "runs": Counter(run.state.value for run in runs.runs),
        },
        "files": {
            "folder": str(files),
            "files": len(listed),
            "bytes": sum(file.size for file in listed),
            "set_aside": sum(file.kind is Kind.SET_ASIDE for file in listed),
            "of_unknown_runs": sum(file.folder not in known for file in listed),
        },
        "disk": {"file_system": kind, "free_bytes": free},
    }


def _lines(facts: Mapping[str, Any], findings: Sequence[Finding], repaired: Collection[Finding]) -> Iterator[str]:
    database, files, disk = facts["database"], facts["files"], facts["disk"]
    texts = {
        "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "database": f"{database['name']}, schema {database['schema']}",
        "runs": counts_of(database["runs"]) or "none",
        "files": f"{files['files']} in {files['folder']}, {size(files['bytes'])}" if files["files"] else "none",
        "disk": f"{disk['file_system'] or 'of unknown kind'}, {size(disk['free_bytes'])} free",
    }
    if not database["sound"]:
        texts["runs"] = texts["files"] = "unchecked, since the database is not sound"
    if changed := database["numbers_that_a_replay_changed"]:
        texts["runs"] += f"; {changed} numbers differed when a resumed run computed them again"
    leftovers = {"set aside as damaged": files["set_aside"], "of runs not in this database": files["of_unknown_runs"]}
    texts["files"] += "".join(f"; {count} {what}, see kdx gc" for what, count in leftovers.items() if count)
    yield from (f"{name:9} {sanitize_lines(text)}" for name, text in texts.items())
    for finding in findings:
        done, hint = finding in repaired, _hint(finding)
        yield f"{'repaired' if done else 'wrong'}: {sanitize_lines(f'{finding.place}: {finding.problem}')}"
        if hint and not done:
            yield f"  {hint}"


def _closing(findings: Sequence[Finding], repaired: Collection[Finding], context: Context) -> str:
    if not findings:
        return "nothing is wrong"
    counts = f"{len(findings)} found" + (f", {len(repaired)} repaired" if repaired else "")
    if any(each.repair is Repair.GIVE_BACK for each in repaired):
        return f"{counts}; next: {context.command('resume')}"
    if not repaired and any(each.repair for each in findings):
        return f"{counts}; next: {context.command('doctor', options=' --fix')}"
    left = len(findings) - len(repaired)
    if not left:
        return counts
    return f"{counts}; kdx cannot repair {'the rest' if repaired else 'it' if left == 1 else 'them'}"
