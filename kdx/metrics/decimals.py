"""How numbers of a metric are written, wherever a person reads them."""

from math import isfinite, isnan

_DECIMALS = {"loss": 3, "bits_per_dimension": 3, "length_ratio": 3, "parameters": 0}
_LONGEST = 1e6
"""Numbers from here on are written with an exponent, since a perplexity can be astronomical."""


def rounded(value: float, metric: str) -> str:
    """`value` with 3 decimals for a loss and for metrics of about that size, else with 2; counts have none."""
    if not isfinite(value):
        return "nan" if isnan(value) else "∞" if value > 0 else "-∞"
    decimals = _DECIMALS.get(metric.rpartition("/")[2], 2)
    return f"{value:.2e}" if abs(value) >= _LONGEST and decimals else f"{value:z.{decimals}f}"
