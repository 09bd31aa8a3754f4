"""`kdx init`: copy the shipped experiments out, to change and run them."""

from typing import Annotated

import typer

from kdx.cli.console import out, say


def init(
    folder: Annotated[str, typer.Argument(help="Where to put them.")] = "experiments",
    names: Annotated[list[str] | None, typer.Option("--grid", help="Only these; may stand several times.")] = None,
) -> None:
    """Copy the shipped experiments into a folder. What is there already stays as it is.

    Example: kdx init my-experiments --grid quickstart
    """
    import shutil
    from pathlib import Path

    from kdx.errors import KdxError
    from kdx.grid import shipped

    wanted = [shipped.find(name) for name in names] if names else [shipped.find(name) for name in shipped.names()]
    copied = 0
    for source in wanted:
        target = Path(folder) / source.relative_to(shipped.folder())
        if target.exists():
            say(f"{target} is there already and stays as it is")
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as error:
            raise KdxError(f"cannot write: {error.strerror}", place=str(target), hint="name another folder") from error
        out(str(target))
        copied += 1
    say(f"{copied} grids copied; next: kdx plan {Path(folder) / 'quickstart.yaml'}")
