"""Keys of a grid that are settings of a cell, and those that nobody knows."""

from typing import Any

from kdx.errors import KdxError, Place
from kdx.grid.settings import check_keys, list_of, mapping_of, settings, settings_by_factor, settings_of
from kdx.grid.source import Node

HERE = Place("grid.yaml", 1, 1)


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Node(HERE, {key: node(inner) for key, inner in value.items()}, dict.fromkeys(value, HERE))
    return Node(HERE, [node(inner) for inner in value]) if isinstance(value, list) else Node(HERE, value)


def test_settings_are_the_fields_of_a_cell_and_the_options_of_words() -> None:
    assert {"kernel", "training", "clip", "temperature"} <= set(settings())
    assert settings_of(node({"kernel": "rbf", "axes": {}, "clip": 2})).plain() == {"kernel": "rbf", "clip": 2}


def test_settings_by_factor_are_nested() -> None:
    given = {"training.steps": 1, "training.warmup": 2, "kernel": "rbf", "training": {"decay": 3}}
    assert settings_by_factor(node(given)).plain() == {
        "training": {"steps": 1, "warmup": 2, "decay": 3},
        "kernel": "rbf",
    }


def test_an_unknown_key_is_told_with_what_was_meant() -> None:
    faults: list[KdxError] = []
    check_keys(node({"kernl": 1, "training.steps": 1, "kernel": 2}), ("kernel", "training"), faults)
    assert [str(fault).splitlines()[-1].strip() for fault in faults] == [
        "hint: did you mean `kernel`?",
        "hint: write training: {steps: …}",
    ]


def test_what_is_no_mapping_or_list_is_refused() -> None:
    faults: list[KdxError] = []
    assert mapping_of(node(3), faults, "axes") == {}
    assert list_of(node(3), faults, "zip", most=2) == []
    assert list_of(node([{"a": 1}, 2]), faults, "zip", most=2)[0].plain() == {"a": 1}
    assert list_of(node([{"a": 1}] * 3), faults, "zip", most=2) == []
    assert [fault.problem for fault in faults] == [
        "`3` under `axes`",
        "`3` under `zip`",
        "`2` under `zip`",
        "3 items under `zip`",
    ]
    assert list_of(node({"a": 1}), faults, "zip", most=2) and list_of(None, faults, "zip", most=2) == []
