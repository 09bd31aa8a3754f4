"""`kdx rename`: gives a sweep another name."""

import json as json_text
import re
import unicodedata
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import out_json, say
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import DATABASE, Db, Files, Json, in_database, in_database_with_components
from kdx.cli.slurm_jobs import submitted
from kdx.errors import KdxError
from kdx.grid.sweep_name import ALLOWED, is_sweep_name
from kdx.shell import kdx_command
from kdx.store import sweeps
from kdx.store.database import open_database
from kdx.store.reading import grids

_PLAIN = re.compile(r"[^\W\d_][\w./-]*( [\w./-]+)*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""What some reader of YAML does not take for text."""


def rename(
    sweep: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids, metavar="SWEEP|GRID.yaml", help="A sweep, or its grid file."
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name to be; no sweep may have it yet.")],
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Rename a sweep.

    The grid keeps its `name:`, which is to be changed too: else kdx
    sweep plans a sweep of the old name again.

    Example: kdx rename quickstart first-look
    """
    new = unicodedata.normalize("NFC", new)  # as the grid reader does
    if not is_sweep_name(new):
        raise KdxError(f"`{new}` cannot be the name of a sweep", allowed=ALLOWED)
    where = in_database(db)
    with open_database(db, write=True) as database:
        found = known_sweep(database, sweep, db)
        sweep = found.name
        if new == sweep:
            raise KdxError(f"the sweep is called `{sweep}` already", place=db)
        file = grids(database)[sweep].get("file") or None
        try:
            sweeps.rename(database, found.id, new)
        except sweeps.NameTaken:
            hint = f"take another name, or remove that one: {kdx_command('rm', new, options=where)}"
            raise KdxError(f"there is a sweep `{new}` already", place=db, hint=hint) from None
        jobs = sum(len(one.queued or ()) for one in submitted(database).get(found.id, ()))
        resume = kdx_command("resume", new, options=f" --slurm{in_database_with_components(db, database, new)}")
    if json:
        out_json({"sweep": new, "formerly": sweep, "grid": file})
    say(f"sweep `{sweep}` is `{new}` now; write `name: {_in_yaml(new)}` into {file or 'its grid'} too,")
    say(f"or kdx sweep plans a sweep `{sweep}` again, which shares these runs")
    if jobs:
        cancel = kdx_command("cancel", new, options=where)
        looked = f"{count_of(jobs, 'job')} in Slurm looked for `{sweep}` and will not find it on a new start"
        say(f"note: {looked}: {cancel} and {resume}")


def _in_yaml(name: str) -> str:
    """The name as a grid has to write it, in quotes where YAML would read something else."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    # Every text of JSON is one of YAML.
    return name if plain else json_text.dumps(name, ensure_ascii=False)
