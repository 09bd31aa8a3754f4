"""A sweep read back from the database is the plan that was registered."""

from dataclasses import replace

import pytest
from each import each

from kdx.errors import KdxError
from kdx.grid import shipped
from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import Database, open_database
from kdx.store.plan_from_records import plan_at_hand, plan_of, with_searches
from kdx.store.reading import load_sweep
from tests.conftest import forget_components

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
    recording.register(database, plan)
    read = plan_of(load_sweep(database, plan.name))
    assert read == plan
    assert [run.key for run in read.runs] == [run.key for run in plan.runs]


@pytest.mark.slow
@each("name", shipped.names())
def test_a_shipped_grid_comes_back_as_it_was_planned(database, name):
    plan = load_grid(name)
    if not plan.searched:
        again(database, plan)
        return
    recording.register(database, plan)
    record = load_sweep(database)
    assert with_searches(plan_of(record), record.searches) == plan


def test_the_newest_plan_of_a_name_comes_back(database, tmp_path):
    grid = tmp_path / "grid.yaml"
    for text in (SHARING, SHARING.replace("[none, product]", "[product]"), SHARING.replace("[9, 0, 4]", "2"), SHARING):
        grid.write_text(text)
        again(database, replace(load_grid(grid), command=f"kdx sweep {grid}"))


def test_a_sweep_with_words_that_this_kdx_does_not_know_is_not_run(database, reword):
    plan = load_grid("quickstart")
    recording.register(database, plan)
    with database.write() as connection:
        reword(connection, lambda cell: cell.update(depth=3))
        reword(connection, lambda cell: cell.update(kernel="mine") if cell["kernel"] == "rbf" else None)
    with pytest.raises(KdxError) as caught:
        plan_of(load_sweep(database))
    assert str(caught.value) == (
        "sweep quickstart: it has what this kdx does not know: key `depth`, kernel `mine`\n"
        "  hint: resume it with the kdx that planned it; report, trace, query and export read its results here too"
    )


def test_what_is_at_hand_of_it_is_run(database, reword):
    plan = load_grid("quickstart")
    recording.register(database, plan)
    known, lacking = plan_at_hand(load_sweep(database))
    assert (known, lacking) == (plan, {})
    with database.write() as connection:
        reword(connection, lambda cell: cell.update(kernel="mine") if cell["kernel"] == "rbf" else None)
    known, lacking = plan_at_hand(load_sweep(database))
    assert {cell.labels["kernel"] for cell in known.cells} == {cell.labels["kernel"] for cell in plan.cells} - {"rbf"}
    assert {fault.problem for fault in lacking.values()} == {"it has what this kdx does not know: kernel `mine`"}
    assert len(lacking) + len(known.cells) == len(plan.cells)


TUNED = """\
name: tuned
task: translation
data: {corpus: synthetic-translation}
seeds: 2
KERNEL
tune: {parameters: {PARAMETERS}, trials: 3}
"""


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        ("axes: {kernel: [rbf, 'my_kernels.py:Cauchy']}", "model.dropout: [0.0, 0.1]"),
        ("kernel: rbf", "kernel: [rbf, 'my_kernels.py:Cauchy']"),
    ],
)
def test_a_search_over_a_custom_component_needs_its_source_to_go_on(database, own_kernel, kernel, parameters):
    grid = own_kernel / "tuned.yaml"
    grid.write_text(TUNED.replace("KERNEL", kernel).replace("PARAMETERS", parameters))
    planned = load_grid(grid)
    recording.register(database, planned)
    forget_components()
    record = load_sweep(database)
    found = record.searches
    with pytest.raises(KdxError, match=r"`my_kernels\.py:Cauchy`, which is not in"):
        with_searches(plan_of(record), found)
    again = with_searches(plan_of(record), found, own_kernel)
    assert again.cells == planned.cells
