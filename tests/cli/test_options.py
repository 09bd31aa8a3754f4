"""What options mean, and how else they can be set."""

import shlex
from pathlib import Path

import pytest
from each import each
from grids import TINY
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from kdx.cli import options
from kdx.cli.app import app
from kdx.cli.options import DATABASE, MOST_SEEDS, in_database, in_database_with_parts, name_folder, seeds_of
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from kdx.store.place_of_files import FILES

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


@pytest.mark.parametrize("text", ["initialisation=3,order=2", "{initialisation: 3, order: 2}"])
def test_seeds_of_sources_are_refused_with_where_to_write_them(tmp_path, text):
    with pytest.raises(KdxError) as caught:
        seeds_of(text)
    assert caught.value.hint is not None
    option, setting = shlex.split(caught.value.hint.partition(" gives")[0])
    (tmp_path / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": 1})
    assert option == "--set" and len(load_grid(tmp_path / "grid.yaml", given=[setting]).seeds) == 6


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
    for name, command in commands(get_command(app)):
        words = {word for each in command.params for word in each.opts}
        assert ("--db" in words) <= ("--files" in words), name


ACTS = {
    "--apply",
    "--failed",
    "--fix",
    "--if-changed",
    "--part",
    "--parts",
    "--keep",
    "--replace",
    "--budget",
    "--slurm",
    "--set",
    "--unknown",
    "--unplanned",
    "--curves",
    "--diverged",
    "--stale",
    "--tag",
    "--undo",
    "--untag",
    "--why",
    "--yes",
    "kdx rm --runs",
    "--as-generation",
    "--rename",
    "--with-files",
    "--plans",
    "kdx show --to",
    "kdx tune --write",
    "kdx plan --probe",
    "kdx plan --against",
    "kdx logs --follow",
    "kdx logs --job",
    "kdx trace --grid",  # of kdx init it says which
}
"""Options that let something happen which is refused without them, or make a command another one, of any command where
none is named; set once for all, they would guard nothing."""


def commands(command, name="kdx"):
    yield name, command
    for inner, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {inner}")


def test_the_options_that_act_are_options():
    words = [
        (name, word) for name, command in commands(get_command(app)) for each in command.params for word in each.opts
    ]
    assert {*(word for _, word in words), *map(" ".join, words)} >= ACTS


@each(
    "asked",
    [
        (name, command, option)
        for name, command in commands(get_command(app))
        for option in command.params
        if option.opts[0].startswith("--")
        and not getattr(option, "hidden", False)
        and option.name not in ("help", "version", "install_completion", "show_completion")
    ],
    told=lambda asked: f"{asked[0]} {asked[2].opts[0]}",
)
def test_every_option_but_those_that_act_can_be_set_in_the_environment_and_says_so(asked):
    name, command, option = asked
    assert option.help
    if ACTS & {option.opts[0], f"{name} {option.opts[0]}"}:
        assert option.envvar is None
        return
    name = option.opts[0].strip("-").replace("-", "_").upper()
    # Exports have formats of their own, so that one variable for both would break one of them.
    own = command.name == "export" and name == "FORMAT"
    assert option.envvar == f"KDX_{'EXPORT_' if own else ''}{name}"


def test_a_suggested_command_names_the_folder_of_custom_components(own_kernel, monkeypatch):
    monkeypatch.chdir(own_kernel)
    plan = load_grid("grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        assert in_database_with_parts("runs.db", database, plan.name) == " --parts ."
        monkeypatch.chdir(own_kernel.parent)
        assert in_database_with_parts("runs.db", database, plan.name) == " --parts own"
        (own_kernel / "my_kernels.py").rename(own_kernel.parent / "my_kernels.py")
        assert in_database_with_parts("runs.db", database, plan.name) == " --parts FOLDER"
        assert in_database_with_parts("runs.db", database, plan.name, Path()) == " --parts ."
        Path("plain.yaml").write_text(TINY % {"steps": 5, "seeds": 1})
        plain = load_grid("plain.yaml")
        recording.register(database, plain, plain.grid)
        assert in_database_with_parts("runs.db", database, plain.name) == ""
