"""`kdx note`: writes a remark on a sweep or a run."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, say
from kdx.cli.named_runs import is_number, known_sweep, runs_of
from kdx.cli.options import DATABASE, Db, Files, Json, in_database
from kdx.errors import KdxError
from kdx.shell import kdx_command
from kdx.store import remarks
from kdx.store.database import open_database
from kdx.store.reading import sweep_of
from kdx.store.schema import TEXT

LONGEST_TAG = 100  # characters


def note(
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.sweeps_grids_and_runs,
            metavar="SWEEP|GRID.yaml|RUN",
            help="A sweep, its grid file, or the number of a run.",
        ),
    ],
    text: Annotated[str | None, typer.Argument(help="What to write; not needed where there is a tag.")] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="WORD", help="A word by which kdx status finds it; any number of times."),
    ] = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="WORD", help="A tag that is to go; any number of times."),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Attach a note or tags to a sweep or a run.

    Example: kdx note quickstart "before the corpus was cut" --tag baseline

    Example: kdx status quickstart tag=odd
    """
    written = (text or "").strip()
    if not written and not tags and not untag:
        again = kdx_command("note", what, "…", options=" --tag …")
        raise KdxError("there is nothing to write", hint=f"write a text or a tag: {again}")
    if len(written) > TEXT:
        raise KdxError(f"a note of {len(written):,} characters", allowed=f"at most {TEXT:,}")
    for tag in tags or ():
        if not tag or len(tag) > LONGEST_TAG or not tag.isprintable() or set(tag) & {" ", "="}:
            allowed = f"a word without blanks and =, of at most {LONGEST_TAG} characters"
            raise KdxError(f"`{tag}` as a tag", allowed=allowed)
    if both := [tag for tag in tags or () if tag in (untag or ())]:
        raise KdxError(f"`{both[0]}` stands after --tag and after --untag", allowed="one of them")
    with open_database(db, write=True) as database:
        if is_number(what):
            (run,) = runs_of(database, [what], db)
            fresh = remarks.annotate(database, run_id=run.id, text=written, tags=tags or ())
            gone = remarks.untag(database, run_id=run.id, tags=untag) if untag else ()
            sweep = sweep_of(database, run.id)
        else:
            found = known_sweep(database, what, db)
            fresh = remarks.annotate(database, sweep_id=found.id, text=written, tags=tags or ())
            gone = remarks.untag(database, sweep_id=found.id, tags=untag) if untag else ()
            what = sweep = found.name
    if json:
        out_json({"on": what, "note": written or None, "tags": list(fresh), "untagged": list(gone)})
    had = [tag for tag in dict.fromkeys(tags or ()) if tag not in fresh]
    done = (["a note"] if written else []) + [f"tag {tag}" for tag in fresh]
    lacking = [tag for tag in dict.fromkeys(untag or ()) if tag not in gone]
    on = f"run {what}" if is_number(what) else what
    if untag:
        parts = [f"{on} has no tag {tag} any more" for tag in gone] + [f"{on} had no tag {tag}" for tag in lacking]
        say("; ".join(parts))
        if not done and not had:
            return
    already = f"{'; ' if done else ''}it has tag {', '.join(had)} already" if had else ""
    news = f"{on} has {' and '.join(done)} now" if done else f"{on}: "
    shown = f"; {kdx_command('status', sweep, options=in_database(db))} shows it" if sweep else ""
    say(f"{news}{already}{shown}")
