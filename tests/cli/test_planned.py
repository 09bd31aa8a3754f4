"""A grid beside what is stored under its name: shown as the file says, or refused with what differs."""

import json
import random
from pathlib import Path

import pytest
from grids import TINY
from looked_after import DB, completed, refused, registered, typed

from kdx.cli.context import Context
from kdx.cli.planned import record_of, removed_runs
from kdx.errors import KdxError
from kdx.grid.difference import Contents, difference
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from tests.tune.searched import plan_of, search

GRID = TINY % {"steps": 10, "seeds": 2} + "axes: {kernel: [exponential, rbf]}\n"
TABLE = "tables: [{name: mine, caption: Kernels, rows: kernel}]\n"


pytestmark = pytest.mark.usefixtures("data_home")


@pytest.fixture
def swept() -> None:
    """GRID has been swept from `grid.yaml`."""
    for run in registered(GRID):
        completed(run, 2.0 + run.seed)


def test_a_grid_that_tunes_names_its_sweep_before_and_after_its_search(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan)
        assert record_of(database, "grid.yaml", Context("runs.db")).cells == ()
        found = search(database, plan, random.Random(0)).with_winners()
        recording.register(database, found)
        winners = [cell.id for cell in found.cells]
        assert [cell.id for cell in record_of(database, "grid.yaml", Context("runs.db")).cells] == winners
        write("grid.yaml", Path("grid.yaml").read_text().replace("steps: 40", "steps: 50"))
        with pytest.raises(KdxError, match=r"2 cells in the sweep only \(training.steps: 40 → 50\)"):
            record_of(database, "grid.yaml", Context("runs.db"))


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


@pytest.mark.usefixtures("swept")
def test_the_tables_of_a_file_are_shown_without_a_sweep():
    by_name = typed("report", "tiny").stdout
    assert typed("report", "grid.yaml").stdout == by_name
    write("grid.yaml", GRID + TABLE)
    assert typed("report", "tiny").stdout == by_name
    assert typed("report", "grid.yaml").stdout.startswith("mine: Kernels\n")
    shown = json.loads(typed("report", "grid.yaml", "--json").stdout)
    assert [(table["name"], len(table["cells"])) for table in shown["tables"]] == [("mine", 2)]


@pytest.mark.usefixtures("swept")
def test_so_are_its_labels_and_axes():
    write("grid.yaml", GRID.replace("axes: {kernel: [exponential, rbf]}", "axes: {how: {A: {kernel: rbf}, B: {}}}"))
    (table,) = json.loads(typed("report", "grid.yaml", "--json").stdout)["tables"]
    assert [cell["row"] for cell in table["cells"]] == [{"how": "A"}, {"how": "B"}]


@pytest.mark.usefixtures("swept")
def test_a_sweep_with_more_seeds_than_its_file_is_shown_whole():
    write("grid.yaml", GRID.replace("seeds: 2", "seeds: [1]"))
    assert "n = 2 seeds" in " ".join(typed("report", "grid.yaml").stdout.split())


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rbf", "linear"), "1 cell in the grid only, 1 cell in the sweep only (kernel: rbf → linear)"),
        ((", rbf", ""), "1 cell in the sweep only (kernel: without rbf)"),
        (("rbf]", "rbf, linear]"), "1 cell in the grid only (kernel: also linear)"),
        (("seeds: 2", "seeds: 4"), "seeds: also 2, 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("command", [["report"], ["claims", "tsai2019", "--sweep"]], ids=["tables", "claims"])
def test_a_file_that_is_not_what_was_swept_is_refused_with_the_difference(change, message, command):
    write("grid.yaml", GRID.replace(*change))
    refusal = refused(*command, "grid.yaml")
    assert refusal.exit_code == 2
    assert str(refusal) == (
        f"grid.yaml: sweep `tiny` in runs.db was not planned from this grid as it is now: {message}\n"
        "  hint: kdx sweep grid.yaml computes this grid; kdx report tiny shows what was planned"
    )


@pytest.mark.usefixtures("swept")
def test_another_grid_of_the_same_name_is_not_shown_as_this_one():
    write("other.yaml", GRID.replace("steps: 10", "steps: 80"))
    assert refused("report", "other.yaml").hint == (
        "kdx sweep other.yaml, under another `name:`, computes this grid; kdx report tiny shows what was planned"
    )


@pytest.mark.usefixtures("swept")
def test_a_file_that_was_never_swept_says_so():
    write("grid.yaml", GRID.replace("name: tiny", "name: tinny"))
    assert str(refused("report", "grid.yaml")) == (
        "grid.yaml: this grid was not swept yet: there is no sweep `tinny` in runs.db\n"
        "  allowed: tiny\n"
        "  hint: kdx sweep grid.yaml computes it; or did you mean `tiny`?"
    )


@pytest.mark.usefixtures("swept")
def test_another_grid_does_not_take_the_place_of_a_sweep(ran):
    write("other.yaml", GRID.replace("steps: 10", "steps: 80"))
    before = DB.read_bytes()
    refusal = refused("sweep", "other.yaml")
    assert (refusal.exit_code, ran, DB.read_bytes() == before) == (2, [], True)
    assert str(refusal) == (
        f"other.yaml: sweep `tiny` in runs.db is another grid's ({Path('grid.yaml').resolve()}):"
        " the two share no cell (training.steps: 10 → 80)\n"
        "  hint: write another `name:` into other.yaml, name another database with --db,"
        " or remove that sweep, whose runs stay: kdx rm tiny"
    )


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("grid.yaml", ("steps: 10", "steps: 80"), "4 runs of 2 cells leave sweep `tiny` (training.steps: 10 → 80)"),
        ("other.yaml", ("rbf", "linear"), "2 runs of 1 cell leave sweep `tiny` (kernel: rbf → linear)"),
        ("other.yaml", ("rbf]", "rbf, linear]"), None),
    ],
    ids=["the same file", "a shared cell", "nothing leaves"],
)
def test_a_grid_that_was_changed_goes_on_and_says_what_leaves(ran, file, change, message):
    write(file, GRID.replace(*change))
    messages = typed("sweep", file).stderr
    assert messages.startswith(f"note: {message}; nothing is deleted; list ") if message else messages == ""
    assert len(ran) == 1


def test_the_command_that_shows_what_left_can_be_typed_whatever_the_name():
    write("grid.yaml", GRID)
    plan = load_grid("grid.yaml")
    found = difference(Contents.of(plan), Contents({}, ()))
    for name, query in {
        "it's": "\"SELECT * FROM former_runs WHERE sweep = 'it''s'\"",
        "$HOME": "'SELECT * FROM former_runs WHERE sweep = '\"'\"'$HOME'\"'\"''",
    }.items():
        write("grid.yaml", GRID.replace("name: tiny", f'name: "{name}"'))
        message = removed_runs(found, load_grid("grid.yaml"), Context("my runs.db"))
        assert message and message.endswith(f"kdx query {query} --db 'my runs.db'")
