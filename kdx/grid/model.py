"""What a grid file may hold beside the settings of its cells: one model, which checks a file and makes its schema.

A file is checked after what it extends is laid under it, and a sub-grid after what all sub-grids share is. The settings
themselves are those of `kdx.grid.fields`; they are checked in the cells that they make.
"""

import unicodedata
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SkipValidation,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from kdx.grid.cell_selector import factors, settings
from kdx.grid.evaluations import EvaluationChoices
from kdx.grid.field_types import (
    Bounded,
    Number,
    OneOf,
    PositiveNumber,
    Section,
    ToList,
    as_list,
    not_allowed,
    refuse,
    unknown_name,
)
from kdx.grid.plan import TableSpec
from kdx.grid.seeds import Seeds
from kdx.grid.tuning import Tune
from kdx.tasks import TASKS

MOST_AXES = 100
MOST_NUMBERS = 1000
LONGEST_NAME = 100  # characters
ALLOWED_NAME = (
    f"a line of at most {LONGEST_NAME} characters without blanks at its ends, which does not begin with `-`, "
    "does not end in .yaml or .yml, and is no number"
)
"""What `is_sweep_name` allows, in words."""
PATTERN = r"^(?!-)(?!.*\.ya?ml$)(?![0-9]+$)\S(.*\S)?$"
"""The same for JSON Schema, but for its length and for signs that no terminal shows."""
_ACTIVE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Signs that no terminal shows as they are: control and format characters, lone surrogates, breaks of lines."""


def is_sweep_name(name: Any) -> bool:
    """Return whether a sweep may have the name: it is no option, no file of a grid and no number of a run."""
    if not isinstance(name, str) or any(unicodedata.category(sign) in _ACTIVE for sign in name):
        return False
    other = name.startswith("-") or name.endswith((".yaml", ".yml")) or (name.isascii() and name.isdigit())
    return 0 < len(name) <= LONGEST_NAME and name == name.strip() and not other


def _name(name: Any) -> Any:
    if not is_sweep_name(name):
        raise not_allowed(ALLOWED_NAME)
    return name


def _text(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise not_allowed("a short text")
    return text


def reserved_names() -> list[str]:
    """Return the names that no axis may have, but for the factors."""
    return [name for name in (*GRID, *settings(), "approach", "grid", "not") if name not in factors()]


def axis_name(name: str) -> str:
    """Return the name of an axis: a factor, or a name of its own.

    Raises:
        PydanticCustomError: the name has another meaning in a grid.
    """
    if not name.strip() or name in reserved_names():
        hint = "an axis over a factor has a list, such as training.steps: [100, 200]"
        allowed = "a name that means nothing else in a grid"
        raise refuse("", f"`{name}` as the name of an axis", allowed=allowed, hint=hint)
    return name


SPACINGS = ("linear", "log", "step")
HowMany = Annotated[int, Bounded(ge=2, le=MOST_NUMBERS)]


class Range(Section):
    """Numbers of an axis by their ends: `{from: 1e-4, to: 1e-2, log: 5}`, `{…, linear: 5}`, or `{…, step: 100}`.

    They are computed in decimals, so that a step of 0.1 gives 0.3 and not 0.30000000000000004. Where all that is
    written is whole, so are they; between other ends a linear and a logarithmic range have numbers of four significant
    digits.
    """

    first: Number = Field(alias="from")
    """The first number."""
    last: Number = Field(alias="to")
    """The last number, or the largest that none of the steps goes beyond."""
    linear: HowMany | None = None
    """How many numbers, equally far apart."""
    log: HowMany | None = None
    """How many numbers, each as many times the one before."""
    step: PositiveNumber | None = None
    """How far apart two numbers are."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(getattr(self, spacing) is not None for spacing in SPACINGS) != 1:
            spacings = "one of linear, log (how many numbers) and step"
            allowed = f"`from`, `to`, and {spacings}, such as {{from: 1e-4, to: 1e-2, log: 5}}"
            raise refuse("", "a range without a spacing, or with several", allowed=allowed)
        first, last = self.first, self.last
        if first >= last:
            hint = f"swap its ends: {{from: {last}, to: {first}}}" if first > last else None
            problem = f"a range from {first} to {last}"
            raise refuse("from", problem, allowed="from a smaller to a larger number", hint=hint)
        if self.log is not None and first <= 0:
            raise refuse("", f"a logarithmic range from {first}", allowed="from a number above 0")
        if self.step is not None:
            span = _decimal(last) - _decimal(first)
            if _decimal(self.step) > span:
                raise refuse("step", f"a step of {self.step}", allowed=f"above 0, at most {span}")
            count = int(span / _decimal(self.step)) + 1
            if count > MOST_NUMBERS:
                raise refuse("step", f"{count:,} numbers in a range", allowed=f"at most {MOST_NUMBERS:,}")
        elif len(set(self.numbers)) < len(self.numbers):
            spacing = "log" if self.log is not None else "linear"
            kind = "whole numbers" if isinstance(self.numbers[0], int) else "numbers of four digits"
            problem = f"{len(self.numbers)} {kind} between {first} and {last} are not all different"
            raise refuse(spacing, problem, hint="ask for fewer")
        return self

    @property
    def numbers(self) -> list[int | float]:
        """The numbers in their order, both ends included where the spacing meets them."""
        first, last = _decimal(self.first), _decimal(self.last)
        whole = all(isinstance(value, int) for value in (self.first, self.last, self.step or 0))
        if self.step is not None:
            step = _decimal(self.step)
            numbers = [first + index * step for index in range(int((last - first) / step) + 1)]
        else:
            count = self.linear or self.log or 2
            shares = [Decimal(index) / (count - 1) for index in range(1, count - 1)]
            between = [
                first * (last / first) ** share if self.log else first + (last - first) * share for share in shares
            ]
            rounded = (Decimal(round(value)) if whole else Decimal(f"{value:.4g}") for value in between)
            numbers = [first, *rounded, last]
        return [int(number) if whole else float(number) for number in numbers]


def is_range(value: Any) -> bool:
    """Return whether a value is meant as a range, and not as choices that are called as its keys are."""
    return isinstance(value, dict) and any(
        not isinstance(value.get(key, {}), dict) for key in ("from", "to", *SPACINGS)
    )


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number))


def _kind_of_values(value: Any) -> str:
    return "kdx.Range" if is_range(value) else "kdx.list"


def _kind_of_axis(value: Any) -> str:
    return "kdx.values" if not isinstance(value, dict) or is_range(value) else "kdx.Choice"


def _choices(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        raise not_allowed("a list of at least one value, or a range such as {from: 100, to: 500, step: 100}")
    return value


Values = Annotated[
    Annotated[list[Any], BeforeValidator(_choices), WithJsonSchema({"type": "array", "minItems": 1}), Tag("kdx.list")]
    | Annotated[Range, Tag("kdx.Range")],
    Discriminator(_kind_of_values),
]
"""The values of a factor: a list or a range."""
AxisName = Annotated[str, AfterValidator(axis_name)]
FactorName = Annotated[str, OneOf(factors, key="axis")]
Factors = Annotated[dict[FactorName, Values], Field(min_length=1), WithJsonSchema({"$ref": "#/$defs/Values"})]
_SettingName = Annotated[str, OneOf(lambda: tuple(dict.fromkeys((*settings(), *factors()))), key="key")]
Settings = Annotated[dict[_SettingName, Any], Field(min_length=1), WithJsonSchema({"$ref": "#/$defs/Settings"})]
"""Settings of a cell, nested by section or by factor."""
Preset = Annotated[SkipValidation[str], WithJsonSchema({"$ref": "#/$defs/Preset"})]


class WithSettings(BaseModel):
    """A mapping that has settings of a cell beside its own keys; their values are checked in the cells they make."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Choice(WithSettings):
    """A named choice on an axis: what it sets."""

    __pydantic_extra__: dict[Annotated[str, OneOf(lambda: (*settings(), "preset"), key="key")], Any]
    preset: Preset = ""
    """Shipped settings, as defaults of the choice."""


Axis = Annotated[
    Annotated[Values, Tag("kdx.values")] | Annotated[dict[str, Choice], Field(min_length=1), Tag("kdx.Choice")],
    Discriminator(_kind_of_axis),
]

Axes = Annotated[dict[AxisName, Axis], Field(max_length=MOST_AXES), WithJsonSchema({"$ref": "#/$defs/Axes"})]


def _some_factors(value: Any) -> Any:
    if not isinstance(value, dict | WrittenCondition) or not value:
        raise not_allowed("{factor: value, …}")
    return value


def _factor(name: str, info: ValidationInfo) -> str:
    known = (*(info.context or ()), *factors())
    if name not in known:
        raise unknown_name("factor", (*known, "not"))
    return name


def _values(value: Any) -> Any:
    if isinstance(value, dict) or value == []:
        raise not_allowed("a value, or a list of them")
    return value


class WrittenCondition(BaseModel):
    """A condition on combinations of choices, as `exclude`, `overrides` and `when` have it.

    It is a mapping of factors or axes to words: `{kernel: rbf, symmetry: [symmetric, asymmetric]}` holds where all of
    them agree, and a list is any of its words. The context of its validation is the axes that are no factors.
    """

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[Annotated[str, AfterValidator(_factor)], Annotated[Any, AfterValidator(_values)]]
    unless: "Written | None" = Field(None, alias="not")
    """Another condition, which must not hold."""


Written = Annotated[WrittenCondition, BeforeValidator(_some_factors), WithJsonSchema({"$ref": "#/$defs/Condition"})]
SeveralWritten = Annotated[list[Written], ToList(as_list), Field(min_length=1)]


class Override(Section):
    """Settings for some combinations."""

    when: Written
    """The condition."""
    settings: Settings = Field(alias="set")
    """The settings, nested or by factor."""


Tables = Annotated[list[TableSpec], Field(min_length=1)]


class SubGrid(WithSettings):
    """Axes, approaches and conditions over settings."""

    __pydantic_extra__: dict[Annotated[str, OneOf(lambda: (*settings(), *SUB_GRID), key="key")], Any]
    axes: Axes = {}
    """What varies; axes multiply. A key with a list or range of values, or a new name with named choices, each of which
    sets several keys."""
    zip: Annotated[list[Factors], ToList(as_list), Field(min_length=1, max_length=MOST_AXES)] = []
    """Keys that vary together: all first values, then all second values, and so on."""
    approaches: dict[str, Choice] = {}
    """Named bundles of settings, which make one axis."""
    exclude: SeveralWritten = []
    """Combinations to leave out, each by a condition: axes or keys with values, all of which must match; a list matches
    any of its values, and `not` negates."""
    overrides: Annotated[list[Override], ToList(as_list), Field(min_length=1)] = []
    """What is set in every combination that fulfils a condition."""
    preset: Preset = ""
    """Shipped settings, as defaults."""


def _settings(value: Any) -> Any:
    if not isinstance(value, dict):
        raise not_allowed("a mapping of settings")
    return value


LaidOver = Annotated[dict[str, Any], BeforeValidator(_settings), WithJsonSchema({"$ref": "#/$defs/SubGrid"})]
"""A sub-grid before it is laid over what all sub-grids share, and checked."""
_NAME = {"type": "string", "pattern": PATTERN, "maxLength": LONGEST_NAME}


class GridFile(SubGrid):
    """A whole grid."""

    __pydantic_extra__: dict[Annotated[str, OneOf(lambda: (*GRID, *settings()), key="key")], Any]
    name: Annotated[str, BeforeValidator(_name), WithJsonSchema(_NAME)] = ""
    """What the sweep is called; default: the file's name."""
    description: Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string", "pattern": r"\S"})] = ""
    """What the grid is for."""
    extends: str = ""
    """A grid to build on, by its path or shipped name: mappings merge key by key, other values replace, null removes an
    entry."""
    seeds: Seeds = (0,)
    """How many seeds each cell has, or which, such as [0, 1]; default: seed 0 alone. {min: 3, max: 12, until: decided}
    adds seeds while the comparison with the baseline is open."""
    tune: Tune | None = None
    """Parameters that are searched in each cell, on validation alone and with the same budget; the best trial's cell is
    then trained with fresh seeds."""
    tables: Tables = []
    """The tables of the report; default: one over all axes."""
    evaluations: dict[str, EvaluationChoices] = {}
    """Evaluations of each completed run, by name; a list makes one evaluation for each value."""
    tasks: Annotated[dict[Annotated[str, OneOf(TASKS, key="task")], LaidOver], Field(min_length=1)] = {}
    """A sub-grid for each of several tasks, on top of the keys that all share."""
    grids: Annotated[dict[str, LaidOver], Field(min_length=1)] = {}
    """Several sub-grids, by new names, on top of the keys that all share."""


SUB_GRID = tuple(SubGrid.model_fields)
"""The keys that a sub-grid may have beside its settings."""
GRID = (*(key for key in GridFile.model_fields if key not in SUB_GRID), *SUB_GRID)
"""Those of a whole grid."""
