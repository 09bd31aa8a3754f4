"""P-values corrected for multiple comparisons."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrects p-values for all of them (Holm 1979)."""
    p = np.array(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [float(p_value) for p_value in corrected]
