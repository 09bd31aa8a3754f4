"""A group of commands whose help starts fast."""

from typing import Any

from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """Typer's group, whose own help option is False rather than None while it is not given.

    Typer takes a boolean as it is but reads a None by way of pydantic, which costs more than all the rest of a
    command's help.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option
