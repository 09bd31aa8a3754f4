"""What options mean, and how else they can be set."""

import re
from pathlib import Path

import pytest
from looked_after import planned, refused, typed
from verbs import all_commands


def test_every_command_that_takes_a_database_takes_the_folder_of_its_files():
    for name, command in all_commands():
        words = {word for each in command.params for word in each.opts}
        assert ("--db" in words) <= ("--files" in words), name


PLACES_AND_HABITS = {
    "--db",
    "--files",
    "--workers",
    "--per-gpu",
    "--devices",
    "--format",
    "--mirror",
    "--slurm-setup",
}
"""Options that the environment may set. Any other acts, destroys, or selects what is computed or shown."""


def test_the_environment_sets_only_options_that_describe_a_place_or_a_habit():
    wrong = []
    for name, command in all_commands():
        for option in command.params:
            word = option.opts[0]
            variable = f"KDX_{word.strip('-').replace('-', '_').upper()}" if word in PLACES_AND_HABITS else None
            if (name, word) == ("kdx export", "--format"):  # it says what is written, and where
                variable = None
            if option.envvar != variable:
                wrong.append((name, word, option.envvar))
    assert wrong == []


def test_the_reference_lists_every_variable():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "reference" / "variables.md").read_text(encoding="utf-8")
    sources = "".join(file.read_text(encoding="utf-8") for file in (root / "kdx").rglob("*.py"))
    # Those of a job are between kdx and its own script.
    variables = set(re.findall(r'"(KDX_(?!JOB_)[A-Z_]+)"', sources))
    assert variables == set(re.findall(r"^\| `(KDX_\w+)`", page, re.MULTILINE))


def test_every_option_says_what_it_is_for():
    options = [(name, option) for name, command in all_commands() for option in command.params]
    shown = [(name, option) for name, option in options if option.opts[0][0] == "-" and not option.hidden]
    assert [(name, option.opts) for name, option in shown if not option.help] == []


def test_what_is_asked_of_slurm_without_it_is_refused(monkeypatch):
    monkeypatch.setenv("KDX_SLURM_SETUP", "module load cuda")
    planned(1)
    assert refused("sweep", "grid.yaml", "--time", "10").problem == "--time without --slurm"
    assert "exclude each other" in refused("sweep", "grid.yaml", "--slurm", "--budget", "1h").problem
    assert "exclude each other" in refused("sweep", "grid.yaml", "--slurm", "--devices", "none").problem
    assert "kdx sets array itself" in refused("sweep", "grid.yaml", "--slurm", "--sbatch=--array=1").problem


def test_no_variable_keeps_a_sweep_from_training(monkeypatch):
    """An option that acts is given on the command line alone, whatever the environment has."""
    planned(1)
    started = []
    monkeypatch.setattr("kdx.cli.running.Runner.do", lambda *_, **__: started.append(1) or 0)
    for _, command in all_commands():
        for option in command.params:
            variable = f"KDX_{option.name.strip('_').upper()}"
            if option.envvar != variable:
                monkeypatch.setenv(variable, "1")
    assert typed("sweep", "grid.yaml").exit_code == 0 and started == [1]


@pytest.mark.parametrize("verb", ["sweep", "resume", "retry", "plan", "worker", "evaluate"])
def test_the_help_of_a_command_that_computes_fits_on_a_screen(verb, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 120)
    assert len(typed(verb, "--help").stdout.splitlines()) <= 47
