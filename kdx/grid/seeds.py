"""The seeds that a grid asks for: a number, a list, or a rule by which the first ones show how many it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, GetCoreSchemaHandler, GetJsonSchemaHandler, Tag, model_validator
from pydantic_core import CoreSchema, core_schema

from kdx.grid.field_types import Bounded, Schema, Section, not_allowed, refuse

MOST_SEEDS = 1_000_000
LARGEST_SEED = 2**32 - 1
FEWEST, MOST = 2, 50
"""Seeds of a rule: one has no spread, and the levels of fifty looks take four seconds to compute."""


class SeedRule(Section):
    """Seeds 0, 1, … of a cell, until its comparison is decided."""

    min: Annotated[int, Bounded(ge=FEWEST, le=MOST)]
    """Seeds that every cell has."""
    max: Annotated[int, Bounded(ge=FEWEST, le=MOST)]
    """Seeds that a cell has at most."""
    until: Literal["decided"]
    """A cell gets seeds until its comparison with the baseline is decided."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max < self.min:
            raise refuse("max", f"`{self.max}` as max", allowed=f"from min on, which is {self.min}")
        return self

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed that a cell may get."""
        return tuple(range(self.max))

    @property
    def number(self) -> str:
        """`3 to 12 seeds`."""
        return f"{self.min} to {self.max} seeds"

    def __str__(self) -> str:
        """`3 to 12 seeds a cell, until decided`."""
        return f"{self.number} a cell, until {self.until}"


def rule_of(grid: Mapping[str, Any]) -> SeedRule | None:
    """Return the rule of a recorded grid, or None if it has none.

    Raises:
        ValidationError: this kdx does not know such a rule.
    """
    return SeedRule.model_validate(grid["seed_rule"]) if "seed_rule" in grid else None


@dataclass(frozen=True)
class NumberOrList:
    """Annotates seeds: in a file, a number of them or a list of different ones."""

    first: int
    """The seed that a number counts from."""
    most: int
    """The largest number."""
    allowed: str
    """This in words."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._seeds, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        number = {"type": "integer", "minimum": 1, "maximum": self.most}
        seed = {"type": "integer", "minimum": 0, "maximum": LARGEST_SEED}
        return {"anyOf": [number, {"type": "array", "items": seed, "minItems": 1, "uniqueItems": True}]}

    def _seeds(self, value: Any) -> tuple[int, ...]:
        if type(value) is int and 1 <= value <= self.most:
            return tuple(range(self.first, self.first + value))
        seeds = value if isinstance(value, list | tuple) else ()
        wrong = any(type(seed) is not int or not 0 <= seed <= LARGEST_SEED for seed in seeds)
        if not seeds or wrong or len(set(seeds)) < len(seeds):
            raise not_allowed(self.allowed)
        return tuple(seeds)


def _kind(value: Any) -> str:
    return "kdx.SeedRule" if isinstance(value, dict) else "kdx.seeds"


_NUMBER_OR_LIST = NumberOrList(
    first=0,
    most=MOST_SEEDS,
    allowed="a number of seeds, a list of different whole numbers from 0, or {min: 3, max: 12, until: decided}",
)
Seeds = Annotated[
    Annotated[tuple[int, ...], _NUMBER_OR_LIST, Tag("kdx.seeds")] | Annotated[SeedRule, Tag("kdx.SeedRule")],
    Discriminator(_kind),
]
