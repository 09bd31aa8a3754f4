"""How many seeds the cells of a grid get where that depends on what the first ones show: `seeds: {min, max, until}`."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from kdx.grid.sections import Bounded, Section, refuse
from kdx.grid.source import written

DECIDED = "decided"
"""Until the comparison of a cell with its baseline is decided."""
FEWEST, MOST = 2, 50
"""Seeds of a rule: one has no spread, and the levels of fifty looks take four seconds to compute."""


def _until(value: Any) -> str | dict[str, float]:
    """`decided`, or metric → half-width.

    Raises:
        PydanticCustomError: it is neither.
    """
    allowed = f"{DECIDED}, or a half-width above 0 for each metric, such as {{bleu: 0.3}}"
    if value == DECIDED:
        return DECIDED
    if not isinstance(value, dict) or not value:
        raise refuse("", f"`{written(value)}` as until", allowed=allowed)
    for metric, width in value.items():
        if not isinstance(width, int | float) or isinstance(width, bool) or not 0 < width < inf:
            raise refuse(
                metric, f"`{written(width)}` as half-width of {metric}", allowed="a number above 0, in its units"
            )
    return {metric: float(width) for metric, width in value.items()}


_WIDTHS = {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}, "minProperties": 1}
_UNTIL = {"anyOf": [{"const": DECIDED}, _WIDTHS]}


class SeedRule(Section):
    """Seeds 0, 1, … of a cell, as many as it takes."""

    min: Annotated[int, Bounded(ge=FEWEST, le=MOST)]
    """Seeds that every cell has."""
    max: Annotated[int, Bounded(ge=FEWEST, le=MOST)]
    """Seeds that a cell has at most."""
    until: Annotated[str | dict[str, float], BeforeValidator(_until), WithJsonSchema(_UNTIL)]
    """`decided`: until the comparison with the baseline is decided. Or metric → half-width, in its units: until the
    interval of the mean is no wider."""

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
    def widths(self) -> dict[str, float]:
        """Metric → half-width; empty until decided."""
        return self.until if isinstance(self.until, dict) else {}

    @property
    def number(self) -> str:
        """`3 to 12 seeds`."""
        return f"{self.min} to {self.max} seeds"

    def __str__(self) -> str:
        """`3 to 12 seeds a cell, until decided`."""
        widths = " and ".join(f"{metric} ± {width:g}" for metric, width in self.widths.items())
        return f"{self.number} a cell, until {widths or DECIDED}"


def rule_of(grid: Mapping[str, Any]) -> SeedRule | None:
    """The rule of a recorded grid, if it has one.

    Raises:
        ValidationError: this kdx does not know such a rule.
    """
    return SeedRule.model_validate(grid["seed_rule"]) if "seed_rule" in grid else None
