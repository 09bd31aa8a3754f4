"""Groups of commands have help that starts fast; that it loads nothing heavy is tested in test_architecture."""

import subprocess
import sys
from itertools import pairwise

import pytest
from looked_after import refused
from typer.main import get_command
from typer.testing import CliRunner
from verbs import all_commands

from kdx.cli.app import Kdx, app
from kdx.report.writers import Format


def test_the_help_of_each_command_begins_with_the_line_that_its_group_shows():
    root = get_command(app)
    helps = {name: " ".join(root.load(name).help.split()) for name in Kdx.verbs}
    assert {name: text for name, text in helps.items() if not text.startswith(Kdx.verbs[name].help)} == {}


def test_each_command_is_explained_in_one_line_of_80_columns():
    assert {name: verb.help for name, verb in Kdx.verbs.items() if len(verb.help) > 64 or verb.help[-1] != "."} == {}


def test_the_help_of_every_command_has_an_example_and_its_common_options_in_a_panel():
    panels = {"--db": "Common", "--files": "Common", "--json": "Common", "--workers": "Hardware", "--time": "Slurm"}
    wrong = []
    for name, command in all_commands():
        if not hasattr(command, "commands") and f"Example: {name}" not in command.help:
            wrong.append(name)
        wrong += [
            (name, each.opts[0])
            for each in command.params
            if each.opts[0] in panels and each.rich_help_panel != panels[each.opts[0]]
        ]
    assert wrong == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "kdx: there is no command `nonsense`\n"),
        (["stats"], "kdx: there is no command `stats`\n  hint: did you mean `status`?\n  allowed: init, plan, "),
        (["db", "chek"], "kdx db: there is no command `chek`\n  allowed: check, backup, import\n"),
        (["sweep"], "kdx sweep: GRID is missing\n  hint: kdx sweep --help"),
        (["plan", "x", "--budge", "3"], "kdx plan: there is no option `--budge`\n  hint: did you mean `--budget`?"),
        (["sweep", "x", "-w", "0"], "kdx sweep: --workers `0`\n  allowed: greater than or equal to 1\n"),
        (["gc", "--keep", "some"], "kdx gc: --keep `some`\n  allowed: all, selected, none\n"),
        (
            ["claims", "--format", "markdwn"],
            f"kdx claims: --format `markdwn`\n  allowed: {', '.join(Format)}",
        ),
        (
            ["report", "--format", "tex"],
            f"kdx report: --format `tex`\n  allowed: {', '.join(Format)}\n  hint: did you mean `latex`",
        ),
        (["gc", "x"], "kdx gc: unexpected argument `x`\n  hint: kdx gc --help"),
        (["serve", "a.db"], "kdx serve: unexpected argument `a.db`\n  hint: name a database with --db a.db"),
        (["train", "x"], "kdx: there is no command `train`\n  hint: did you mean `sweep`?"),
        (["dashboard"], "kdx: there is no command `dashboard`\n  hint: did you mean `serve`?"),
        (["report", "-o", "x"], "kdx report: there is no option `-o`\n  hint: it prints its result; add > FILE"),
        (["sweep", "x", "--gpus", "1"], "kdx sweep: there is no option `--gpus`\n  hint: --devices chooses GPUs"),
        (["plan", "x", "--max_steps", "9"], "kdx plan: there is no option `--max_steps`\n  hint: kdx counts optimiser"),
        (["plan", "-c", "x"], "kdx plan: there is no option `-c`\n  hint: a grid is named without an option"),
        (["show", "--out", "x"], "kdx show: there is no option `--out`\n  hint: did you mean `--to`?"),
        (["sweep", "-o", "x"], "kdx sweep: there is no option `-o`\n  hint: kdx sweep --help"),
        (["sweep", "--json"], "kdx sweep: there is no option `--json`\n  hint: kdx sweep --help"),
        (["retry", "--on-end", "x"], "kdx retry: there is no option `--on-end`\n  hint: kdx retry --help"),
        (["check", "--fix"], "kdx check: there is no option `--fix`\n  hint: kdx check --help"),
        (["sweep", "x", "-w", "two"], "kdx sweep: --workers `two`\n  allowed: a whole number\n"),
    ],
)
def test_a_wrong_command_line_has_one_message_with_place_value_allowed_and_hint(arguments, message):
    fault = refused(*arguments)
    assert str(fault).startswith(message) and fault.exit_code == 2


@pytest.mark.parametrize(("variable", "value"), [("KDX_MIRROR", "comet"), ("KDX_WORKERS", "two")])
def test_a_wrong_value_of_a_variable_names_the_variable(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    fault = refused("sweep", "quickstart")
    assert fault.problem == f"{variable} `{value}`" and fault.hint.startswith(f"unset {variable}, or ")


def test_every_name_that_other_programs_have_for_a_command_leads_to_one():
    meant = [name for names in Kdx.elsewhere.values() for name in names.split()]
    assert len(set(meant)) == len(meant) and not Kdx.verbs.keys() & {*meant}
    assert Kdx.elsewhere.keys() <= Kdx.verbs.keys()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["query", "--help"], set()), (["query", "--tabel"], set()), (["query", "--schema"], {"kdx.cli.query"})],
)
def test_only_the_module_of_a_command_that_runs_is_imported(arguments, expected):
    script = (
        f"import sys; sys.argv = {['kdx', *arguments]!r}\n"
        "from kdx.cli.app import Kdx, main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "modules = {f'kdx.cli.{name}' for name in Kdx.verbs}\n"
        f"assert modules & set(sys.modules) == {expected!r}, modules & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_fits_on_a_screen_in_panels_by_what_a_user_is_doing(arguments):
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert lines[0] == "Usage: kdx [OPTIONS] COMMAND [ARGS]..."
    assert [line for line in lines if line.endswith(":")] == ["Run:", "Look:", "Keep:", "Extend:"]
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {*Kdx.verbs}
    assert len(lines) <= 45 and max(map(len, lines)) <= 80
    assert lines[-2] == "Options: --version, --install-completion, --show-completion, --help"


def test_the_paragraphs_of_a_help_fill_the_terminal_and_flags_have_no_type(monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    output = CliRunner().invoke(app, ["check", "--help"]).output
    above, _, below = output.partition("Arguments")
    paragraphs = [paragraph.splitlines() for paragraph in above.split(f"{' ' * 80}\n")]
    short = [
        line
        for lines in paragraphs
        for line, after in pairwise(lines)
        if len(f"{line.rstrip()} {after.split()[0]}") < 80
    ]
    assert short == []
    assert "--json" in below and "bool" not in below
