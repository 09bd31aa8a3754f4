"""What options mean, and how else they can be set."""

import re
from pathlib import Path

import pytest
from grids import TINY
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner
from verbs import all_commands

from kdx.cli import options
from kdx.cli.app import app
from kdx.cli.options import (
    DATABASE,
    MOST_SEEDS,
    in_database,
    in_database_with_components,
    name_folder,
    retry_runs,
    seeds_of,
)
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from kdx.store.refusals import FILES

numbers = st.lists(st.integers(0, 999_999_999), min_size=1, max_size=6, unique=True)


@given(st.integers(1, 2000))
def test_a_number_is_so_many_seeds_from_zero(count):
    assert seeds_of(str(count)) == tuple(range(count))


@given(numbers, st.sampled_from([",", ", ", " ,"]))
def test_a_list_is_those_seeds_in_that_order(seeds, comma):
    assert seeds_of(comma.join(map(str, seeds)) + ("," if len(seeds) == 1 else "")) == tuple(seeds)


def test_without_the_option_the_grid_decides():
    assert seeds_of(None) is None


@given(st.text(max_size=12))
def test_anything_is_seeds_or_a_usage_error(text):
    try:
        seeds = seeds_of(text)
    except KdxError as fault:
        assert fault.exit_code == 2
    else:
        assert seeds and len(set(seeds)) == len(seeds) and min(seeds) >= 0


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5", "1e3", "3,3", ",", ",1", "1,,2", "٣", "a", str(MOST_SEEDS + 1), "9" * 30]
)
def test_what_are_no_seeds_is_refused(text):
    with pytest.raises(KdxError, match="allowed: a number such as 5, or different seeds such as 0,1,7"):
        seeds_of(text)


@pytest.mark.parametrize(
    ("database", "option"),
    [(DATABASE, ""), ("my runs.db", " --db 'my runs.db'"), ("sqlite:///x.db", " --db sqlite:///x.db")],
)
def test_a_suggested_command_names_the_database_where_it_must(database, option):
    assert in_database(database) == option


@pytest.mark.parametrize(
    ("word", "hint"), [("json", "--json writes JSON, for programs"), ("markdwn", "did you mean `markdown`?")]
)
def test_a_format_that_there_is_not_is_refused_with_what_there_is(monkeypatch, tmp_path, word, hint):
    monkeypatch.chdir(tmp_path)
    for command in ("report", "claims"):
        with pytest.raises(KdxError) as caught:
            CliRunner().invoke(app, [command, "--format", word], catch_exceptions=False)
        assert caught.value.exit_code == 2 and caught.value.problem == f"--format `{word}`"
        assert caught.value.hint == hint and "latex" in str(caught.value)


def test_a_suggested_command_names_the_folder_of_files_that_the_environment_did_not(monkeypatch, tmp_path):
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    name_folder(None)
    assert in_database(DATABASE) == ""
    name_folder(Path("big disk"))
    assert in_database("x.db") == f" --db x.db --files '{tmp_path}/big disk'"
    monkeypatch.setattr(options, "_FILES_BEFORE", "big disk")
    assert in_database("x.db") == " --db x.db"


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
    "--max-runs",
    "--hang-after",
    "--format",
    "--partition",
    "--account",
    "--qos",
    "--sbatch",
    "--slurm-python",
    "--slurm-setup",
}
"""Options that the environment may set. Any other acts, destroys, or selects what is computed or shown."""


def test_the_environment_sets_only_options_that_describe_a_place_or_a_habit():
    wrong = []
    for name, command in all_commands():
        for option in command.params:
            word = option.opts[0]
            # Exports have formats of their own, so that one variable for both would break one of them.
            variable = f"KDX_{word.strip('-').replace('-', '_').upper()}" if word in PLACES_AND_HABITS else None
            if option.envvar != (None if (name, word) == ("kdx export", "--format") else variable):
                wrong.append((name, word, option.envvar))
    assert wrong == []


def test_the_reference_lists_every_variable():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (.*?) \|", page.partition("| variable |")[2], re.MULTILINE))
    variables = {option.envvar for _, command in all_commands() for option in command.params} - {None}
    assert variables | {"KDX_DATA", "KDX_ALLOW_NETWORK"} == set(re.findall(r"KDX_\w+", " ".join(listed)))


def test_every_option_says_what_it_is_for():
    options = [(name, option) for name, command in all_commands() for option in command.params]
    shown = [(name, option) for name, option in options if option.opts[0][0] == "-" and not option.hidden]
    assert [(name, option.opts) for name, option in shown if not option.help] == []


def test_a_suggested_command_names_the_folder_of_custom_components(own_kernel, monkeypatch):
    monkeypatch.chdir(own_kernel)
    plan = load_grid("grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        assert in_database_with_components("runs.db", database, plan.name) == ""
        assert in_database_with_components("runs.db", database, plan.name, Path()) == " --components ."
        monkeypatch.chdir(own_kernel.parent)
        assert in_database_with_components("runs.db", database, plan.name) == ""
        Path("elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        assert (
            in_database_with_components("../runs.db", database, plan.name)
            == f" --components {own_kernel} --db ../runs.db"
        )
        (own_kernel / "my_kernels.py").unlink()
        assert in_database_with_components("../runs.db", database, plan.name) == " --components FOLDER --db ../runs.db"
        assert retry_runs("../runs.db", database, [1]) == "kdx retry 1 --components FOLDER --db ../runs.db"
        Path("plain.yaml").write_text(TINY % {"steps": 5, "seeds": 1})
        plain = load_grid("plain.yaml")
        recording.register(database, plain, plain.grid)
        assert in_database_with_components("runs.db", database, plain.name) == ""
