"""A temperature divides the logarithm of the weight, whatever the kernel that has one."""

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels import KERNELS

TEMPERED = [known.word for known in KERNELS.definitions() if "temperature" in known.option_names]


@pytest.mark.parametrize("word", TEMPERED)
def test_the_logarithm_of_the_weight_is_divided_by_it(word: str) -> None:
    query, key = torch.randn(2, 1, 1, 3, 4, dtype=torch.float64)
    plain, cool = (KERNELS[word](Settings(4, 1, 4), temperature=given) for given in (1, 0.5))
    torch.testing.assert_close(cool.log_weight(query, key), 2 * plain.log_weight(query, key))


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), "hot", True])
def test_what_is_no_temperature_is_refused(temperature: object) -> None:
    with pytest.raises(ValueError, match=r"temperature: .*; allowed: a number above 0"):
        KERNELS["rbf"](Settings(4, 1, 4), temperature=temperature)
