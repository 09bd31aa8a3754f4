"""Every group of commands has help that starts fast; that it loads nothing heavy is tested in test_architecture."""

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.cli.group import CommandGroup


def groups(command):
    if hasattr(command, "commands"):
        yield command
        for inner in command.commands.values():
            yield from groups(inner)


@pytest.mark.parametrize("group", [*groups(get_command(app))], ids=lambda group: group.name)
def test_every_group_is_one_of_ours(group):
    assert isinstance(group, CommandGroup)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["data", "--help"], []])
def test_help_is_shown(arguments):
    result = CliRunner().invoke(app, arguments)
    assert "Usage:" in result.output and "Commands" in result.output


def test_help_is_not_shown_unasked():
    small = typer.Typer(cls=CommandGroup)
    small.command("one")(lambda: print("done"))
    small.command("two")(lambda: None)
    assert CliRunner().invoke(small, ["one"]).output == "done\n"
