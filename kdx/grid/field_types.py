"""What the fields of a grid are made of: strict sections, the types of their values, and how a value is refused."""

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kdx.grid.source import written
from kdx.words.family import Family
from kdx.words.option import Option, in_words

Schema = dict[str, Any]
"""A JSON Schema, or a part of one. `#/$defs/…` refers to the definitions of `kdx.grid.schema`."""
IN_A_FILE: Schema = {
    "title": "FILE.py:Class",
    "type": "string",
    "pattern": r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,96}\.py:[A-Za-z_][A-Za-z0-9_]*$",
}
"""A custom component, by its file and class; `kdx.components.find` allows the same."""


def refuse(field: str, problem: str, *, allowed: str | None = None, hint: str | None = None) -> PydanticCustomError:
    """A fault in how fields fit together, told at `field` (dotted where it lies in a section; empty: here)."""
    context = {"field": field, "problem": problem, "allowed": allowed, "hint": hint}
    return PydanticCustomError("unfit", "{problem}", context)


def not_allowed(allowed: str) -> PydanticCustomError:
    """A value that is not one of those allowed; the message names its key."""
    return PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed})


def as_list(value: Any) -> Any:
    """A mapping or a text that stands alone, as a list of one."""
    return [value] if isinstance(value, dict | str) else value


def unknown_name(key: str, known: Iterable[str]) -> PydanticCustomError:
    """Return the error of a name that is not one of the known ones.

    Args:
        key: what a key of these names is called in a message; empty for a value.
    """
    expected = ", ".join(f"'{name}'" for name in known)
    return PydanticCustomError("enum", "{expected}", {"expected": expected, "key": key})


class ToList(BeforeValidator):
    """Annotates a list with what makes one of a lone item; in the JSON Schema, an item may stand alone."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        several = handler(core)
        return {"anyOf": [several["items"], several]}


class Bounded:
    """Annotates a strict number (`yes` is not 1, and "3" is not 3); its message has the kind and all the limits."""

    def __init__(self, **limits: int) -> None:
        """Takes any of ge, gt, le and lt."""
        self._limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        limits: dict[str, Any] = dict(self._limits)
        # No more than fits into 64 bits, as databases and programs that read JSON have them.
        if source is int and limits.keys().isdisjoint(("le", "lt")):
            limits["lt"] = 2**63
        whole = core_schema.int_schema(strict=True, **limits)
        real = core_schema.float_schema(strict=True, **limits)
        # Of `int | float`, a whole number stays whole.
        schema = whole if source is int else real if source is float else core_schema.union_schema([whole, real])
        allowed = f"{'a whole number' if source is int else 'a number'} {in_words(**self._limits)}".strip()
        return core_schema.custom_error_schema(
            schema, "number", custom_error_message="{allowed}", custom_error_context={"allowed": allowed}
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return handler(core) | {"title": core["custom_error_context"]["allowed"]}


Count = Annotated[int, Bounded(ge=1)]
Natural = Annotated[int, Bounded(ge=0)]
Fraction = Annotated[float, Bounded(ge=0, lt=1)]
Positive = Annotated[float, Bounded(gt=0)]
NotNegative = Annotated[float, Bounded(ge=0)]
Number = Annotated[int | float, Bounded()]
PositiveNumber = Annotated[int | float, Bounded(gt=0)]


def margin(value: Any) -> float | str:
    """A number, or a share with its sign.

    Raises:
        PydanticCustomError: it is neither.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf:
        return float(value)
    if isinstance(value, str) and _SHARE.fullmatch(value) and float(value[:-1]) > 0:
        return value
    allowed = "a number above 0, in units of the metric, or a share of the other score such as 1%"
    raise refuse("", f"`{written(value)}` as margin", allowed=allowed)


_SHARE = re.compile(r"\d+(\.\d+)?%", re.ASCII)
_SHARES = {"type": "string", "pattern": r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?%$"}
Margin = Annotated[
    float | str,
    BeforeValidator(margin),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _SHARES]}),
]
"""How far apart two scores may lie and count as equal: in units of the metric, or as a share of the other one."""


class Follows:
    """Annotates a field that may differ where these factors are compared: a rule or good practice sets it by them."""

    def __init__(self, *factors: str) -> None:
        self.factors = factors


class Later:
    """Annotates a field that was added after the first release, with its neutral value as JSON has it.

    At this value a cell computes what it did before the field existed, so it is not hashed then, and a new field
    invalidates no result. A recorded cell that lacks the field has this value.
    """

    def __init__(self, neutral: Any) -> None:
        self.neutral = neutral


NO_COST = "no cost"
"""Annotates a field on which neither the time of a step nor the memory of a run depends."""


@cache
def descriptions(kind: type) -> Mapping[str, str]:
    """Attribute → the text below it, on one line; with those of its base classes; of classes of kdx alone."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        classes = _classes(base.__module__) if base.__module__.startswith("kdx.") else {}
        body = classes[base.__name__].body if base.__name__ in classes else []
        for statement, after in pairwise(body):
            match statement, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module, by name."""
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def word_schema(words: Collection[str], word: str) -> Schema:
    """Return the JSON Schema of one word, with its title, its formula and source where it has them.

    Args:
        words: the words that it is one of; a family has definitions of them.
        word: one of these words, or a member of an enumeration.
    """
    title, texts = "", []
    if isinstance(words, Family):
        known = words.definition(word)
        title, texts = known.title, [getattr(known, text, "") for text in ("formula", "source")]
    elif isinstance(word, StrEnum):
        title = descriptions(type(word)).get(word.name, "").removesuffix(".")
    shown = {"title": title, "description": "\n\n".join(filter(None, texts))}
    return {"const": str(word), **{key: text for key, text in shown.items() if text}}


class OneOf:
    """Annotates a text that must be one of these names, as a value or as a key; the message is that of an enum."""

    def __init__(self, names: Collection[str] | Callable[[], Collection[str]], *others: str, key: str = "") -> None:
        """Take the names, after any others; a family of names may grow, and what a function returns is read when used.

        Args:
            key: what a key of these names is called in a message, such as `axis`; empty for a value.
        """
        self._names, self._others, self._key = names, others, key

    @property
    def words(self) -> tuple[str, ...]:
        """All names, those of custom components as well."""
        return (*self._others, *self._own())

    def _own(self) -> Collection[str]:
        return self._names() if callable(self._names) else self._names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        """Return the schema of the names without the others."""
        names = self._own()
        custom = [IN_A_FILE] if isinstance(names, Family) else []
        if not self._key:
            return {"anyOf": [*(word_schema(names, word) for word in names), *custom]}
        keys: Schema = {"type": "string", "enum": [*names]}
        return {"type": "string", "anyOf": [keys, *custom]} if custom else keys

    def _check(self, value: Any) -> str:
        if isinstance(value, str) and (value in self._own() or value in self._others):
            return value
        raise unknown_name(self._key, self.words)


class Section(BaseModel):
    """Strict and frozen: no unknown key, no coercion of words or booleans, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def settle(self, **values: Any) -> None:
        """Give fields the values that rules find for them; only while the cell is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class WithOptions(Section):
    """A section that has the options of its words as extra keys, beside its fields."""

    model_config = ConfigDict(extra="allow")

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of its words by name; before they are settled, whatever else was given."""
        return self.__pydantic_extra__ or {}

    def option(self, name: str) -> Any:
        """The choice of an option; None where no word of the section has it."""
        return self.options.get(name)

    def leave_out(self, option: str) -> None:
        """Forget what was given for an option; only while the cell is being made."""
        given = {name: value for name, value in self.options.items() if name != option}
        object.__setattr__(self, "__pydantic_extra__", given)

    def judge_options(self, own: Mapping[str, Option], all_options: Callable[[], Mapping[str, Any]]) -> None:
        """Refuse an option that can have no such value, also where no word of the section takes it.

        Args:
            own: those of its words, by name.
            all_options: those of all words, one or several under a name; they are looked up only where another one is
                given.

        Raises:
            PydanticCustomError: an option cannot be this, or no word at all has it.
        """
        given = {name: value for name, value in self.options.items() if value is not None}
        others = self.options.keys() - own.keys()
        if others and (unknown := others - all_options().keys()):
            name = min(unknown)
            names = (*(info.alias or field for field, info in type(self).model_fields.items()), *own)
            raise PydanticCustomError("unknown_key", "unknown key", {"key": name, "allowed": names})
        for name, value in given.items():
            declared = own[name] if name in own else all_options()[name]
            _judge(declared if isinstance(declared, tuple) else (declared,), value)

    def settle_options(self, own: Mapping[str, Option]) -> None:
        """Give each option of its words its value, and take out those of other words; once they are judged."""
        given = {name: value for name, value in self.options.items() if value is not None}
        values = {name: _option_value(option, given.get(name, option.default)) for name, option in own.items()}
        object.__setattr__(self, "__pydantic_extra__", values)


def _judge(declared: Sequence[Option], given: Any) -> None:
    """Refuse what none of these options may be."""
    for option in declared:
        with suppress(ValueError):
            option.value(given)
            return
    _option_value(declared[0], given)


def _option_value(option: Option, given: Any) -> Any:
    try:
        return option.value(given)
    except ValueError:
        shown = f"`{written(given)}`"
        problem = f"unknown {option.name} {shown}" if option.words else f"{shown} as {option.name}"
        context = {"field": option.name, "problem": problem, "allowed": option.words or option.allowed, "hint": None}
        raise PydanticCustomError("unfit", "{problem}", {**context, "given": given}) from None
