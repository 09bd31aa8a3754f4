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


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_is_shown_in_panels_by_what_a_user_is_doing(arguments):
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert any("Usage:" in line for line in lines)
    panels = [line.strip("╭╮─ ") for line in lines if line.startswith("╭")]
    assert panels == ["Options", "Run", "Look", "Keep", "Extend"]


def test_help_of_a_group_is_shown():
    output = CliRunner().invoke(app, ["data", "--help"]).output
    assert "Usage:" in output and "Commands" in output


def test_help_is_not_shown_unasked():
    small = typer.Typer(cls=CommandGroup)
    small.command("one")(lambda: print("done"))
    small.command("two")(lambda: None)
    assert CliRunner().invoke(small, ["one"]).output == "done\n"
