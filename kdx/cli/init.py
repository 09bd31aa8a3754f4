"""`kdx init`: copies the shipped grids into a folder, to change and run them."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, say
from kdx.cli.wording import count_of
from kdx.errors import KdxError, did_you_mean, of_the_machine
from kdx.files import filling, give_name
from kdx.grid import shipped
from kdx.grid.extends import extended
from kdx.shell import kdx_command

FIRST = "quickstart"
"""The grid to start with, if it is copied."""


def init(
    folder: Annotated[str, typer.Argument(help="The folder to copy them to.")] = "experiments",
    grids: Annotated[
        list[str] | None,
        typer.Option(
            "--grid", autocompletion=completion.grids, help="Only this grid, with those that it extends; repeatable."
        ),
    ] = None,
) -> None:
    """Copy the shipped grids into a folder. Existing files stay as they are.

    Example: kdx init my-experiments --grid quickstart
    """
    known = shipped.names()
    for name in grids or ():
        if name not in known:
            raise KdxError(f"no shipped grid `{name}`", allowed=known, hint=did_you_mean(name, known))
    texts: dict[Path, str] = {}
    for name in grids or ():
        extended(shipped.find(name), [], texts)
    by_file = {shipped.find(name).resolve(): name for name in known}
    targets = {name: Path(folder) / f"{name}.yaml" for name in [by_file[file.resolve()] for file in texts] or known}
    copied = 0
    for name, target in targets.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(target):
                say(f"{target} is there already and stays as it is")
                continue
            with filling(target.parent) as copy:
                shutil.copyfile(shipped.find(name), copy)
                give_name(copy, target)
        except OSError as error:
            other = KdxError(f"cannot write: {error.strerror}", place=str(target), hint="name another folder")
            # Copying names the shipped file, which is not at fault.
            raise of_the_machine(OSError(error.errno, error.strerror), str(target)) or other from error
        out(str(target))
        copied += 1
    first = targets.get(FIRST) or next(iter(targets.values()))
    say(f"{count_of(copied, 'grid')} copied; next: {kdx_command('plan', str(first))}")
