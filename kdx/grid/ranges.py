"""Numbers of an axis by their ends: `{from: 1e-4, to: 1e-2, log: 5}`, `{…, linear: 5}`, or `{…, step: 100}`.

They are computed in decimals, so that a step of 0.1 gives 0.3 and not 0.30000000000000004. Where all that is written is
whole, so are they; between other ends a linear and a logarithmic range have numbers of four significant digits.
"""

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from kdx.grid.sections import Bounded, Number, PositiveNumber, Section, refuse

MOST_NUMBERS = 1000
SPACINGS = ("linear", "log", "step")
_EXAMPLE = "such as {from: 1e-4, to: 1e-2, log: 5}"
HowMany = Annotated[int, Bounded(ge=2, le=MOST_NUMBERS)]


class Range(Section):
    """Numbers by their ends."""

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
            allowed = f"`from`, `to`, and one of linear, log (how many numbers) and step, {_EXAMPLE}"
            raise refuse("", "a range without a spacing, or with several", allowed=allowed)
        first, last = self.first, self.last
        if first >= last:
            hint = f"swap its ends: {{from: {last}, to: {first}}}" if first > last else None
            problem = f"a range from {first} to {last}"
            raise refuse("from", problem, allowed="from a smaller to a larger number", hint=hint)
        if self.log is not None and first <= 0:
            raise refuse("", f"a logarithmic range from {first}", allowed="from a number above 0")
        if self.step is not None:
            count = int((_decimal(last) - _decimal(first)) / _decimal(self.step)) + 1
            if count > MOST_NUMBERS:
                raise refuse("step", f"{count:,} numbers in a range", allowed=f"at most {MOST_NUMBERS:,}")
        elif len(set(self.numbers)) < len(self.numbers):
            spacing = "log" if self.log is not None else "linear"
            problem = f"{len(self.numbers)} whole numbers between {first} and {last} are not all different"
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
    """Whether a value is meant as a range."""
    return isinstance(value, dict) and not {"from", "to", *SPACINGS}.isdisjoint(value)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number))
