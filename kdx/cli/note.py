"""`kdx note`: adds a note or tags to a sweep or a run."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import known_sweep, runs_of
from kdx.errors import KdxError
from kdx.store import remarks
from kdx.store.find import run_number
from kdx.store.schema import TEXT

LONGEST_TAG = 100  # characters


def note(
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.names,
            metavar="SWEEP|GRID.yaml|RUN",
            help="A sweep, its grid file, or the number of a run.",
        ),
    ],
    context: InDatabase,
    text: Annotated[str, typer.Argument(help="The note; not needed with a tag.")] = "",
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", metavar="TAG", help="Add a tag; kdx status lists those of sweeps, and finds runs by theirs."
        ),
    ] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", metavar="TAG", help="Remove a tag.")] = None,
) -> None:
    """Add a note or tags to a sweep or a run.

    Example: kdx note quickstart "before the corpus was cut" --tag baseline

    Example: kdx note 7 --tag odd && kdx status quickstart tag=odd
    """
    text = text.strip()
    if not (text or tags or untag):
        raise KdxError("there is nothing to write", hint="give a text, --tag or --untag")
    if len(text) > TEXT:
        raise KdxError(f"a note of {len(text):,} characters", allowed=f"at most {TEXT:,}")
    for tag in tags or ():
        if not tag or len(tag) > LONGEST_TAG or not tag.isprintable() or set(tag) & {" ", "="}:
            allowed = f"a word without blanks and =, of at most {LONGEST_TAG} characters"
            raise KdxError(f"`{tag}` as a tag", allowed=allowed)
    with context.write() as database:
        if run_number(what) is not None:
            (run,) = runs_of(database, [what], context)
            what, on = f"run {run.id}", {"run_id": run.id}
        else:
            sweep = known_sweep(database, what, context)
            what, on = sweep.name, {"sweep_id": sweep.id}
        added = remarks.annotate(database, **on, text=text, tags=tags or ())
        removed = remarks.untag(database, **on, tags=untag or ())
    done = ["a note"] * bool(text) + [f"tag {tag}" for tag in added] + [f"no tag {tag}" for tag in removed]
    say(f"{what} has {' and '.join(done)} now" if done else f"{what} stays as it is")
