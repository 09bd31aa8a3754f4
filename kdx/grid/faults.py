"""Faults of a cell, with their places in the file and in the grid's words."""

import re
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kdx.errors import MOST_FOUND, KdxError, shortened
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.table_layout import leaves

# These replace pydantic's messages, which speak of Python and of patterns; only the name of a corpus has a pattern.
_ALLOWED = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_type": "text",
    "string_pattern_mismatch": "letters, digits, and . _ - after the first",
}


def located(error: ValidationError, node: Node, model: type[BaseModel]) -> list[KdxError]:
    """One fault for each detail of `error`, raised when `node` was validated as `model`; of very many, the first."""
    return [_fault(detail, node, model) for detail in error.errors(include_url=False)[:MOST_FOUND]]


def in_file(fault: KdxError, cell: PlannedCell) -> KdxError:
    """The fault, located where the grid has its field, such as `data.corpus`.

    A fault at another place, or of a cell that does not come from a file, stays unchanged.
    """
    keys = {key for key, _ in leaves(cell.spec.model_dump(by_alias=True))}
    place = cell.place(fault.place) if isinstance(fault.place, str) and fault.place in keys else None
    return KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint) if place else fault


def _fault(detail: ErrorDetails, node: Node, model: type[BaseModel]) -> KdxError:
    path = detail["loc"]
    name = shortened(".".join(step for step in path if isinstance(step, str)))
    context: dict[str, Any] = detail.get("ctx", {})
    value = shortened(detail["input"])
    kind = detail["type"]
    if kind == "unfit":
        field = (*path, *filter(None, context["field"].split(".")))
        return KdxError(context["problem"], place=node.at(field), allowed=context["allowed"], hint=context["hint"])
    if kind == "unknown_key":
        key = context["key"]
        whole = shortened(".".join((*filter(None, [name]), key)))
        place = node.key((*path, key))
        return KdxError(f"unknown key `{whole}`", place=place, allowed=context["allowed"], hint=context["hint"])
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1])
        word = str(path[-1])
        return KdxError(f"unknown key `{name}`", place=node.key(path), allowed=known, hint=did_you_mean(word, known))
    if kind == "missing":
        lacks = "is missing" if isinstance(path[-1], str) else f"has only {path[-1]} of its values"
        return KdxError(f"`{name}` {lacks}", place=node.at(path))
    several = isinstance(detail["input"], list)
    hint = None
    if several and _varies(detail, model):
        hint = f"for a cell with each of them: axes: {{{name}: [{shortened(', '.join(map(str, detail['input'])))}]}}"
    if kind == "enum":
        words = re.findall(r"'([^']*)'", context["expected"])
        problem = f"a list as {name}" if several else f"unknown {name} `{value}`"
        return KdxError(problem, place=node.at(path), allowed=words, hint=hint or did_you_mean(value, words))
    problem = f"a {type(detail['input']).__name__}" if isinstance(detail["input"], dict | list) else f"`{value}`"
    allowed = _ALLOWED.get(kind) or re.sub(r"^\w+ should (be )?", "", detail["msg"])
    return KdxError(f"{problem} as {name}" if name else problem, place=node.at(path), allowed=allowed, hint=hint)


def _varies(detail: ErrorDetails, model: type[BaseModel]) -> bool:
    """Whether a list could stand among the axes of a grid: the fault is a whole field of the cell, and no section."""
    path = detail["loc"]
    return model is CellSpec and detail["type"] != "model_type" and all(isinstance(step, str) for step in path)


def _fields(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    for step in path:
        inner = model.model_fields.get(str(step))
        for kind in (inner.annotation, *get_args(inner.annotation)) if inner else ():
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return [info.alias or name for name, info in model.model_fields.items()]
