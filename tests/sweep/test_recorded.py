"""A sweep read back from the database is the plan that was registered."""

from dataclasses import replace

import pytest

from kdx.grid import shipped
from kdx.grid.load import load_grid
from kdx.store import writer
from kdx.store.database import Database, open_database
from kdx.store.reader import load_sweep
from kdx.sweep.recorded import plan_of

SHARING = """
name: sharing
description: two choices that come to one cell
task: translation
data: {corpus: synthetic-translation}
axes:
  position: [none, product]
  placement: [[decoder-self], [encoder-self, encoder-decoder]]
seeds: [9, 0, 4]
tables:
  - {name: t, caption: c, rows: [position, placement], metric: loss}
"""


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        yield opened


def again(database: Database, plan) -> None:
    writer.register(database, plan, plan.grid)
    read = plan_of(load_sweep(database, plan.name))
    assert read == plan
    assert [run.key for run in read.runs] == [run.key for run in plan.runs]


@pytest.mark.parametrize("name", shipped.names())
def test_a_shipped_grid_comes_back_as_it_was_planned(database, name):
    again(database, load_grid(name))


def test_the_newest_plan_of_a_name_comes_back(database, tmp_path):
    grid = tmp_path / "grid.yaml"
    for text in (SHARING, SHARING.replace("[none, product]", "[product]"), SHARING.replace("[9, 0, 4]", "2"), SHARING):
        grid.write_text(text)
        again(database, load_grid(grid))


def test_so_does_the_command_that_planned_it(database):
    again(database, replace(load_grid("quickstart"), command="kdx sweep quickstart"))
