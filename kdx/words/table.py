"""The classes and the factors of kdx as `make words` copied them into JSON; none of them is imported."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kdx.words.option import Option

FILE = Path(__file__).with_name("table.json")
FACTORS = Path(__file__).with_name("factors.json")


@cache
def _table() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def addresses(axis: str) -> Mapping[str, str]:
    """Return name → address of its class, `module:Class`, for the names of an axis."""
    names: Mapping[str, str] = _table()["names"].get(axis, {})
    return names


def find(module: str, name: str) -> str | None:
    """Return the address of the class that a module of kdx has under a name, or None.

    A module may have imported it, so a class of this name elsewhere in kdx will do.
    """
    address = f"{module}:{name}"
    if address in _table()["classes"]:
        return address
    return _by_name().get(name)


@cache
def stand_in(address: str) -> type:
    """Return a class with the base classes, facts and options of the one at an address, and nothing else of it.

    So Python itself settles which of several base classes a fact or an option comes from.
    """
    known = _table()["classes"][address]
    module, _, name = address.partition(":")
    options = {key: Option(name=key, **_plain(declared)) for key, declared in known["options"].items()}
    body = {"__doc__": known["title"], "__module__": module, **known["facts"], **options}
    return type(name, tuple(map(stand_in, known["bases"])), body)


def factors() -> dict[str, list[str]]:
    """Return factor → the names that it allows, as `kdx.grid.cell_selector` has them; none for numbers or any text.

    To build the models that it has them from takes longer than a shell may wait for its completions.
    """
    names: dict[str, list[str]] = json.loads(FACTORS.read_text(encoding="utf-8"))
    return names


@cache
def _by_name() -> dict[str, str]:
    return {address.partition(":")[2]: address for address in _table()["classes"]}


def _plain(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
