"""A condition holds where all its words do, and knows which words it never met."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError, Place
from kdx.grid.conditions import Combination, Condition, ConditionReader
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)
KERNELS, NORMS = ["rbf", "linear", "cosine"], ["post", "pre"]


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Node(HERE, {key: node(inner) for key, inner in value.items()}, dict.fromkeys(value, HERE))
    return Node(HERE, [node(inner) for inner in value]) if isinstance(value, list) else Node(HERE, value)


def combination(labels: dict[str, str], *settings: dict[str, Any]) -> Combination:
    return Combination(labels, tuple(node(one) for one in settings))


def condition(value: Any) -> Condition:
    faults: list[KdxError] = []
    found = ConditionReader(("approach",), faults).read(node(value))
    assert found is not None and not faults
    return found


@given(
    kernels=st.sets(st.sampled_from(KERNELS), min_size=1),
    norms=st.sets(st.sampled_from(NORMS), min_size=1),
    kernel=st.sampled_from(KERNELS),
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
    faults: list[KdxError] = []
    wrong: Any
    for wrong in (3, {}, {"kernl": "rbf"}, {"kernel": {}}, {"kernel": []}, {"not": 3}):
        assert ConditionReader((), faults).read(node(wrong)) is None
    assert len(faults) == 6


def test_a_number_is_one_word_however_it_is_written() -> None:
    assert condition({"temperature": 1}).holds(combination({}))
    assert condition({"temperature": 2.0}).holds(combination({}, {"temperature": 2}))
    assert not condition({"temperature": 1}).holds(combination({}, {"temperature": 1.5}))


def test_what_is_set_last_counts() -> None:
    assert condition({"training.steps": 2}).holds(
        combination({}, {"training": {"steps": 1}}, {"training": {"steps": 2}})
    )


def test_a_condition_is_read_once_and_knows_all_that_it_asks_about() -> None:
    faults: list[KdxError] = []
    shared = node({"kernel": "rbf", "not": {"norm": "pre"}})
    reader = ConditionReader((), faults)
    first = reader.read(shared)
    assert first is not None and reader.read(shared) is first
    assert first.factors == {"kernel", "norm"}
    assert not list(first.faults(settled={"norm"})) and list(first.faults())
