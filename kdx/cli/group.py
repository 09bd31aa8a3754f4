"""Groups of commands: a command's module is imported when it is called, and usage errors read like all others."""

import ast
import functools
import gc
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kdx.errors import KdxError, did_you_mean

UsageError: Any = typer.BadParameter.__mro__[1]
"""The class of all errors in a command line, which Typer does not name."""
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")


@dataclass(frozen=True)
class Flags:
    """Marks a parameter of a command that stands for several options.

    In `Annotated[Context, Flags(make)]` the options are the parameters of `make`, which returns the argument.
    """

    make: Callable[..., Any]


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of each `Flags` in the place of its parameter, as Typer reads them."""
    makers: dict[str, Callable[..., Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        flags = [each for each in getattr(parameter.annotation, "__metadata__", ()) if isinstance(each, Flags)]
        if flags:
            makers[parameter.name] = flags[0].make
            parameters += inspect.signature(flags[0].make).parameters.values()
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        arguments = {
            name: make(**{flag: given.pop(flag) for flag in inspect.signature(make).parameters})
            for name, make in makers.items()
        }
        command(**given, **arguments)

    # By keyword, as Typer calls it, so that one without a default may follow others.
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


class _Help:
    """How help is shown: its paragraphs fill the terminal, and an option without a value has no type beside it."""

    def __init__(self, *args: Any, help: str | None = None, **attributes: Any) -> None:
        paragraphs = inspect.cleandoc(help or "").split("\n\n")
        super().__init__(*args, help="\n\n".join(" ".join(text.split()) for text in paragraphs), **attributes)  # type: ignore[call-arg]

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            # Typer uses a boolean directly but converts None, the default, with pydantic, which takes longer than all
            # the rest of a command's help.
            option.default = False
        return option


class Command(_Help, TyperCommand):
    """A command."""


class CommandGroup(_Help, TyperGroup):
    """A group, whose help is shown if no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Command → the names that other programs have for it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing:
            meant = [name for name, names in self.elsewhere.items() if args[0] in names.split()]
            hint = f"did you mean `{meant[0]}`?" if meant else did_you_mean(args[0], known)
            hint = hint or f"{ctx.command_path} --help explains each"
            raise KdxError(f"there is no command `{args[0]}`", place=ctx.command_path, allowed=known, hint=hint)
        return super().resolve_command(ctx, args)


def group_of(help: str, epilog: str, **commands: Callable[..., None]) -> typer.Typer:
    """Return a group of commands by their names; an underscore ends a name that Python reserves."""
    group = typer.Typer(cls=CommandGroup, help=help, epilog=epilog, add_completion=False)
    for name, command in commands.items():
        group.command(name.rstrip("_"), cls=Command)(with_flags(command))
    return group


def signature_of(name: str, around: str | None = None) -> Any:
    """Return a command, or a group of them, with its options; calling it imports its module and runs it there.

    Only the statements that define the signature are executed. So help, completion and a wrong command line do not wait
    for what the command itself needs, although its module imports that at its top.

    Args:
        name: the command; its module defines the names in a signature at its top level.
        around: as `Verb.around`.
    """
    module = f"kdx.cli.{name}"
    loader: Any = find_spec(module).loader  # type: ignore[union-attr]
    tree = ast.parse(loader.get_source(module))
    definitions: dict[str, ast.stmt] = {}
    for statement in tree.body:
        names: list[str] = []
        match statement:
            case ast.FunctionDef():
                # Its help is the docstring.
                statement.body[1:] = ast.parse(f"return call({statement.name!r}, locals())").body
                names = [statement.name]
            case ast.ClassDef():
                names = [statement.name]
            case ast.Import() | ast.ImportFrom():
                names = [imported.asname or imported.name for imported in statement.names]
            case ast.Assign():
                names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        definitions |= dict.fromkeys(names, statement)
    needed: set[ast.stmt] = set()
    attribute = name if name in definitions else "app"
    waiting = [attribute]
    while waiting:
        statement = definitions.get(waiting.pop())
        if statement is not None and statement not in needed:
            needed.add(statement)
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    tree.body = [statement for statement in tree.body if statement in needed]

    def call(function: str, arguments: dict[str, Any]) -> None:
        with getattr(import_module("kdx.cli.beside"), around)(**arguments) if around else nullcontext():
            run = getattr(import_module(module), function)
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            run(**arguments)

    namespace: dict[str, Any] = {"__name__": module, "call": call}
    exec(compile(tree, module, "exec"), namespace)
    return namespace[attribute]


@dataclass(frozen=True)
class Verb:
    """What a group knows of a command before its module `kdx.cli.NAME` is imported, which has it as NAME or `app`."""

    help: str
    """The first sentence of the command's own help, which a test compares."""
    panel: str
    around: str | None = None
    """Function of `kdx.cli.beside` that returns a context manager for the command's arguments; it is entered before the
    command's module is imported."""


class LazyGroup(CommandGroup):
    """A group of `verbs`. Help and completion list them without their modules; calling one imports it."""

    verbs: ClassVar[Mapping[str, Verb]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, verb in self.verbs.items():
            self.add_command(TyperCommand(name, help=verb.help))

    def main(self, args: Any = None, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command.

        Raises:
            KdxError: the command line is wrong.
        """
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except UsageError as error:
            raise usage_error(error) from None
        except typer.Abort:
            code = 130
        if standalone_mode:
            sys.exit(code)
        return code

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, in panels: without frames all of them fit on one screen."""
        formatter.write(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n\n{self.help}\n")
        width = max(map(len, self.verbs)) + 2
        for panel in dict.fromkeys(verb.panel for verb in self.verbs.values()):
            formatter.write(f"\n{panel}:\n")
            for name, verb in self.verbs.items():
                if verb.panel == panel:
                    formatter.write(f"  {name:{width}}{verb.help}\n")
        options = ", ".join(
            max(option.opts, key=len) for option in self.get_params(ctx) if option.opts[0].startswith("-")
        )
        formatter.write(f"\nOptions: {options}\n{self.epilog}\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name and name in self.verbs else command, rest

    def load(self, name: str) -> Any:
        """Return the command, with its arguments and options."""
        function = signature_of(name, self.verbs[name].around)
        if isinstance(function, typer.Typer):
            group = get_command(function)
            group.name = name
            return group
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name, cls=Command)(with_flags(function))
        return get_command(alone)


def usage_error(error: Any) -> KdxError:
    """Return what is wrong with a command line in the form of all messages."""
    place = error.ctx.command_path if error.ctx else "kdx"
    message, hint = error.message.rstrip("."), f"{place} --help"
    options = [name for each in error.ctx.command.params for name in each.opts] if error.ctx else []
    if (parameter := getattr(error, "param", None)) is None:
        problem = message[:1].lower() + message[1:]
        if (option := getattr(error, "option_name", None)) and message.startswith("No such option"):
            problem, hint = f"there is no option `{option}`", _instead(option, options) or hint
        elif extra := _EXTRA.fullmatch(message):
            problem = f"unexpected argument `{extra[1]}`"
            if "--db" in options and extra[1].endswith((".db", ".sqlite")):
                hint = f"name a database with --db {extra[1]}"
        return KdxError(problem, place=place, hint=hint)
    name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar or parameter.name.upper()
    source = error.ctx and error.ctx.get_parameter_source(parameter.name)
    if source and source.name == "ENVIRONMENT":
        name, hint = parameter.envvar, f"unset {parameter.envvar}, or see {hint}"
    if not message or message.startswith("Missing"):
        return KdxError(f"{name} is missing", place=place, hint=hint)
    # pydantic converts the value, and knows it.
    causes: list[Any] = getattr(error.__cause__, "errors", list)()
    value = str(causes[0]["input"]) if causes else ""
    allowed = message.rpartition(" is not one of ")[2].replace("'", "").removeprefix("Input should be ")
    allowed = allowed.partition(", unable to parse")[0].replace("a valid integer", "a whole number")
    known = allowed.split(", ")
    meant = {"tex": "latex", "md": "markdown"}.get(value)
    hint = f"did you mean `{meant}`?" if meant in known else did_you_mean(value, known) or hint
    return KdxError(f"{name} `{value}`" if causes else name, place=place, allowed=allowed, hint=hint)


_ELSEWHERE = {
    "epochs max-epochs steps max-steps": "kdx counts optimiser steps: --set training.steps=1000",
    "seed seeds": "seeds are a key of the grid: --set seeds=3",
    "lr learning-rate": "--set training.learning_rate=1e-3",
    "c config config-file grid": "a grid is named without an option: kdx sweep grid.yaml",
    "gpu gpus device cuda": "--devices chooses GPUs, of commands that train",
    "v verbose debug": "kdx logs RUN prints the whole log of a run",
    "V": "kdx --version",
}
"""Names that other programs have for options → what kdx has instead."""


def _instead(option: str, known: Sequence[str]) -> str | None:
    """Return a hint at what stands for an option that a command lacks."""
    names = {name.lstrip("-"): name for name in known if name.startswith("--")}
    if option in ("-o", "--out", "--output") and {"to", "json"} & names.keys():
        return "did you mean `--to`?" if "to" in names else "it prints its result; add > FILE"
    name = option.lstrip("-").replace("_", "-")
    if meant := next((hint for options, hint in _ELSEWHERE.items() if name in options.split()), None):
        return meant
    near = did_you_mean(name, names)
    return near and near.replace("`", "`--", 1)
