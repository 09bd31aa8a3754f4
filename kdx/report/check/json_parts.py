"""Reads the tables of a report in JSON, value by value in full precision."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kdx.report.check.parts import Part
from kdx.report.wording import LEVELS

_NEVER = frozenset({"run", "run_id"})
"""Keys that are not compared: a repeated run has another id."""


def parts_of_json(text: str) -> Iterator[Part]:
    """The tables of a report, each with the published values beside it."""
    names: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "cells": _place,
        "differences": lambda one: f"{_place(one)} against {_place(one['against'])}",
        "errors": lambda one: f"errors of {one['task']}, {one['metric']}",
        "unequal": lambda one: f"unequal {one['what']} of {one['task']}, {one['metric']}",
        "searches": lambda one: f"search of {_place(one)}",
        "order": lambda one: f"order of {one['task']}, {one['corpus']}, {one['metric']}",
    }

    def part(title: str, of: Mapping[str, Any], *sections: str) -> Part:
        places: dict[str, dict[str, Any]] = {}
        for section in sections:
            for entry in of[section]:
                place, number = names[section](entry), 1
                # Cells of other data have errors and orders of their own under the same words.
                while (numbered := place if number == 1 else f"{place} #{number}") in places:
                    number += 1
                values = {key: value for key, value in entry.items() if key not in ("row", "column", "against")}
                places[numbered] = dict(leaves(values))
        return Part(title, (), places)

    def texts(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        parts = {
            "caption": [table.get("caption")],
            "notes": table.get("notes"),
            "definitions": table.get("definitions"),
        }
        return {what: dict(leaves({"": value})) for what, value in parts.items() if value is not None}

    for table in json.loads(text)["tables"]:
        whole = part(table["name"], table, "cells", "differences", "errors", "unequal", "searches")
        yield replace(whole, places={**whole.places, **texts(table)})
        if table.get("published"):
            yield part(f"{table['name']}: published values", table["published"], "cells", "order")


def _place(entry: Mapping[str, Any]) -> str:
    return ", ".join(LEVELS.join(entry[side].values()) for side in ("row", "column") if entry[side])


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            if key not in _NEVER:
                yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value
