"""A condition holds where all its words do, and knows which words it never met."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError, Place
from kdx.grid.conditions import Combination, Condition, read_condition
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)
KERNELS, NORMS = ["rbf", "linear", "cosine"], ["post", "pre"]


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Node(HERE, {key: node(inner) for key, inner in value.items()}, dict.fromkeys(value, HERE))
    return Node(HERE, [node(inner) for inner in value]) if isinstance(value, list) else Node(HERE, value)


def condition(value: Any) -> Condition:
    faults: list[KdxError] = []
    found = read_condition(node(value), ("approach",), faults)
    assert found is not None and not faults
    return found


@given(
    kernels=st.sets(st.sampled_from(KERNELS), min_size=1),
    norms=st.sets(st.sampled_from(NORMS), min_size=1),
    kernel=st.sampled_from(KERNELS),
    norm=st.sampled_from(NORMS),
)
def test_all_terms_must_hold_and_any_word_of_a_list(kernels: set, norms: set, kernel: str, norm: str) -> None:
    combination = Combination({}, {"kernel": kernel, "norm": norm})
    inside = kernel in kernels and norm in norms
    assert condition({"kernel": sorted(kernels), "norm": sorted(norms)}).holds(combination) == inside
    assert condition({"not": {"kernel": sorted(kernels), "norm": sorted(norms)}}).holds(combination) != inside


def test_words_are_those_of_the_cell_whatever_way_they_are_written() -> None:
    combination = Combination({"approach": "One"}, {"position": ["product", "lookup"], "training": {"clip": None}})
    assert condition({"position": "lookup+product"}).holds(combination)
    assert condition({"position": [["lookup", "product"]]}).holds(combination)
    assert condition({"training.clip": "none", "approach": "One"}).holds(combination)
    assert not condition({"approach": "Two"}).holds(combination)


def test_a_key_that_is_not_set_has_its_default() -> None:
    combination = Combination({}, {})
    assert condition({"kernel": "exponential", "training.steps": 1000, "temperature": 1.0}).holds(combination)
    assert not condition({"task": "translation"}).holds(combination)


def test_words_that_were_never_met_are_faults() -> None:
    asked = condition({"kernel": ["rbf", "rfb"]})
    asked.holds(Combination({}, {"kernel": "rbf"}))
    asked.holds(Combination({}, {"kernel": "linear"}))
    (fault,) = asked.faults()
    assert fault.problem == "no combination has kernel = rfb"
    assert fault.allowed == "rbf, linear" and fault.hint == "did you mean `rbf`?"


def test_what_is_no_condition_is_refused() -> None:
    faults: list[KdxError] = []
    for value in (3, {}, {"kernl": "rbf"}, {"kernel": {}}, {"kernel": []}, {"not": 3}):
        assert read_condition(node(value), (), faults) is None
    assert len(faults) == 6
