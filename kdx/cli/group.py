"""A group of commands whose help starts fast: a command's module is imported when it is called."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


@dataclass(frozen=True)
class Verb:
    """What a group knows of a command before its module is imported."""

    function: str
    """`module:function`, or `module:app` for a group of commands."""
    help: str
    """The first sentence of the command's own help, which a test compares."""
    panel: str


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


class LazyGroup(CommandGroup):
    """A group of `verbs`. Help and completion list them without their modules; calling one imports it."""

    verbs: ClassVar[Mapping[str, Verb]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, verb in self.verbs.items():
            self.add_command(TyperCommand(name, help=verb.help))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, in panels: without frames all of them fit on one screen."""
        formatter.write(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n\n{self.help}\n")
        width = max(map(len, self.verbs)) + 2
        for panel in dict.fromkeys(verb.panel for verb in self.verbs.values()):
            formatter.write(f"\n{panel}:\n")
            for name, verb in self.verbs.items():
                if verb.panel == panel:
                    formatter.write(f"  {name:{width}}{verb.help}\n")
        options = ", ".join(option.opts[0] for option in self.get_params(ctx) if option.opts[0].startswith("-"))
        formatter.write(f"\nOptions: {options}\n{self.epilog}\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name is not None and name in self.verbs else command, rest

    def load(self, name: str) -> Any:
        """Return the command, with its arguments and options."""
        module, _, attribute = self.verbs[name].function.partition(":")
        function = getattr(import_module(module), attribute)
        if isinstance(function, typer.Typer):
            group = get_command(function)
            group.name = name
            return group
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(function)
        return get_command(alone)
