"""`kdx rename`: gives a sweep another name."""

import shlex
import unicodedata
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, say
from kdx.cli.options import DATABASE, Db, Json, in_database


def rename(
    sweep: Annotated[str, typer.Argument(autocompletion=completion.sweeps, help="Name of a sweep.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name to be; no sweep may have it yet.")],
    db: Db = DATABASE,
    json: Json = False,
) -> None:
    """Give a sweep another name; its runs, plans, notes and files stay as they are.

    The grid keeps its `name:`, which is to be changed too: else kdx
    sweep plans a sweep of the old name again.

    Example: kdx rename quickstart first-look
    """
    from kdx.cli.named_runs import known_sweep
    from kdx.errors import KdxError
    from kdx.grid.load import LONGEST_NAME
    from kdx.store import sweeps
    from kdx.store.database import open_database
    from kdx.store.reading import grids

    unfit = any(unicodedata.category(sign) in ("Cs", "Cc") for sign in new)
    if not new.strip() or len(new) > LONGEST_NAME or unfit:
        allowed = f"a line of at most {LONGEST_NAME} characters"
        raise KdxError(f"`{new}` cannot be the name of a sweep", allowed=allowed)
    where = in_database(db)
    with open_database(db, write=True) as database:
        sweep_id = known_sweep(database, sweep)
        if new == sweep:
            raise KdxError(f"the sweep is called `{sweep}` already", place=db)
        file = grids(database)[sweep].get("file") or None
        try:
            sweeps.rename(database, sweep_id, new)
        except sweeps.NameTaken:
            hint = f"take another name, or remove that one: kdx rm {shlex.quote(new)}{where}"
            raise KdxError(f"there is a sweep `{new}` already", place=db, hint=hint) from None
    if json:
        out_json({"sweep": new, "formerly": sweep, "grid": file})
    say(f"sweep `{sweep}` is `{new}` now; write `name: {new}` into {file or 'its grid'} too,")
    say(f"or kdx sweep plans a sweep `{sweep}` again, which shares these runs")
