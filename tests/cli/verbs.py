"""Every command of kdx, with the modules that the command line imports only when one is called."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from kdx.cli.app import app


def all_commands(command: Any = None, name: str = "kdx") -> Iterator[tuple[str, Any]]:
    """Yield each command, and each group before its commands, with the words that a user types for it."""
    command = command or get_command(app)
    yield name, command
    for inner, stub in getattr(command, "commands", {}).items():
        yield from all_commands(command.load(inner) if hasattr(command, "load") else stub, f"{name} {inner}")
