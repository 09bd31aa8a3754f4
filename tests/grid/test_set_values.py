"""What the command line sets is typed, checked and located like a line of the file."""

import pytest

from kdx.errors import Faults
from kdx.grid.load import load_grid

TEXT = """
task: translation
data: {corpus: synthetic-translation}
seeds: 2
axes: {kernel: [rbf, linear]}
approaches: {a: {training: {steps: 5}}}
"""


@pytest.fixture
def grid(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text(TEXT)
    return file


def fault_of(grid, *given: str) -> str:
    with pytest.raises(Faults) as refusal:
        load_grid(grid, given=given)
    (fault,) = refusal.value.faults
    return str(fault)


def test_it_lies_over_all_that_the_file_says(grid):
    given = ["training.steps=100", "training.learning_rate=1e-3", "position=[lookup, product]", "seeds=[4, 7]"]
    plan = load_grid(grid, given=[*given, "name=other", "data={train_lines: 7}"])
    assert plan.seeds == (4, 7) and plan.name == "other"
    for cell in plan.cells:
        assert cell.spec.training.steps == 100 and cell.spec.training.learning_rate == 1e-3
        assert cell.spec.position == ("lookup", "product") and cell.spec.data.train_lines == 7


def test_the_last_one_of_a_key_wins(grid):
    plan = load_grid(grid, given=["training.steps=100", "training.steps=200"])
    assert plan.cells[0].spec.training.steps == 200


def test_it_may_replace_an_axis(grid):
    plan = load_grid(grid, given=["axes.kernel=[cosine]", "axes.training.warmup=[1, 2]"])
    assert [(cell.spec.kernel, cell.spec.training.warmup) for cell in plan.cells] == [("cosine", 1), ("cosine", 2)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("training.stepz=1", "--set training.stepz=1: unknown key `training.stepz`"),
        ("trainin.steps=1", "--set trainin.steps=1: unknown key `trainin.steps`"),
        ("training.steps=yes", "--set training.steps=yes: `yes` as training.steps"),
        ("training.steps=[1, 2]", "--set training.steps=[1, 2]: "),
        ("training.steps=-1", "--set training.steps=-1: `-1` as training.steps"),
        ("training.steps", "--set training.steps: this sets nothing"),
        ("=1", "--set =1: this sets nothing"),
        ("kernel=rbf", "--set kernel=rbf: `kernel` varies on an axis"),
        ("position=[", "not YAML"),
        ("extends=a.yaml", "unknown key `extends`"),
        ("temperature=2\nkernel: 1", "a value of several lines"),
        ("seeds=0", "--set seeds=0: `0` as seeds"),
        ("clip=4", "`clip` has no effect"),
        ("training=3", "--set training=3: `3` as training"),
        ("name=\udcffx", "a value that is not UTF-8"),
    ],
)
def test_what_cannot_be_set_is_refused_with_its_words(grid, given, message):
    fault = fault_of(grid, given)
    assert message in fault, fault


def test_conditions_hold_of_what_is_set_and_are_no_typos_where_it_makes_them_idle(grid):
    conditional = "exclude: {norm: pre}\noverrides: {when: {kernel: rbf}, set: {training.warmup: 1}}\nnorm: pre\n"
    grid.write_text(TEXT[: TEXT.index("axes")] + conditional)
    (cell,) = load_grid(grid, given=["kernel=rbf", "norm=post"]).cells
    assert cell.spec.training.warmup == 1
    (cell,) = load_grid(grid, given=["kernel=linear", "norm=post"]).cells
    assert cell.spec.training.warmup == 200
