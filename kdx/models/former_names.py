"""Parameters whose names have changed: weights that an earlier kdx kept are read under the names of today."""

import re
from collections.abc import Mapping
from typing import TypeVar

_T = TypeVar("_T")

# Until 0.1.0 a layer's attentions were `own` and `across`, and their residual sums `own_residual`, `across_residual`.
# Directly below the layer's number only: the equivariant mixer has a parameter `own`, which stays.
_FORMER = re.compile(r"(.*\blayers\.\d+\.)(own|across)((?:_residuals?)?\..*)")
_TODAY = {"own": "self_attention", "across": "cross_attention"}


def todays_names(state: Mapping[str, _T]) -> dict[str, _T]:
    """The same values in the same order, by the names that parameters have now."""
    return {_todays(name): value for name, value in state.items()}


def _todays(name: str) -> str:
    found = _FORMER.fullmatch(name)
    return f"{found[1]}{_TODAY[found[2]]}{found[3]}" if found else name
