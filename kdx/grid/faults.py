"""What pydantic found wrong, told at its place in the file and in the grid's words."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kdx.errors import KdxError, did_you_mean
from kdx.grid.source import Node


def located(error: ValidationError, node: Node, model: type[BaseModel]) -> list[KdxError]:
    """One fault for each detail of `error`, which came of validating `node` as `model`."""
    return [_fault(detail, node, model) for detail in error.errors(include_url=False)]


def _fault(detail: ErrorDetails, node: Node, model: type[BaseModel]) -> KdxError:
    path = detail["loc"]
    name = ".".join(str(step) for step in path if isinstance(step, str))
    context: dict[str, Any] = detail.get("ctx", {})
    value = detail["input"]
    kind = detail["type"]
    if kind == "unfit":
        field = (*path, *context["field"].split("."))
        return KdxError(context["problem"], place=node.at(field), allowed=context["allowed"], hint=context["hint"])
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1])
        word = str(path[-1])
        return KdxError(f"unknown key `{name}`", place=node.key(path), allowed=known, hint=did_you_mean(word, known))
    if kind == "missing":
        return KdxError(f"`{name}` is missing", place=node.at(path))
    if kind == "enum":
        words = re.findall(r"'([^']*)'", context["expected"])
        problem = f"unknown {name} `{value}`"
        return KdxError(problem, place=node.at(path), allowed=words, hint=did_you_mean(str(value), words))
    problem = f"`{value}` as {name}" if not isinstance(value, dict | list) else f"a {type(value).__name__} as {name}"
    return KdxError(problem, place=node.at(path), allowed=detail["msg"].replace("Input should be ", ""))


def _fields(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    for step in path:
        inner = model.model_fields.get(str(step))
        annotation = inner.annotation if inner else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return [info.alias or name for name, info in model.model_fields.items()]
