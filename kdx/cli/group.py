"""A group of commands whose help starts fast."""

from typing import Any

from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """Typer's group, whose own help option is False rather than None while it is not given.

    Typer uses a boolean directly but converts a None with pydantic, which takes longer than all the rest of a command's
    help.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option
