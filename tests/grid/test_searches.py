"""`tune:` of a grid: what each cell's search is, and what is refused with place and reason."""

import textwrap
from pathlib import Path

import pytest

from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.tuning import FIRST_SEED, Choice, DrawnRange, Pruner, Sampler, Search

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


def fault(tmp_path: Path, tune: str, **options) -> str:
    with pytest.raises(Faults) as refusal:
        load(tmp_path, tune, **options)
    (found,) = refusal.value.faults
    return str(found).replace(f"{tmp_path}/", "")


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


def test_cells_may_have_other_parameters(tmp_path):
    plan = load(
        tmp_path,
        f"""
        tune:
          parameters: {{{RATE}}}
          overrides:
            - when: {{kernel: exponential}}
              parameters: {{temperature: [1, 2], training.learning_rate: null}}
          trials: 2
        """,
    )
    assert [list(cell.search.space) for cell in plan.cells] == [["temperature"], ["training.learning_rate"]]


def test_settings_that_follow_others_follow_a_tuned_one(tmp_path):
    search = load(tmp_path, of("model.width: [64, 128]")).cells[0].search
    assert search.cell({"model.width": 64}).model.width == 64


@pytest.mark.parametrize(
    ("tune", "problem"),
    [
        (of("training.lerning_rate: [1, 2]"), "5:21: unknown parameter `training.lerning_rate`"),
        (of("training.learning_rate: {low: 1, high: 0.1}"), "a range from 1 to 0.1"),
        (of("training.learning_rate: {low: 0, high: 0.1, log: true}"), "a logarithmic range from 0"),
        (of("training.learning_rate: {low: 0.1, high: 1, log: true, step: 0.1}"), "both `log` and `step`"),
        (of("training.learning_rate: {low: 0.1, high: 1, step: 2}"), "a step of 2"),
        (of("training.learning_rate: [1e-3]"), "two or more different values"),
        (of("training.learning_rate: {low: 1e-3}"), "`tune.parameters.training.learning_rate.high` is missing"),
        (of("model.dropout: [0.1, 1.5]"), "model.dropout"),
        (of(RATE, "trials: 0"), "`0` as tune.trials"),
        (of(RATE, "sampler: tpe"), "`tune.trials` is missing"),
        (of(RATE, "trials: 2, sampler: tpf"), "unknown tune.sampler `tpf`"),
        (of(RATE, "trials: 2, sampler: grid"), "sampler grid with a range of `training.learning_rate`"),
        (of("model.dropout: [0.0, 0.1]", "trials: 3, sampler: grid"), "3 trials of a grid of 2 combinations"),
        (of("model.dropout: [0.0, 0.1]", "trials: 3, sampler: cma-es"), "sampler cma-es without a range"),
        (of("temperature: [1, 2]"), "`temperature` makes no difference to the cell kernel linear"),
        (of("kernel: [exponential, rbf]"), "`kernel` is tuned, but an axis or --set decides it"),
        (of("task: [translation, prediction]"), "`task` is no parameter: it decides what is measured"),
        (of(RATE, "trials: 2, metric: test/bleu"), "a search never reads the test split"),
        (of(RATE, "trials: 2, metric: valid/loss"), "trials are compared by `valid/bleu`"),
        (of(RATE, "trials: 2, seeds: [0]"), "seed 0 is a tuning seed and one that winners are trained with"),
        (of(RATE, "trials: 2, pruner: wilcoxon, seeds: 2"), "pruner wilcoxon with 2 tuning seeds"),
        ("tune: {trials: 3}\n", "`tune` has no parameters"),
        ("tune: 3\n", "`3` as tune"),
        (of(RATE, "trials: 2, parameter: 3"), "unknown key `tune.parameter`"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, tune, problem):
    found = fault(tmp_path, tune)
    assert problem in found and found.startswith("grid.yaml:5:")


def test_a_pruner_needs_a_validation_before_the_last(tmp_path):
    tune = of(RATE, "trials: 2, pruner: median")
    found = fault(tmp_path, tune, given=["training.validate_every=100"])
    assert "pruner median without a validation before the last of 100 steps" in found


def test_what_the_command_line_sets_is_not_tuned(tmp_path):
    assert "an axis or --set decides it" in fault(tmp_path, of(RATE), given=["training.learning_rate=0.1"])
