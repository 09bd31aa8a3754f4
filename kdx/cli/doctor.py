"""`kdx doctor`: checks and repairs the database, the runs and their files."""

import platform
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from kdx.cli.amounts import size
from kdx.cli.console import out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.options import DATABASE, Db, Files, Json, in_database, retry_runs
from kdx.run_files import files as run_files
from kdx.run_files.files import Kind, RunFile, damaged, files_beside, folder_of, listing
from kdx.run_files.folder_ownership import STRANGE, is_strange, settled_here
from kdx.run_files.repair import LOST_WEIGHTS, Finding, Repair, diagnose
from kdx.sanitize import sanitize_lines
from kdx.store import claims, reading
from kdx.store.check import Checked, look_through
from kdx.store.database import Database, database_at, open_database
from kdx.store.filesystem import filesystem
from kdx.store.reading import inventory
from kdx.store.records import Inventory
from kdx.store.version import REVISION
from kdx.sweep.decide import why_lost
from kdx.sweep.lease_holder import Liveness, liveness
from kdx.version import VERSION

LIBRARIES = ("torch", "pytorch-lightning", "numpy", "sqlalchemy", "optuna")
LEAST_FREE = 100_000_000  # bytes; or three of the largest checkpoints if they are larger


def doctor(
    db: Db = DATABASE,
    files_in: Files = None,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended.")] = False,
    json: Json = False,
) -> None:
    """Check the database, the runs and all their files.

    With --fix, runs whose process is gone are given back to kdx resume,
    damaged files are set aside, and what killed processes left
    half-written is removed. No result is ever deleted.
    Exit code 5 when something is wrong that is not mended.

    Example: kdx doctor --fix
    """
    checked = look_through(db)
    closed = database_at(db)
    runs = Inventory((), frozenset())
    if checked.faults:
        files = files_beside(closed.location)
        # A database that cannot be trusted says nothing about runs and files.
        listed: tuple[RunFile, ...] = ()
        rescue = f"take it back from a copy, or save what is left with: {closed.recovery}"
        found = [Finding(db, fault, hint=rescue) for fault in checked.faults]
    else:
        with open_database(db, write=False) as database:
            files, runs = files_beside(database.location), inventory(database)
            strange, settled = is_strange(database), settled_here(database)
        found = []
        if strange:
            found.append(Finding(str(files), STRANGE, hint="put the folder beside its own database"))
        # Files are listed after the records are read, so that those of a run that just ended are included.
        listed = () if strange else listing(files)
        existing = listed if listed or not settled else None
        diagnosed = diagnose(runs, existing, damaged(files, listed), partial(why_lost, liveness=liveness))
        with open_database(db, write=False) as database:
            found += [_with_command(one, db, database) for one in diagnosed]
    found += _disk(files, listed)
    mended = _mend(db, found) if fix and any(one.repair for one in found) else set()
    software = closed.software()
    facts = _facts(db, software, checked, runs, files, listed)
    left = [one for one in found if one not in mended]
    if json:
        out_json({**facts, "findings": [_plain(one, one in mended) for one in found]})
    else:
        out(_text(facts, software))
        for one in found:
            out(_line(one, one in mended))
    say(_closing(found, mended, db))
    if left:
        raise typer.Exit(FOUND)


def _mend(db: str, found: list[Finding]) -> set[Finding]:
    """Makes every repair that is still needed, and returns the repaired findings."""
    mended = set()
    with open_database(db, write=True) as database:
        for one in found:
            if one.repair is Repair.GIVE_BACK and one.run and one.run.owner:
                now = liveness(one.run.owner)
                if now is Liveness.HERE:
                    continue
                reason = f"kdx doctor found it {one.problem}"
                # Reading the checkpoints may have taken minutes, in which the owner may have renewed the lease.
                whom = one.run.id, one.run.owner, one.run.attempt
                if claims.abandon(database, *whom, reason, only_lapsed=now is not Liveness.GONE, stalled=False):
                    mended.add(one)
        files = run_files.files_beside(database.location)
        damaged = {one.file for one in found if one.file and one.repair is Repair.SET_ASIDE}
        # While the database is locked nobody claims a run, so nobody begins to write files that are repaired.
        with database.write():
            listed = run_files.listing(files)
            lost = partial(why_lost, liveness=liveness)
            still = {one.file for one in diagnose(reading.inventory(database), listed, damaged, lost)}
            for one in found:
                if one.file is None or one.file not in still:
                    continue
                if one.repair is Repair.SET_ASIDE:
                    run_files.set_aside(files, one.file)
                else:
                    run_files.remove(files, one.file, leave_word=False)
                mended.add(one)
    return mended


def _disk(files: Path, listed: tuple[RunFile, ...]) -> list[Finding]:
    free, _ = _free(files)
    needed = max(LEAST_FREE, 3 * max((file.size for file in listed), default=0))
    if free >= needed:
        return []
    problem = f"{size(free)} are free on its disk; a sweep wants {size(needed)}"
    return [Finding(str(files), problem, hint="free some space, with kdx gc for one")]


def _free(files: Path) -> tuple[int, str | None]:
    """Free bytes on the disk of the folder, and the kind of its file system."""
    folder = next(one for one in (files.absolute(), *files.absolute().parents) if one.is_dir())
    return shutil.disk_usage(folder).free, filesystem(folder)


def _facts(
    db: str,
    software: tuple[str, str],
    checked: Checked,
    runs: Inventory,
    files: Path,
    listed: tuple[RunFile, ...],
) -> dict[str, Any]:
    free, kind = _free(files)
    known = {folder_of(run) for run in runs.runs}
    return {
        "versions": {
            "kdx": VERSION,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        software[0]: {"version": software[1]},
        "database": {
            "name": db,
            "schema": REVISION,
            "sound": not checked.faults,
            "rows": dict(checked.rows),
            "numbers_that_a_replay_changed": checked.differing,
            "runs": dict(Counter(run.state.value for run in runs.runs)),
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


def _text(facts: dict[str, Any], software: tuple[str, str]) -> str:
    versions, database = facts["versions"], facts["database"]
    files, disk = facts["files"], facts["disk"]
    states = ", ".join(f"{count} {state}" for state, count in database["runs"].items()) or "none"
    texts = {
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        software[0]: software[1],
        "database": f"{database['name']}, schema {database['schema']}",
        "runs": states,
        "files": f"{files['files']} in {files['folder']}, {size(files['bytes'])}" if files["files"] else "none",
        "disk": f"{disk['file_system'] or 'of a kind not known'}, {size(disk['free_bytes'])} free",
    }
    if not database["sound"]:
        texts["runs"] = texts["files"] = "not looked at, for the database is not sound"
    changed = database["numbers_that_a_replay_changed"]
    if changed:
        texts["runs"] += f"; {changed} numbers came out otherwise when a resumed run replayed them"
    leftovers = {"set aside as damaged": files["set_aside"], "of runs not in this database": files["of_unknown_runs"]}
    texts["files"] += "".join(f"; {count} {what}, see kdx gc" for what, count in leftovers.items() if count)
    return "\n".join(f"{name:9} {sanitize_lines(text)}" for name, text in texts.items())


def _with_command(finding: Finding, db: str, database: Database) -> Finding:
    """Return a finding of lost weights with the command that makes them anew; any other as it is."""
    if finding.problem != LOST_WEIGHTS or finding.run is None:
        return finding
    return replace(finding, hint=f"{retry_runs(db, database, [finding.run.id])} makes them anew")


def _line(one: Finding, mended: bool) -> str:
    if mended:
        return f"mended: {sanitize_lines(one.place)}: {sanitize_lines(one.problem)}"
    remedy = f"--fix: {one.repair}" if one.repair else one.hint
    return f"wrong: {sanitize_lines(one.place)}: {sanitize_lines(one.problem)}" + (f"\n  {remedy}" if remedy else "")


def _plain(one: Finding, mended: bool) -> dict[str, Any]:
    return {
        "place": one.place,
        "problem": one.problem,
        "repair": one.repair and one.repair.name.lower(),
        "hint": one.hint,
        "mended": mended,
    }


def _closing(found: list[Finding], mended: set[Finding], db: str) -> str:
    if not found:
        return "nothing is wrong"
    counts = f"{len(found)} found"
    counts += f", {len(mended)} mended" if mended else ""
    if any(one.repair is Repair.GIVE_BACK for one in mended):
        return f"{counts}; next: kdx resume{in_database(db)}"
    if not mended and any(one.repair for one in found):
        return f"{counts}; next: kdx doctor --fix{in_database(db)}"
    return (
        counts if len(mended) == len(found) else f"{counts}; kdx cannot mend {'it' if len(found) == 1 else 'the rest'}"
    )
