"""`kdx rename`: gives a sweep another name."""

import json as json_text
import re
import shlex
import unicodedata
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_json, say
from kdx.cli.options import DATABASE, Db, Json, in_database

_ACTIVE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Signs that no terminal shows as they are: control and format characters, lone surrogates, breaks of lines."""
_PLAIN = re.compile(r"[^\W\d_][\w./-]*( [\w./-]+)*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""What some reader of YAML does not take for text."""


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
    from kdx.cli.opening import open_to_write
    from kdx.errors import KdxError
    from kdx.grid.load import LONGEST_NAME
    from kdx.store import sweeps
    from kdx.store.reading import grids

    new = unicodedata.normalize("NFC", new)  # as the grid reader does
    if not new or len(new) > LONGEST_NAME or not _is_fit(new):
        allowed = (
            f"a line of at most {LONGEST_NAME} characters without blanks at its ends, which does not begin with `-`, "
            "does not end in .yaml or .yml, and is no number"
        )
        raise KdxError(f"`{new}` cannot be the name of a sweep", allowed=allowed)
    where = in_database(db)
    with open_to_write(db) as database:
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
    say(f"sweep `{sweep}` is `{new}` now; write `name: {_in_yaml(new)}` into {file or 'its grid'} too,")
    say(f"or kdx sweep plans a sweep `{sweep}` again, which shares these runs")


def _is_fit(name: str) -> bool:
    """Whether a command line takes the name for that of a sweep: not for an option, a grid's file or a run's number."""
    active = any(unicodedata.category(sign) in _ACTIVE for sign in name)
    other = name.startswith("-") or name.endswith((".yaml", ".yml")) or (name.isascii() and name.isdigit())
    return name == name.strip() and not active and not other


def _in_yaml(name: str) -> str:
    """The name as a grid has to write it, in quotes where YAML would read something else."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    # Every text of JSON is one of YAML.
    return name if plain else json_text.dumps(name, ensure_ascii=False)
