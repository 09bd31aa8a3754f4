"""The classes and factors of kdx, read from the JSON into which `make words` copies them, without importing any."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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

    The module may have imported the class, so a class of this name elsewhere in kdx counts too.
    """
    address = f"{module}:{name}"
    if address in _table()["classes"]:
        return address
    return _by_name().get(name)


@cache
def stand_in(address: str) -> type:
    """Return a class with only the base classes, facts and options of the class at an address.

    So Python itself decides from which of several base classes a fact or an option comes.
    """
    known = _table()["classes"][address]
    module, _, name = address.partition(":")
    options = {key: Option(name=key, **_plain(declared)) for key, declared in known["options"].items()}
    body = {"__doc__": known["title"], "__module__": module, **known["facts"], **options}
    return type(name, tuple(map(stand_in, known["bases"])), body)


class Factor(NamedTuple):
    """The facts about a field of a cell."""

    names: tuple[str, ...] = ()
    """The allowed names; empty if it takes numbers or any text."""
    costs: bool = True
    """Whether the time of a step, or the memory of a run, may depend on it."""
    follows: tuple[str, ...] = ()
    """The factors by which a rule or good practice sets it."""


@cache
def factors() -> Mapping[str, Factor]:
    """Return name → factor for every factor of a cell, in the order of the spec; names have sections: `training.steps`.

    pydantic, which has the fields themselves, takes longer to load than a shell may wait for completions.
    """
    plain = json.loads(FACTORS.read_text(encoding="utf-8"))
    return {name: Factor(**_plain(facts)) for name, facts in plain.items()}


@cache
def _by_name() -> dict[str, str]:
    return {address.partition(":")[2]: address for address in _table()["classes"]}


def _plain(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
