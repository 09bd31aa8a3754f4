"""`kdx db migrate-cells`: renames words of one's own in all that was recorded."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli.console import out_json, say
from kdx.cli.options import DATABASE, Db, Files, Json, in_database

if TYPE_CHECKING:
    from kdx.errors import KdxError
    from kdx.own_parts.part import OwnPart
    from kdx.store.cell_migrations import Migration, RenamedWord
    from kdx.store.database import Database
    from kdx.store.parts import PartRecord


def migrate_cells(
    renames: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD=NEW…", help="Words of one's own, such as kernels.py:Cauchy=attention/kernels.py:Cauchy."
        ),
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    parts: Annotated[
        Path,
        typer.Option(
            "--parts", metavar="FOLDER", help="Where the files of the new words lie; they are read, and nothing is run."
        ),
    ] = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    json: Json = False,
) -> None:
    """Follow a file or word of one's own that was moved or renamed: its cells keep their results.

    A cell is known by the hash of all its settings, words among them, so
    a grid with the new word would make other cells. This gives the cells
    their new ids; runs, plans, labels and files move along. The source
    must be the same. Cells that were run under both words are joined:
    the runs of the former word become older generations.

    Example: kdx db migrate-cells kernels.py:Cauchy=attention/kernels.py:Cauchy --dry-run
    """
    from kdx.cli.amounts import count_of
    from kdx.errors import KdxError
    from kdx.run_files import moves
    from kdx.run_files.folder_ownership import refuse_stranger
    from kdx.store import cell_migrations
    from kdx.store.database import open_database
    from kdx.store.parts import keep

    pairs = _pairs(renames)
    finished: int | None = None
    with open_database(db, write=not dry_run) as database:
        refuse_stranger(database)
        if not dry_run:
            # Of a call before this one that was killed.
            finished = moves.finish(database)
        words, found_parts = _words(database, pairs, parts.expanduser(), db, finished is not None)
        with database.read() if dry_run else database.write() as connection:
            found = cell_migrations.find(connection, words)
            if found.conflicts:
                listed = "; ".join(found.conflicts[:10])
                hint = f"let them end, or cancel them: kdx cancel RUN…{in_database(db)}, then kdx retry after this"
                raise KdxError(f"not to be done now: {listed}", place=db, hint=hint)
            if not dry_run and found.cells:
                keep(connection, database, found_parts)
                former = [one.former_id for one in found.cells]
                moves.intend(database, former, cell_migrations.last(connection), found.folders)
                cell_migrations.carry_out(connection, found, words)
        folders = 0 if dry_run else moves.finish(database) or 0
    if json:
        out_json(_as_json(found, dry_run))
    for word, count in found.other_sources.items():
        say(f"note: {count_of(count, 'cell')} with another source of `{word}` stay as they are")
    if finished is not None and not found.cells:
        say(f"moved {count_of(finished, 'folder')} of files, which a call before this one had left")
        return
    does = "would get" if dry_run else "has" if len(found.cells) == 1 else "have"
    moved = len({one.run_id for one in found.runs if one.former[0] != one.new[0]})
    joined = f", {count_of(len(found.merged), 'cell')} joined with one that was there" if found.merged else ""
    files = "" if dry_run else f"; moved {count_of(folders, 'folder')} of files"
    say(
        f"{count_of(len(found.cells), 'cell')} {does} another id now, {count_of(moved, 'run')} with them{joined}{files}"
    )
    if not dry_run:
        say("write the new words into your grids too; kdx plan GRID shows whether they find their runs")


def _pairs(renames: Sequence[str]) -> dict[str, str]:
    from kdx.errors import KdxError

    found: dict[str, str] = {}
    for text in renames:
        former, equals, new = text.partition("=")
        if not equals or not former or not new or former == new:
            allowed = "OLD=NEW, such as kernels.py:Cauchy=attention/kernels.py:Cauchy"
            raise KdxError(f"`{text}` renames nothing", allowed=allowed)
        if former in found or new in found.values():
            raise KdxError(f"`{former if former in found else new}` stands twice", hint="rename each word once")
        found[former] = new
    return found


def _words(
    database: "Database", pairs: Mapping[str, str], folder: Path, db: str, finished: bool
) -> "tuple[list[RenamedWord], list[OwnPart]]":
    """What each pair means, once its new word is found and its source is the one of the former word."""
    from kdx.errors import KdxError, did_you_mean
    from kdx.own_parts.read import find
    from kdx.own_parts.registry import add
    from kdx.store.cell_migrations import RenamedWord, hashes_of, words_of
    from kdx.store.parts import load_parts

    with database.read() as connection:
        known = words_of(connection)
        hashes = {former: hashes_of(connection, former) for former in pairs}
    kept = load_parts(database, {sha256 for its in hashes.values() for sha256 in its})
    found, parts = [], []
    axes = {word: axis for axis, its in known.items() for word in its}
    for former, new in pairs.items():
        if former not in axes:
            if finished:
                continue
            hint = did_you_mean(former, axes)
            raise KdxError(
                f"no cell has `{former}`", place=db, allowed=tuple(axes) or "no cell has words of one's own", hint=hint
            )
        part = find(axes[former], new, folder)
        if part is None:
            hint = "install its package, or name a file: FILE.py:Class"
            raise KdxError(
                f"there is no {axes[former]} `{new}`", allowed="a word of one's own that is there", hint=hint
            )
        add(part)
        same = frozenset(one for one in hashes[former] if _is_same(part, former, one, kept.get(one)))
        if not same:
            raise _another_source(former, new, part, db)
        found.append(RenamedWord(axes[former], former, new, part.sha256, same))
        parts.append(part)
    return found, parts


def _is_same(part: "OwnPart", former: str, sha256: str, kept: "PartRecord | None") -> bool:
    """Whether a source that cells have under the former word is the part's, whose file may be called otherwise."""
    from kdx.own_parts.part import hash_of
    from kdx.own_parts.read import is_in_file

    if sha256 == part.sha256:
        return True
    if kept is None or part.package or not is_in_file(former):
        return False
    file = former.rpartition(":")[0].rpartition("/")[2]
    renamed = {part.paths[part.module] if path == file else path: text for path, text in kept.sources.items()}
    return former.rpartition(":")[2] == part.name and hash_of(renamed) == part.sha256


def _another_source(former: str, new: str, part: "OwnPart", db: str) -> "KdxError":
    from kdx.errors import KdxError

    return KdxError(
        f"the source of `{new}` is not the one that cells with `{former}` were made with",
        place=part.file(part.module),
        hint=f"kdx export --parts FOLDER{in_database(db)} writes that one out, to be compared;"
        " with another source, kdx sweep GRID makes new cells",
    )


def _as_json(found: "Migration", dry_run: bool) -> dict[str, Any]:
    return {
        "done": not dry_run,
        "cells": [
            {
                "formerly": one.former_id,
                "cell": one.cell_id,
                "change": one.change,
                "joined": one.cell_id in found.merged,
            }
            for one in found.cells
        ],
        "runs": [
            {
                "run": one.run_id,
                "seed": one.seed,
                "formerly": {"cell": one.former[0], "generation": one.former[1]},
                "cell": one.new[0],
                "generation": one.new[1],
            }
            for one in found.runs
        ],
        "given_up": list(found.given_up),
        "other_sources": dict(found.other_sources),
    }
