"""Keys of a grid that are settings of a cell, and those that nobody knows."""

from typing import Any

from kdx.errors import KdxError, Place
from kdx.grid.settings import check_keys, settings, settings_by_factor, settings_of, without_removed
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


def test_null_takes_an_entry_out_of_what_lies_under_it_and_leaves_a_setting_without_a_value() -> None:
    base = node({"approaches": {"One": {"memory": 3}, "Two": {}}, "tune": {"trials": 3}, "clip": 2})
    over = node({"approaches": {"One": {"memory": None}, "Two": None}, "tune": None, "clip": None})
    assert without_removed(base.overlaid(over)).plain() == {"approaches": {"One": {"memory": None}}, "clip": None}
    assert without_removed(over).plain() == over.plain()
