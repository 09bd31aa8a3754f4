"""The message for each fault of a grid that pydantic finds: its place in the file, what is allowed, and a hint."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kdx.errors import KdxError, shortened
from kdx.grid.cell_selector import leaves
from kdx.grid.field_types import Section
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node, no_value, written
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import EXPLAINED, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

# These replace pydantic's messages, which speak of Python and of patterns; only the name of a corpus has a pattern.
_ALLOWED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "list_type": "a list",
    "string_pattern_mismatch": "letters, digits, and . _ - after the first",
    "string_type": "text",
    "tuple_type": "a list",
}
_NUMBER = re.compile(r"[-+]?[0-9.][0-9.eE+-]*")
_TAG = re.compile(r"kdx\.\w+|\[key\]")
"""A step of pydantic's that is no key of the file: which of several kinds a value is, or that a key itself is wrong."""


def located(
    error: ValidationError, node: Node, model: type[BaseModel], *, may_be_misspelt: bool = False
) -> list[KdxError]:
    """Return one fault for each detail of `error`, raised when `node` was validated as `model`.

    Args:
        may_be_misspelt: whether a key that is missing may be one of those that are wrong, and so is no further fault.
    """
    details = error.errors(include_url=False)
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    meant = {(loc[:-1], did_you_mean(str(loc[-1]), _keys(_model_at(model, loc[:-1])))) for loc in unknown}

    def is_misspelt(loc: Path) -> bool:
        return (may_be_misspelt and len(loc) == 1) or (loc[:-1], f"did you mean `{loc[-1]}`?") in meant

    details = [detail for detail in details if not (detail["type"] == "missing" and is_misspelt(detail["loc"]))]
    # What lies under a key that is wrong is not judged.
    wrong_keys = {detail["loc"][:-1] for detail in details if detail["loc"][-1:] == ("[key]",)}
    return [
        _fault(detail, node, model)
        for detail in details
        if detail["loc"][-1:] == ("[key]",) or not any(detail["loc"][: len(key)] == key for key in wrong_keys)
    ]


def checked(model: type[Model], node: Node, faults: list[KdxError], context: Any = None) -> tuple[Model, Node]:
    """Return the mapping as `model`, without the entries that are wrong, and their nodes; each fault goes to `faults`.

    Args:
        context: what the validators of the model need to know.
    """
    while True:
        try:
            return model.model_validate(node.plain(), context=context), node
        except ValidationError as error:
            seen = {str(fault) for fault in faults}
            faults.extend(fault for fault in located(error, node, model) if str(fault) not in seen)
            wrong = {_entry(detail) for detail in error.errors(include_url=False)}
            whole = node
            # The last item of a list goes first, so that the others keep their index.
            for path in sorted(wrong, key=lambda path: [step if isinstance(step, int) else 0 for step in path])[::-1]:
                node = node.without(path)
            if node == whole:  # Whatever an entry is called, this ends.
                node = node.only(node.value.keys() - {path[0] for path in wrong})


def in_file(fault: KdxError, cell: PlannedCell) -> KdxError:
    """Return the fault, located where the grid has its field, such as `data.corpus`.

    A fault at another place, or of a cell that does not come from a file, stays unchanged.
    """
    keys = {key for key, _ in leaves(cell.spec.model_dump(by_alias=True))}
    place = cell.place(fault.place) if isinstance(fault.place, str) and fault.place in keys else None
    return KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint) if place else fault


def _entry(detail: ErrorDetails) -> Path:
    """Return the path of what is left out of a grid for a fault: an axis, a table; but all of what belongs together."""
    path = _in_file(detail["loc"])
    if detail.get("ctx", {}).get("key") == "key" and path[0] in ("axes", "approaches"):
        return path
    return path[:1] if path[0] in ("tune", "seeds") else path[:2]


def _in_file(path: Path) -> Path:
    return tuple(step for step in path if not isinstance(step, str) or not _TAG.fullmatch(step))


def _fault(detail: ErrorDetails, node: Node, model: type[BaseModel]) -> KdxError:
    context: dict[str, Any] = detail.get("ctx", {})
    if "given" in context:  # an option, which is judged with the section that it stands in
        loc = (*detail["loc"], context["field"])
        detail = {**detail, "type": "option", "loc": loc, "input": context["given"]}
    path = _in_file(detail["loc"])
    name = shortened(".".join(step for step in path if isinstance(step, str)))
    given = detail["input"]
    value = written(given)
    hint = context.get("hint")
    top = _keys(model) if model is CellSpec else ()
    match detail["type"]:
        case "unfit":
            field = (*path, *filter(None, context["field"].split(".")))
            place = node.key(path) if detail["loc"][-1:] == ("[key]",) else node.at(field)
            return KdxError(context["problem"], place=place, allowed=context["allowed"], hint=hint)
        case "unknown_key":
            whole = shortened(".".join((*filter(None, [name]), context["key"])))
            place, hint = node.key((*path, context["key"])), did_you_mean(context["key"], context["allowed"], top)
            return KdxError(f"unknown key `{whole}`", place=place, allowed=context["allowed"], hint=hint)
        case "enum" if context.get("key"):
            problem, known = f"unknown {context['key']} `{shortened(path[-1])}`", _allowed(detail, model)
            section, dot, rest = str(path[-1]).partition(".")
            in_section = f"write {section}: {{{shortened(rest)}: …}}" if dot and section in known and rest else None
            hint = in_section or did_you_mean(str(path[-1]), known)
            return KdxError(problem, place=node.key(path), allowed=known, hint=hint)
        case "extra_forbidden":
            known, around = _keys(_model_at(model, detail["loc"][:-1])), node.inner(path[:-1])
            beside = around.value if around and isinstance(around.value, dict) else {}
            hint = did_you_mean(str(path[-1]), [key for key in known if key not in beside], top)
            if str(path[-1]).isdigit():
                hint = "a decimal point is written `.`: a comma begins the next key"
            return KdxError(f"unknown key `{name}`", place=node.key(path), allowed=known, hint=hint)
        case "missing":
            problem = f"`{name}`" if isinstance(path[-1], str) else f"value {path[-1] + 1} of `{name}`"
            return KdxError(f"{problem} is missing", place=node.at(path), allowed=_allowed_at(path, node, model))
        case "too_short":
            first = _allowed_at((*path, "" if isinstance(given, dict) else 0), node, model)
            several = f"at least one: {first}" if first else "at least one"
            return KdxError(f"`{value}` as {name}", place=node.at(path), allowed=several)
        case "too_long":
            problem = f"{len(given):,} items as {name}"
            return KdxError(problem, place=node.at(path), allowed=f"at most {context['max_length']}")
    allowed = context.get("allowed") or _allowed(detail, model)
    key = path[:-1] if path and isinstance(path[-1], int) else path
    if given is None and key and (inner := node.inner(key)) is not None and inner.value is None:
        fault, around = no_value(name, node.key(key), allowed), node.inner(key[:-1])
        # Braces without colons are a mapping whose keys have no values.
        if key[0] == "axes" and len(key) == 3 and around and len(around.value) > 1 and not any(around.plain().values()):
            fault.hint = f"for a list: {key[1]}: [{', '.join(around.value)}]"
        return fault
    # A mapping or a list of settings is not repeated, a value that stands for one is.
    nested = isinstance(given, dict | list) and detail["type"] != "not_allowed" and bool(given)
    problem = f"`{value}`" if not nested else "a list" if isinstance(given, list) else "a mapping"
    problem, hint = f"{problem} as {name}" if name else problem, hint or _as_axis(detail, model, name)
    match detail["type"]:
        case "enum" | "option" if not nested and not isinstance(allowed, str):
            problem, hint = f"unknown {name} `{value}`", did_you_mean(str(given), allowed, top)
        case "number" | "option" if isinstance(given, str) and _NUMBER.fullmatch(given):
            hint = "remove the quotes"
        case _ if isinstance(given, float) and given.is_integer() and "whole number" in allowed:
            hint = f"write {int(given)}"
        case "dict_type" | "model_type" if path and not nested:
            hint = hint or EXPLAINED.get(str(given)) or did_you_mean(str(path[-1]), (), top)
        case "list_type" if isinstance(given, dict):
            hint = f"for a list of one: {path[-1]}: [{value}]"
    return KdxError(problem, place=node.at(path), allowed=allowed, hint=hint)


def _allowed(detail: ErrorDetails, model: type[BaseModel]) -> list[str] | str:
    """Return what pydantic expects in the place of a value."""
    match detail["type"]:
        case "enum" | "literal_error":
            return re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        case "model_type":
            return mapping_of(model, detail["loc"])
        case kind:
            return _ALLOWED.get(kind) or re.sub(r"^\w+ should (be |have )?", "", detail["msg"])


def mapping_of(model: type[BaseModel], path: Path) -> str:
    """Return what is allowed where `path` leads to a mapping of a model."""
    kind = _model_at(model, path)
    return f"a mapping of {', '.join(_keys(kind))}" if issubclass(kind, Section) else "a mapping of settings, or {}"


def _allowed_at(path: Path, node: Node, model: type[BaseModel]) -> str | None:
    """Return what is allowed at a path where nothing stands, by the fault of null there."""
    plain = inner = node.plain()
    for step in path[:-1]:
        # A value that stands alone is a list of one.
        inner = inner[step] if step != 0 or isinstance(inner, list) else inner
    if isinstance(inner, list):
        inner.append(None)
    elif isinstance(inner, dict):
        inner[path[-1]] = None
    try:
        model.model_validate(plain)
    except ValidationError as error:
        details = [detail for detail in error.errors(include_url=False) if _in_file(detail["loc"]) == path]
        # As is a list that a validator makes of a value that stands alone: null was put elsewhere.
        judged = (detail for detail in details if detail["type"] not in ("missing", "too_short"))
        return next((_fault(detail, node, model).allowed for detail in judged), None)
    return None


def _as_axis(detail: ErrorDetails, model: type[BaseModel], name: str) -> str | None:
    """Return a hint how to vary what a cell has one of: a whole field that got a list, and no section."""
    given, path = detail["input"], detail["loc"]
    is_field = model is CellSpec and detail["type"] != "model_type" and all(isinstance(step, str) for step in path)
    is_field = is_field and path[:1] != ("layers",)
    if not isinstance(given, list) or not is_field:
        return None
    return f"for a cell with each of them: axes: {{{name}: {written(given)}}}"


def _keys(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel]:
    """Return the model of the mapping that `path` leads to, through lists, mappings and kinds of values."""
    inner: list[type[BaseModel]] = []
    for step in path:
        fields = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
        if step in fields:
            inner = list(_models(fields[step]))
            model = inner[0] if inner else model
        else:
            # The tag of the kind that the value is of, of several that the field may have.
            model = next((kind for kind in inner if step == f"kdx.{kind.__name__}"), model)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, the outermost first."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
