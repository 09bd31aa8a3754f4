"""The seeds that a grid asks for: a number, a list, or a rule by which the first ones show how many it takes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema, model_validator

from kdx.grid.field_types import Bounded, Section, distinct_list, not_allowed, refuse

MOST_SEEDS = 1_000_000
LARGEST_SEED = 2**32 - 1
FEWEST, MOST = 2, 50
"""Seeds of a rule: one has no spread, and the levels of fifty looks take four seconds to compute."""


class SeedRule(Section):
    """Seeds 0, 1, … of a cell, as many as it takes."""

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
    """The rule of a recorded grid, if it has one.

    Raises:
        ValidationError: this kdx does not know such a rule.
    """
    return SeedRule.model_validate(grid["seed_rule"]) if "seed_rule" in grid else None


def _seeds(value: Any) -> tuple[int, ...]:
    """Return the seeds 0, 1, … of a number, or those of a list.

    Raises:
        PydanticCustomError: it is neither.
    """
    if type(value) is int and 1 <= value <= MOST_SEEDS:
        return tuple(range(value))
    of_list = (
        isinstance(value, list) and value and all(type(seed) is int and 0 <= seed <= LARGEST_SEED for seed in value)
    )
    if of_list and len(set(value)) == len(value):
        return tuple(value)
    raise not_allowed(
        "a number of seeds, a list of different whole numbers from 0, or {min: 3, max: 12, until: decided}"
    )


def _kind(value: Any) -> str:
    return "<SeedRule>" if isinstance(value, dict) else "<seeds>"


_SEEDS = [
    {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
    distinct_list({"type": "integer", "minimum": 0, "maximum": LARGEST_SEED}),
]
Seeds = Annotated[
    Annotated[tuple[int, ...], BeforeValidator(_seeds), WithJsonSchema({"anyOf": _SEEDS}), Tag("<seeds>")]
    | Annotated[SeedRule, Tag("<SeedRule>")],
    Discriminator(_kind),
]


def seeds_of(seeds: tuple[int, ...] | SeedRule) -> tuple[int, ...]:
    """Return every seed that a cell may have."""
    return seeds if isinstance(seeds, tuple) else seeds.seeds
