"""`kdx db merge`: joins results databases, such as those of two clusters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kdx.cli.amounts import count_of, size
from kdx.cli.console import out, out_json, say
from kdx.cli.copy import progress_bar
from kdx.cli.options import Files, Json
from kdx.errors import KdxError
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.run_files.merged import Brought, bring
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store import merging
from kdx.store.database import open_database
from kdx.store.merge_union import Conflict
from kdx.store.merging import Merged

FOUND = 5
"""Exit code of a merge that met a conflict."""
_SHOWN = ("state", "valid_score", "test_score", "attempts", "owner", "code", "data", "parameters", "value")


def merge(
    databases: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC… DST", help="Databases, files or addresses; the last one takes what the others have."
        ),
    ],
    as_generation: Annotated[
        bool,
        typer.Option(
            "--as-generation", help="Take a run that has other results there as a further generation, out of tables."
        ),
    ] = False,
    rename: Annotated[
        bool,
        typer.Option(
            "--rename", help="Take a sweep that has another plan there as NAME-of-ID, by the id of its database."
        ),
    ] = False,
    files: Annotated[
        bool, typer.Option("--with-files", help="Copy weights, logs and checkpoints too, from beside each SRC.")
    ] = False,
    files_in: Files = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would come.")] = False,
    json: Json = False,
) -> None:
    """Put into a database what others have and it has not, such as the runs of another cluster. SRC stay as they are.

    A run that is finished in both with the same results is one run. One
    that is finished there takes the place of one that waits here. What is
    finished here is never changed: with other results there it is a
    conflict, which is listed, with exit code 5. Made again, it changes
    nothing. DST is made where there is none.

    Example: kdx db merge cluster-a.db cluster-b.db all.db --dry-run
    """
    if len(databases) < 2:
        raise KdxError("a merge takes two databases or more", allowed="SRC… DST, such as a.db b.db all.db")
    *sources, target = databases
    with progress_bar("merging") as progress:
        done = 0

        def count(rows: int) -> None:
            nonlocal done
            progress(done := done + rows, None)

        merged = merging.merge(
            sources, target, dry_run=dry_run, as_generation=as_generation, rename=rename, progress=count
        )
    brought = None if dry_run else _bring(sources, target, merged, files)
    if json:
        out_json(_as_json(merged, brought, dry_run))
    else:
        for conflict in merged.conflicts:
            for line in _lines(conflict):
                out(sanitize_lines(line))
    for line in _closing(merged, brought, dry_run, files):
        say(line)
    if merged.conflicts:
        raise typer.Exit(FOUND)


def _bring(sources: Sequence[str], target: str, merged: Merged, copy: bool) -> Brought:
    if copy:
        for source in sources:
            with open_database(source, write=False) as opened:
                refuse_stranger(opened)
    with open_database(target, write=True) as database:
        return bring(database, merged.folders, copy=copy)


def _lines(conflict: Conflict) -> Iterator[str]:
    """What is in conflict, then each side in a line, then in what their machines and libraries differ."""
    yield f"{conflict.what}: {', '.join(conflict.differences)}"
    for word, side in (("here", conflict.here), ("there", conflict.there)):
        run = f" run {side['run']}" if "run" in side else ""
        facts = [f"{name} {_short(side[name])}" for name in _SHOWN if side.get(name) is not None]
        yield f"  {word}: {side['database']}{run}{': ' if facts else ''}{', '.join(facts)}"
    places = [side.get("environment", {}) for side in (conflict.here, conflict.there)]
    for name in sorted({*places[0], *places[1]}):
        if places[0].get(name) != places[1].get(name):
            yield f"  {name}: {_short(places[0].get(name))} here, {_short(places[1].get(name))} there"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _closing(merged: Merged, brought: Brought | None, dry_run: bool, files: bool) -> Iterator[str]:
    yield from (f"note: {line}" for line in merged.left)
    would, take = ("would come", "would take") if dry_run else ("came", "took")
    yield (
        f"{merged.target}: {count_of(merged.came, 'run')} and {count_of(merged.sweeps, 'sweep')} {would}, "
        f"{merged.replaced:,} {take} the place of a run that waited here, {merged.same:,} brought nothing new"
    )
    if merged.added:
        yield f"{merged.added:,} of them as further generations, out of tables; kdx invalidate RUN --undo puts one in"
    if not dry_run and not merged.rows:
        yield "nothing was changed"
    if merged.conflicts:
        kinds = {one.kind for one in merged.conflicts}
        remedies = [
            *(["--as-generation takes such runs as further generations"] if "run" in kinds else []),
            *(["--rename takes such sweeps under names of their own"] if "sweep" in kinds else []),
        ]
        counted = count_of(len(merged.conflicts), "conflict")
        yield "; ".join([f"{counted}, in which what was here stands", *remedies])
    if brought is None:
        return
    if files:
        yield f"copied {count_of(brought.files, 'file')} of runs, {size(brought.bytes)}"
    for what, folders in (
        ("weights of {} lie", brought.elsewhere),
        ("checkpoints that {} would go on from lie", brought.checkpoints),
    ):
        for source, count in _by_source(folders).items():
            more = "" if files else "; the same command copies them with --with-files"
            yield f"{what.format(count_of(count, 'run'))} beside {source}{more}"


def _by_source(folders: Sequence[Any]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for one in folders:
        counts[shell_word(str(one.source))] = counts.get(shell_word(str(one.source)), 0) + 1
    return counts


def _as_json(merged: Merged, brought: Brought | None, dry_run: bool) -> dict[str, Any]:
    return {
        "target": merged.target,
        "done": not dry_run,
        "runs": {"came": merged.came, "replaced": merged.replaced, "same": merged.same, "added": merged.added},
        "sweeps": merged.sweeps,
        "rows": dict(merged.rows),
        "conflicts": [asdict(one) for one in merged.conflicts],
        "left": list(merged.left),
        "folders": [
            {
                "source": str(one.source),
                "formerly": one.former,
                "folder": one.new,
                "state": one.state,
                "came": one.came,
            }
            for one in merged.folders
        ],
        "files": None
        if brought is None
        else {
            "copied": brought.files,
            "bytes": brought.bytes,
            "weights_elsewhere": [one.new for one in brought.elsewhere],
            "checkpoints_elsewhere": [one.new for one in brought.checkpoints],
        },
    }
