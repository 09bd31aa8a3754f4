"""What a grid tunes: the search of each cell, and its winners as a grid that tunes nothing."""

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.tuned_grid import tuned_grid
from kdx.grid.tuning import FIRST_SEED, Choice, DrawnRange, Pruner, Sampler, Search, Tuning, distribution_of

NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6))
RANGES = st.one_of(
    st.builds(DrawnRange, low=st.floats(1e-9, 1), high=st.floats(2, 1e6), log=st.booleans()),
    st.builds(DrawnRange, low=st.integers(-9, 0), high=st.integers(9, 99), step=st.floats(0.1, 9)),
)
CHOICES = st.lists(st.one_of(NUMBERS, st.text(), st.lists(st.text())), min_size=2).map(lambda many: Choice(tuple(many)))
TUNINGS = st.builds(
    Tuning,
    trials=st.integers(1, 100),
    sampler=st.sampled_from(Sampler),
    pruner=st.sampled_from(Pruner),
    seeds=st.lists(st.integers(0, 9), min_size=3, unique=True),
    seed=st.integers(0, 9),
    round=st.integers(1, 9),
)


@given(st.dictionaries(st.text(), RANGES | CHOICES), TUNINGS)
def test_a_search_is_the_same_after_it_travelled_as_json(space, tuning):
    search = Search("0" * 32, json.dumps({"task": "translation"}), space, tuning)
    again = Search.of(json.loads(json.dumps(search.plain)))
    assert again == search and again.id == search.id
    assert all(distribution_of(json.loads(json.dumps(one.plain))) == one for one in space.values())


def test_a_round_matters_only_where_trials_depend_on_each_other():
    alone, learning = Tuning(trials=9, sampler=Sampler.RANDOM), Tuning(trials=9, sampler=Sampler.TPE)
    assert [alone.round_of(number) for number in (0, 8)] == [0, 0]
    assert [learning.round_of(number) for number in (0, 3, 4, 8)] == [0, 0, 1, 2]
    assert Tuning(trials=9, sampler=Sampler.RANDOM, pruner=Pruner.MEDIAN).round_of(4) == 1


def test_a_range_of_whole_numbers_is_whole():
    assert DrawnRange(low=1, high=5).whole
    assert not DrawnRange(low=1, high=5.0).whole and not DrawnRange(low=1, high=5, step=0.5).whole


GRID = """\
task: translation
data: {corpus: synthetic-translation}
training: {steps: 100, validate_every: 50}
axes: {kernel: [exponential, linear]}
"""


def load(tmp_path: Path, tune: str, **options):
    file = tmp_path / "grid.yaml"
    file.write_text(GRID + textwrap.dedent(tune))
    return load_grid(file, **options)


def of(parameters: str, more: str = "trials: 4") -> str:
    return f"tune: {{parameters: {{{parameters}}}, {more}}}\n"


RATE = "training.learning_rate: {low: 1e-4, high: 1e-2, log: true}"


def test_every_cell_has_a_search_of_its_own(tmp_path):
    plan = load(tmp_path, of(f"{RATE}, model.dropout: [0.0, 0.1]", "trials: 4, sampler: random, pruner: median"))
    searches = [cell.search for cell in plan.cells]
    assert len({search.id for search in searches}) == 2
    for cell, search in zip(plan.cells, searches, strict=True):
        assert search.cell_id == cell.id
        assert search.space == {
            "training.learning_rate": DrawnRange(low=1e-4, high=1e-2, log=True),
            "model.dropout": Choice((0.0, 0.1)),
        }
        assert (search.tuning.trials, search.tuning.sampler, search.tuning.pruner) == (4, Sampler.RANDOM, Pruner.MEDIAN)
        assert search.tuning.seeds == (FIRST_SEED,)
        assert search.cell({"model.dropout": 0.1}).model.dropout == 0.1
        assert Search.of(search.plain) == search


def test_more_trials_go_on_with_the_same_search(tmp_path):
    few, many = (load(tmp_path, of(RATE, f"trials: {count}")).cells[0].search.id for count in (4, 8))
    other = load(tmp_path, of(RATE, "trials: 4, seed: 1")).cells[0].search.id
    assert few == many != other


def test_a_parameter_is_tuned_in_the_cells_to_which_it_makes_a_difference(tmp_path):
    plan = load(tmp_path, of(f"{RATE}, temperature: [1, 2]"))
    rate = "training.learning_rate"
    assert [list(cell.search.space) for cell in plan.cells] == [[rate, "temperature"], [rate]]
    plan = load(tmp_path, of("temperature: [1, 2]"))
    assert [cell.search is not None for cell in plan.cells] == [True, False]


def test_a_choice_of_some_layers_is_a_parameter(tmp_path):
    parameters = "tune: {sampler: grid, trials: 2, parameters: {layers.decoder last.kernel: [rbf, cosine]}}\n"
    path = tmp_path / "grid.yaml"
    path.write_text(GRID + parameters)
    exponential, _ = load_grid(path).cells
    tried = exponential.search.cell({"layers.decoder last.kernel": "rbf"})
    assert tried.layers["decoder 2"]["kernel"] == "rbf"


def test_null_takes_a_parameter_out_of_a_grid_that_is_extended(tmp_path):
    load(tmp_path, of(f"{RATE}, model.dropout: [0.0, 0.1]"))
    (tmp_path / "other.yaml").write_text("extends: grid.yaml\ntune: {parameters: {model.dropout: null}}\n")
    assert {*load_grid(tmp_path / "other.yaml").cells[0].search.space} == {"training.learning_rate"}


def test_settings_that_follow_others_follow_a_tuned_one(tmp_path):
    search = load(tmp_path, of("model.width: [64, 128]")).cells[0].search
    assert search.cell({"model.width": 64}).model.width == 64


TUNED = """\
task: translation
data: {corpus: synthetic-translation}
overrides: [{when: {kernel: rbf}, set: {training.warmup: 7}}]
AXES
tune: {parameters: {model.dropout: [0.0, 0.1, 0.3]}, trials: 3}
"""
AXES = ["axes: {kernel: [rbf, linear]}", "approaches: {One: {kernel: rbf}, Two: {kernel: linear}}"]


def won(tmp_path, axes: str, **asked):
    # An override that no cell fulfils is refused.
    text = TUNED if axes in AXES else TUNED.replace("{kernel: rbf}", "{kernel: exponential}")
    (tmp_path / "grid.yaml").write_text(text.replace("AXES", axes))
    plan = load_grid(tmp_path / "grid.yaml", **asked)
    specs = [cell.search.cell({"model.dropout": value}) for cell, value in zip(plan.cells, (0.3, 0.1), strict=False)]
    cells = (replace(cell, id=cell_id(spec), spec=spec, won=True) for cell, spec in zip(plan.cells, specs, strict=True))
    return replace(plan, cells=tuple(cells))


@pytest.mark.parametrize("axes", AXES)
def test_it_has_the_cells_of_the_winners_and_their_names(tmp_path, axes):
    plan = won(tmp_path, axes)
    file = tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    tuned = load_grid(file)
    assert not tuned.searched
    assert [(cell.id, cell.labels) for cell in tuned.cells] == [(cell.id, cell.labels) for cell in plan.cells]


@pytest.mark.parametrize(
    "axes",
    [
        "axes: {training.betas: [[0.9, 0.98], [0.9, 0.999]]}",
        "approaches: {A: {position: none}, B: {position: lookup}}\naxes: {clip: [2, 4]}",
        "axes: {position: [none, [lookup, product]]}",
    ],
)
def test_it_has_winners_of_choices_that_are_lists_and_that_some_cells_lack(tmp_path, axes):
    (tmp_path / "grid.yaml").write_text(
        f"task: translation\ndata: {{corpus: synthetic-translation}}\n{axes}\n"
        "tune: {parameters: {model.dropout: [0.0, 0.1, 0.3]}, trials: 3}\n"
    )
    plan = load_grid(tmp_path / "grid.yaml")
    specs = [cell.search.cell({"model.dropout": 0.3}) for cell in plan.cells]
    cells = (replace(cell, id=cell_id(spec), spec=spec, won=True) for cell, spec in zip(plan.cells, specs, strict=True))
    plan, file = replace(plan, cells=tuple(cells)), tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    assert {cell.id for cell in load_grid(file).cells} == {cell.id for cell in plan.cells}


@pytest.mark.parametrize("axes", [*AXES, "description: one cell"])
def test_what_was_set_on_the_command_line_is_in_it(tmp_path, axes):
    given = ("training.steps=77", "model.width=32", "description=mine", "seeds=[4, 5]")
    plan = won(tmp_path, axes, given=given)
    file = tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    tuned = load_grid(file)
    assert [cell.id for cell in tuned.cells] == [cell.id for cell in plan.cells]
    assert {cell.spec.training.steps for cell in tuned.cells} == {77}
    assert (tuned.seeds, tuned.description) == ((4, 5), "mine")


def test_overrides_of_the_command_line_are_in_it(tmp_path):
    plan = won(tmp_path, AXES[0], given=("overrides={when: {kernel: rbf}, set: {training.clip: 0.25}}",))
    file = tmp_path / "tuned.yaml"
    file.write_bytes(tuned_grid(plan, file))
    assert [cell.id for cell in load_grid(file).cells] == [cell.id for cell in plan.cells]
    assert 0.25 in {cell.spec.training.clip for cell in plan.cells}


def test_a_plan_of_no_file_is_refused(tmp_path):
    with pytest.raises(KdxError, match="of no file"):
        tuned_grid(replace(won(tmp_path, AXES[0]), file=""), tmp_path / "tuned.yaml")
