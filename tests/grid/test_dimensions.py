"""The grid language: what varies together, under conditions, one by one, or not at all; each fault with its place."""

import itertools
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kdx.errors import Faults, KdxError, Place
from kdx.grid.conditions import Combination, Condition, Written, WrittenCondition
from kdx.grid.expand import Bundle, Dimension, SubGrid, cells_of
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.grid.source import Node

SMALL = """
task: translation
data: {corpus: synthetic-translation}
"""


def plan_of(tmp_path: Path, text: str, **options: Any) -> Plan:
    file = tmp_path / "grid.yaml"
    file.write_text(SMALL + textwrap.dedent(text))
    return load_grid(file, **options)


def faults_of(tmp_path: Path, text: str, **options: Any) -> list[str]:
    with pytest.raises(Faults) as refusal:
        plan_of(tmp_path, text, **options)
    return [str(fault).replace(f"{tmp_path}/", "") for fault in refusal.value.faults]


def labels(plan: Plan) -> list[tuple[str, ...]]:
    return [tuple(cell.labels.values()) for cell in plan.cells]


def test_an_axis_may_be_a_range(tmp_path):
    plan = plan_of(tmp_path, "axes: {training.learning_rate: {from: 1e-4, to: 1e-2, log: 3}}\n")
    assert [cell.spec.training.learning_rate for cell in plan.cells] == [1e-4, 1e-3, 1e-2]


def test_zipped_factors_vary_together(tmp_path):
    plan = plan_of(tmp_path, "zip:\n- {model.width: [64, 128], model.heads: [2, 4]}\naxes: {kernel: [rbf, linear]}\n")
    found = [(cell.spec.kernel, cell.spec.model.width, cell.spec.model.heads) for cell in plan.cells]
    assert found == [("rbf", 64, 2), ("rbf", 128, 4), ("linear", 64, 2), ("linear", 128, 4)]
    assert plan.axes == ("kernel", "model.width", "model.heads")
    assert plan.cells[1].labels == {"kernel": "rbf", "model.width": "128", "model.heads": "4"}


def test_an_illegal_combination_may_be_excluded_before_it_is_judged(tmp_path):
    axes = "axes: {model.width: [64, 96], model.heads: [4, 5]}\n"
    assert "does not divide" in faults_of(tmp_path, axes)[0]
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
    (fault,) = faults_of(tmp_path, "grids: {a: {}}\ntasks: {prediction: {}}\n")
    assert "exclude each other" in fault


def test_a_baseline_may_be_a_word(tmp_path):
    axes = "axes: {kernel: [rbf, linear], position: [none, product]}\n"
    table = "tables: [{name: t, rows: kernel, columns: position, baseline: %s}]\n"
    assert plan_of(tmp_path, axes + table % "rbf").tables[0].baseline == {"kernel": "rbf"}
    (fault,) = faults_of(tmp_path, axes + table % "rfb")
    assert fault.startswith("grid.yaml:5:63: no row or column of the table is `rfb`")
    filters = "axes: {filter.encoder-self: [full, strided], filter.encoder-decoder: [full, strided]}\n"
    twice = "tables: [{name: t, rows: filter.encoder-self, columns: filter.encoder-decoder, baseline: full}]\n"
    (fault,) = faults_of(tmp_path, filters + twice)
    assert "`full` is a value of filter.encoder-self and of filter.encoder-decoder" in fault


GRIDS = """
grids:
  a: {approaches: {x: {}, y: {kernel: rbf}}, axes: {training.steps: [5, 6]}}
  b: {axes: {norm: [pre, post]}}
"""


def test_a_condition_matters_if_it_does_in_one_of_several_grids(tmp_path):
    plan = plan_of(tmp_path, GRIDS + "exclude: [{approach: y, training.steps: 5}, {norm: pre}]\n")
    assert labels(plan) == [("a", "x", "5"), ("a", "x", "6"), ("a", "y", "6"), ("b", "post")]
    (fault,) = faults_of(tmp_path, GRIDS + "exclude: {norm: prre}\n")
    assert "no combination has norm = prre\n  allowed: post, pre\n" in fault
    (fault,) = faults_of(tmp_path, GRIDS + "exclude: {grid: b}\n")
    assert "`exclude` leaves no combination of grid `b`" in fault


def test_an_extending_grid_takes_out_what_varies(tmp_path):
    (tmp_path / "base.yaml").write_text(
        SMALL + "approaches: {Eq. 9: {kernel: rbf}}\naxes: {norm: [pre, post]}\nexclude: {norm: pre}\n"
    )
    (tmp_path / "grid.yaml").write_text("extends: base.yaml\napproaches: null\naxes: null\nexclude: null\n")
    (cell,) = load_grid(tmp_path / "grid.yaml").cells
    assert cell.labels == {}


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
        assert all(re.search("no combination", fault) for fault in faults_of(tmp_path, text))
        return
    plan = plan_of(tmp_path, text)
    assert [
        {"kernel": cell.spec.kernel, "norm": str(cell.spec.norm), "training.warmup": cell.spec.training.warmup}
        for cell in plan.cells
    ] == kept
    for cell, combination in zip(plan.cells, kept, strict=True):
        assert cell.labels == {name: str(combination[name]) for name in axes}


HERE = Place("grid.yaml", 1, 1)
KERNEL_NAMES, NORMS = ["rbf", "linear", "cosine"], ["post", "pre"]


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Node(HERE, {key: node(inner) for key, inner in value.items()}, dict.fromkeys(value, HERE))
    return Node(HERE, [node(inner) for inner in value]) if isinstance(value, list) else Node(HERE, value)


def combination(labels: dict[str, str], *settings: dict[str, Any]) -> Combination:
    return Combination(labels, tuple(node(one) for one in settings))


WRITTEN: TypeAdapter[WrittenCondition] = TypeAdapter(Written)


def condition(value: Any) -> Condition:
    return Condition.of(WRITTEN.validate_python(value, context=("approach",)), node(value))


@given(
    kernels=st.sets(st.sampled_from(KERNEL_NAMES), min_size=1),
    norms=st.sets(st.sampled_from(NORMS), min_size=1),
    kernel=st.sampled_from(KERNEL_NAMES),
    norm=st.sampled_from(NORMS),
)
def test_all_terms_must_hold_and_any_word_of_a_list(kernels: set[str], norms: set[str], kernel: str, norm: str) -> None:
    one = combination({}, {"kernel": kernel, "norm": norm})
    inside = kernel in kernels and norm in norms
    assert condition({"kernel": sorted(kernels), "norm": sorted(norms)}).holds(one) == inside
    assert condition({"not": {"kernel": sorted(kernels), "norm": sorted(norms)}}).holds(one) != inside


def test_words_are_those_of_the_cell_whatever_way_they_are_written() -> None:
    one = combination({"approach": "One"}, {"position": ["product", "lookup"], "training": {"clip": None}})
    assert condition({"position": "lookup+product"}).holds(one)
    assert condition({"position": [["lookup", "product"]]}).holds(one)
    assert condition({"training.clip": "none", "approach": "One"}).holds(one)
    assert not condition({"approach": "Two"}).holds(one)


def test_a_key_that_is_not_set_has_its_default() -> None:
    one = combination({}, {})
    assert condition({"kernel": "exponential", "training.steps": 1000, "temperature": 1.0}).holds(one)
    assert not condition({"task": "translation"}).holds(one)


def test_words_that_were_never_met_are_faults() -> None:
    asked = condition({"kernel": ["rbf", "rfb"]})
    asked.holds(combination({}, {"kernel": "rbf"}))
    asked.holds(combination({}, {"kernel": "linear"}))
    (fault,) = asked.faults()
    assert fault.problem == "no combination has kernel = rfb"
    assert fault.allowed == "rbf, linear" and fault.hint == "did you mean `rbf`?"


def test_what_is_no_condition_is_refused() -> None:
    for wrong in (3, {}, {"kernl": "rbf"}, {"kernel": {}}, {"kernel": []}, {"not": 3}):
        with pytest.raises(ValidationError):
            condition(wrong)


def test_a_condition_that_the_command_line_settles_may_be_idle() -> None:
    idle = condition({"kernel": "rbf", "not": {"norm": "pre"}})
    assert idle.factors == {"kernel", "norm"}
    assert not list(idle.faults(settled={"norm"})) and list(idle.faults())


def test_a_number_is_one_word_however_it_is_written() -> None:
    assert condition({"temperature": 1}).holds(combination({}))
    assert condition({"temperature": 2.0}).holds(combination({}, {"temperature": 2}))
    assert not condition({"temperature": 1}).holds(combination({}, {"temperature": 1.5}))


def test_what_is_set_last_counts() -> None:
    assert condition({"training.steps": 2}).holds(
        combination({}, {"training": {"steps": 1}}, {"training": {"steps": 2}})
    )


BASE = {"task": "translation", "data": {"corpus": "text"}}


def dimension(name: str, **bundles: Any) -> Dimension:
    return Dimension(name, tuple(Bundle({name: label}, node(settings)) for label, settings in bundles.items()))


KERNELS = dimension("kernel", e={"kernel": "exponential"}, r={"kernel": "rbf"})


def cells(*sub_grids: SubGrid) -> tuple[list[Any], list[KdxError]]:
    faults: list[KdxError] = []
    return cells_of(sub_grids, faults), faults


def test_the_last_dimension_runs_fastest():
    norms = dimension("norm", post={"norm": "post"}, pre={"norm": "pre"})
    found, faults = cells(SubGrid(node(BASE), (KERNELS, norms)))
    assert not faults
    assert [tuple(cell.labels.values()) for cell in found] == [("e", "post"), ("e", "pre"), ("r", "post"), ("r", "pre")]
    assert [cell.ordinal for cell in found] == [0, 1, 2, 3]
    assert [(cell.spec.kernel, cell.spec.norm) for cell in found][1] == ("exponential", "pre")


def test_a_bundle_sets_several_factors_and_reaches_into_sections():
    bundle = dimension("approach", both={"kernel": "rbf", "training": {"steps": 5}})
    (cell,), _ = cells(SubGrid(node({**BASE, "training": {"warmup": 2}}), (bundle,)))
    assert (cell.spec.kernel, cell.spec.training.steps, cell.spec.training.warmup) == ("rbf", 5, 2)


def test_a_preset_lies_under_the_grid_and_that_of_a_bundle_takes_its_place():
    preset = node({"training": {"steps": 1, "warmup": 1}, "norm": "pre"})
    own = Bundle({"size": "own"}, node({"kernel": "rbf"}))
    other = Bundle({"size": "other"}, node({}), node({"training": {"steps": 2, "warmup": 2}, "kernel": "rbf"}))
    base = node({**BASE, "training": {"warmup": 3}})
    (one, two), _ = cells(SubGrid(base, (Dimension("size", (own, other)),), preset))
    assert (one.spec.training.steps, one.spec.training.warmup, one.spec.norm) == (1, 3, "pre")
    assert (two.spec.training.steps, two.spec.training.warmup, two.spec.norm) == (2, 3, "post")


def test_without_dimensions_there_is_one_cell():
    (cell,), faults = cells(SubGrid(node(BASE), ()))
    assert dict(cell.labels) == {} and not faults


def test_ordinals_go_on_over_the_tasks():
    found, _ = cells(SubGrid(node(BASE), (KERNELS,)), SubGrid(node({**BASE, "norm": "pre"}), ()))
    assert [cell.ordinal for cell in found] == [0, 1, 2]


def test_a_wrong_choice_is_reported_once_and_the_right_ones_are_still_checked():
    wrong = dimension("position", a={"position": "nowhere"}, b={"position": "none"}, c={"norm": "both"})
    found, faults = cells(SubGrid(node(BASE), (KERNELS, wrong)))
    assert [fault.problem for fault in faults] == ["unknown position `nowhere`", "unknown norm `both`"]
    assert len(found) == 2


@given(st.lists(st.integers(1, 10**6), max_size=30))
def test_a_product_is_counted_without_being_built(sizes):
    one = Bundle({"d": "one"}, node({}))

    class Many(tuple):
        """So many bundles, without them."""

        def __len__(self) -> int:
            return self.size

    dimensions = []
    expected = 1
    for size in sizes:
        bundles = Many([one])
        bundles.size = size
        dimensions.append(Dimension("d", bundles))
        expected *= size
    assert SubGrid(node(BASE), tuple(dimensions)).size == expected


def test_a_choice_without_effect_is_no_label_and_makes_no_second_cell():
    """linear has no temperature, and product no clip."""
    kernels = dimension("kernel", linear={"kernel": "linear"}, rbf={"kernel": "rbf"})
    heats = Dimension(
        "temperature", tuple(Bundle({"temperature": str(heat)}, node({"temperature": heat})) for heat in (0.5, 2.0))
    )
    clips = Dimension("clip", (Bundle({"clip": "4"}, node({"clip": 4})),))
    found, faults = cells(SubGrid(node({**BASE, "position": "product"}), (kernels, heats, clips)))
    assert not faults
    assert [tuple(cell.labels.values()) for cell in found] == [
        ("linear", "none", "none"),
        ("rbf", "0.5", "none"),
        ("rbf", "2.0", "none"),
    ]
    assert [cell.ordinal for cell in found] == [0, 1, 2]


def test_nor_is_one_of_an_option_that_another_corpus_has():
    corpora = dimension("data.corpus", copy={"data": {"corpus": "copy"}}, recall={"data": {"corpus": "recall"}})
    pairs = Dimension("data.pairs", (Bundle({"data.pairs": "2"}, node({"data": {"pairs": 2}})),))
    found, faults = cells(SubGrid(node({"task": "answer"}), (corpora, pairs)))
    assert not faults
    assert [tuple(cell.labels.values()) for cell in found] == [("copy", "none"), ("recall", "2")]
