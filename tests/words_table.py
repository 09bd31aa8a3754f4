"""Writes kdx/words/table.json, what the classes of kdx say of themselves: `python -m tests.words_table`."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from kdx.attention.families import FAMILIES
from kdx.metrics import METRICS
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.words.literals import NOT_LITERAL, ClassSource, Source, not_literal, read_source
from kdx.words.option import Option
from kdx.words.table import FILE

ROOT = Path(__file__).parents[1]
ROOMS = ("attention", "data", "metrics", "training")
"""Packages in which a class of a family may lie."""


def text() -> str:
    """The table, from the sources of kdx. Names keep their order in it; a new one comes last."""
    families = (*FAMILIES, DIFFICULTIES, TASKS, METRICS)
    needed: set[str] = set()
    names: dict[str, dict[str, str]] = {}
    for family in families:
        below = [address for address in classes() if family.base in lineage(address)]
        needed |= {above for address in below for above in lineage(address)}
        named: dict[str, str] = {}
        for address in below:
            if name := classes()[address].assigned.get("name"):
                assert named.setdefault(name, address) == address, f"{named[name]} and {address} are both `{name}`"
        earlier = [name for name in earlier_names(family.axis) if name in named]
        names[family.axis] = {name: named[name] for name in dict.fromkeys([*earlier, *sorted(named)])}
    facts = {"name"}.union(*(family.facts for family in families))
    entries = {address: entry(address, facts) for address in sorted(needed)}
    return f'{{\n"names": {in_lines(names)},\n"classes": {in_lines(entries)}\n}}\n'


def in_lines(entries: Mapping[str, Any]) -> str:
    """JSON with a line for each entry."""
    lines = (f" {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in entries.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def earlier_names(axis: str) -> list[str]:
    try:
        return [*json.loads(FILE.read_text(encoding="utf-8"))["names"][axis]]
    except (OSError, ValueError, KeyError):
        return []


def entry(address: str, facts: set[str]) -> dict[str, Any]:
    own = classes()[address]
    options = {name: value for name, value in own.assigned.items() if isinstance(value, Option)}
    said = {name: value for name, value in own.assigned.items() if name in facts and name not in options}
    for name, value in said.items():
        assert value is not NOT_LITERAL, f"{address}: {not_literal(name)}"
    return {
        "bases": bases(address),
        "title": own.title,
        "facts": said,
        "options": {name: declared(option) for name, option in options.items()},
    }


def declared(option: Option) -> dict[str, Any]:
    """The arguments of an option that it was given."""
    plain = Option(0)
    return {
        name: value
        for name, value in asdict(option).items()
        if name == "default" or (name != "name" and value != getattr(plain, name))
    }


@cache
def sources() -> dict[str, Source]:
    """Module → what it says of its classes."""
    files = [file for room in ROOMS for file in sorted((ROOT / "kdx" / room).rglob("*.py"))]
    modules = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files}
    return {module: read_source(ast.parse(file.read_bytes()), str(file)) for file, module in modules.items()}


@cache
def classes() -> dict[str, ClassSource]:
    """Address → class."""
    return {f"{module}:{name}": own for module, (known, _) in sources().items() for name, own in known.items()}


@cache
def bases(address: str) -> list[str]:
    """The addresses of its base classes in these rooms."""
    module = address.partition(":")[0]
    found = [resolved(module, name) for name in classes()[address].bases]
    return [base for base in found if base is not None]


def resolved(module: str, name: str) -> str | None:
    while module in sources():
        known, imports = sources()[module]
        if name in known:
            return f"{module}:{name}"
        if name not in imports:
            return None
        module, name = imports[name]
    return None


def lineage(address: str) -> Iterator[str]:
    """The class and all its base classes."""
    yield address
    for base in bases(address):
        yield from lineage(base)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
