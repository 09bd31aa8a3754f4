"""Groups of commands have help that starts fast; that it loads nothing heavy is tested in test_architecture."""

import subprocess
import sys

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner
from verbs import all_commands

from kdx.cli.app import Kdx, app
from kdx.cli.group import CommandGroup


def test_every_group_is_one_of_ours():
    groups = [command for _, command in all_commands() if hasattr(command, "commands")]
    assert {group.name for group in groups} >= {"kdx", "db", "data"}
    assert all(isinstance(group, CommandGroup) for group in groups)


def test_the_help_of_each_command_begins_with_the_line_that_its_group_shows():
    root = get_command(app)
    helps = {name: " ".join(root.load(name).help.split()) for name in Kdx.verbs}
    assert {name: text for name, text in helps.items() if not text.startswith(Kdx.verbs[name].help)} == {}


def test_each_command_is_explained_in_one_line_of_80_columns():
    assert {name: verb.help for name, verb in Kdx.verbs.items() if len(verb.help) > 64 or verb.help[-1] != "."} == {}


def test_calling_a_command_imports_no_other():
    script = (
        "import sys; sys.argv = ['kdx', 'query', '--help']\n"
        "from kdx.cli.app import Kdx, main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "modules = {verb.function.partition(':')[0] for verb in Kdx.verbs.values()}\n"
        "assert modules & set(sys.modules) == {'kdx.cli.query'}, modules & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_fits_on_a_screen_in_panels_by_what_a_user_is_doing(arguments):
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert lines[0] == "Usage: kdx [OPTIONS] COMMAND [ARGS]..."
    assert [line for line in lines if line.endswith(":")] == ["Run:", "Look:", "Keep:", "Extend:"]
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {*Kdx.verbs}
    assert len(lines) <= 46 and max(map(len, lines)) <= 80


def test_help_of_a_group_is_shown():
    output = CliRunner().invoke(app, ["data", "--help"]).output
    assert "Usage:" in output and "Commands" in output


def test_help_is_not_shown_unasked():
    small = typer.Typer(cls=CommandGroup)
    small.command("one")(lambda: print("done"))
    small.command("two")(lambda: None)
    assert CliRunner().invoke(small, ["one"]).output == "done\n"
