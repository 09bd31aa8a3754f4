"""The grid language: what varies together, under conditions, one by one, or not at all; each fault with its place."""

import itertools
import json
import re
import textwrap
from pathlib import Path
from typing import Any

from grids import faults_of, written
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan

SMALL = """
task: translation
data: {corpus: synthetic-translation}
"""


def plan_of(tmp_path: Path, text: str, **options: Any) -> Plan:
    return load_grid(written(tmp_path, SMALL + textwrap.dedent(text)), **options)


def labels(plan: Plan) -> list[tuple[str, ...]]:
    return [tuple(cell.labels.values()) for cell in plan.cells]


def test_an_axis_may_be_a_range(tmp_path):
    plan = plan_of(tmp_path, "axes: {training.learning_rate: {from: 1e-4, to: 1e-2, log: 3}}\n")
    assert [cell.spec.training.learning_rate for cell in plan.cells] == [1e-4, 1e-3, 1e-2]


def test_choices_may_be_called_as_the_keys_of_a_range_are(tmp_path):
    plan = plan_of(tmp_path, "axes: {attention: {linear: {kernel: linear}, log: {kernel: exponential}}}\n")
    assert [cell.spec.kernel for cell in plan.cells] == ["linear", "exponential"]


def test_a_condition_knows_choices_that_are_numbers(tmp_path):
    plan = plan_of(tmp_path, "axes: {ratio: {1.0: {}, 2.0: {model: {inner: 8}}}}\nexclude: {ratio: 1.0}\n")
    assert labels(plan) == [("2.0",)]


def test_a_condition_knows_the_default_of_each_corpus(tmp_path):
    axes = "task: answer\naxes: {kernel: [linear, rbf], data.corpus: [copy, induction]}\n"
    cells = load_grid(written(tmp_path, f"{axes}exclude: {{data.length: 32, kernel: rbf}}\n")).cells
    assert [tuple(cell.labels.values()) for cell in cells] == [
        ("linear", "copy"),
        ("linear", "induction"),
        ("rbf", "copy"),
    ]


def test_a_value_may_stand_twice_in_a_zip(tmp_path):
    plan = plan_of(tmp_path, "zip: {model.width: [64, 64, 128], model.inner: [128, 256, 256]}\n")
    assert labels(plan) == [("64", "128"), ("64", "256"), ("128", "256")]


def test_zipped_factors_vary_together(tmp_path):
    plan = plan_of(tmp_path, "zip:\n- {model.width: [64, 128], model.heads: [2, 4]}\naxes: {kernel: [rbf, linear]}\n")
    found = [(cell.spec.kernel, cell.spec.model.width, cell.spec.model.heads) for cell in plan.cells]
    assert found == [("rbf", 64, 2), ("rbf", 128, 4), ("linear", 64, 2), ("linear", 128, 4)]
    assert plan.axes == ("kernel", "model.width", "model.heads")
    assert plan.cells[1].labels == {"kernel": "rbf", "model.width": "128", "model.heads": "4"}


def test_an_illegal_combination_may_be_excluded_before_it_is_judged(tmp_path):
    axes = "axes: {model.width: [64, 96], model.heads: [4, 5]}\n"
    plan = plan_of(tmp_path, axes + "exclude: {model.heads: 5}\n")
    assert labels(plan) == [("64", "4"), ("96", "4")]


def test_a_condition_knows_defaults_lists_and_not(tmp_path):
    axes = "axes: {kernel: [rbf, linear, cosine], symmetry: [asymmetric, symmetric]}\n"
    plan = plan_of(tmp_path, axes + "exclude: [{kernel: [rbf, linear], not: {symmetry: symmetric}, norm: post}]\n")
    assert labels(plan) == [
        ("rbf", "symmetric"),
        ("linear", "symmetric"),
        ("cosine", "asymmetric"),
        ("cosine", "symmetric"),
    ]


def test_overrides_set_what_some_cells_need(tmp_path):
    plan = plan_of(
        tmp_path,
        """
        axes: {kernel: [rbf, linear]}
        overrides:
        - {when: {kernel: linear}, set: {training.learning_rate: 1e-4, training: {warmup: 3}}}
        """,
    )
    assert [(cell.spec.training.learning_rate, cell.spec.training.warmup) for cell in plan.cells] == [
        (3e-3, 200),
        (1e-4, 3),
    ]


def test_several_grids_in_one_file(tmp_path):
    plan = plan_of(
        tmp_path,
        """
        training: {steps: 5}
        grids:
          kernels: {axes: {kernel: [rbf, linear]}}
          positions: {axes: {position: [none, product]}, training: {steps: 6}}
        """,
    )
    assert [(cell.labels["grid"], cell.spec.training.steps) for cell in plan.cells] == [
        ("kernels", 5),
        ("kernels", 5),
        ("positions", 6),
        ("positions", 6),
    ]
    assert plan.axes == ("grid", "kernel", "position")


GRIDS = """
grids:
  a: {approaches: {x: {}, y: {kernel: rbf}}, axes: {training.steps: [5, 6]}}
  b: {axes: {norm: [pre, post]}}
"""


def test_a_condition_matters_if_it_does_in_one_of_several_grids(tmp_path):
    plan = plan_of(tmp_path, GRIDS + "exclude: [{approach: y, training.steps: 5}, {norm: pre}]\n")
    assert labels(plan) == [("a", "x", "5"), ("a", "x", "6"), ("a", "y", "6"), ("b", "post")]


def test_an_extending_grid_takes_out_what_varies(tmp_path):
    (tmp_path / "base.yaml").write_text(
        SMALL
        + "training: {clip: 2}\napproaches: {Eq. 9: {kernel: rbf}}\naxes: {norm: [pre, post]}\nexclude: {norm: pre}\n"
    )
    taken_out = "extends: base.yaml\napproaches: null\naxes: null\nexclude: null\ntraining: {clip: null}\n"
    (tmp_path / "grid.yaml").write_text(taken_out)
    (cell,) = load_grid(tmp_path / "grid.yaml").cells
    assert cell.labels == {} and cell.spec.training.clip is None, "a setting has null as its value"


CHOICES = {"kernel": ["exponential", "rbf", "linear"], "norm": ["post", "pre"], "training.warmup": [200, 1, 2]}
"""The first of each is the default."""


@st.composite
def grids(draw):
    """Axes and exclusions."""
    names = draw(st.permutations(list(CHOICES)))[: draw(st.integers(1, 3))]
    axes = {name: draw(st.permutations(CHOICES[name]))[: draw(st.integers(1, 3))] for name in names}
    exclude = draw(
        st.lists(
            st.sets(st.sampled_from(list(CHOICES)), min_size=1).flatmap(
                lambda keys: st.fixed_dictionaries({key: st.sampled_from(CHOICES[key]) for key in sorted(keys)})
            ),
            max_size=2,
        )
    )
    return axes, exclude


@settings(deadline=None, max_examples=50)
@given(grids())
def test_a_grid_gives_what_its_loops_would(tmp_path_factory, grid):
    axes, exclude = grid
    tmp_path, text = tmp_path_factory.mktemp("any"), {"axes": axes, **({"exclude": exclude} if exclude else {})}
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in text.items())
    defaults = {name: choices[0] for name, choices in CHOICES.items()}
    combinations = [defaults | dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]
    kept = [
        combination
        for combination in combinations
        if not any(condition.items() <= combination.items() for condition in exclude)
    ]
    idle = [
        condition
        for condition in exclude
        if not any(condition.items() <= combination.items() for combination in combinations)
    ]
    if idle or not kept:
        assert all(re.search("no combination", fault) for fault in faults_of(tmp_path, SMALL + text))
        return
    plan = plan_of(tmp_path, text)
    assert [
        {"kernel": cell.spec.kernel, "norm": str(cell.spec.norm), "training.warmup": cell.spec.training.warmup}
        for cell in plan.cells
    ] == kept
    for cell, combination in zip(plan.cells, kept, strict=True):
        assert cell.labels == {name: str(combination[name]) for name in axes}


def test_a_condition_compares_numbers_as_numbers_and_what_is_set_last(tmp_path):
    axes = "axes: {temperature: [1, 2.0], size: {a: {training: {warmup: 5}}, b: {}}}\ntraining: {warmup: 6}\n"
    plan = plan_of(tmp_path, axes + "exclude: [{temperature: 2, training.warmup: 5}, {temperature: 1.0, size: b}]\n")
    assert labels(plan) == [("1", "a"), ("2.0", "b")]
