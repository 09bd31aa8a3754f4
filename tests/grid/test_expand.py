"""Dimensions multiply out into cells, and what is wrong is gathered."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError, Place
from kdx.grid.expand import Bundle, Dimension, SubGrid, cells_of
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)
BASE = {"task": "translation", "data": {"corpus": "text"}}


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Node(HERE, {key: node(inner) for key, inner in value.items()})
    return Node(HERE, [node(inner) for inner in value]) if isinstance(value, list) else Node(HERE, value)


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


def test_a_wrong_choice_is_told_once_and_the_right_ones_are_still_checked():
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
