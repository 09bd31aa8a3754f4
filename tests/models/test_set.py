"""The model of sets does not see in which order elements are listed, nor padding."""

import pytest
import torch
from cells import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.attention.kernels import KERNELS
from kdx.data.corpora.synthetic_sets import FEATURES, MOST, PAIRS
from kdx.grid.spec import CellSpec
from kdx.models.set import SetModel


def model(seed: int = 0, **axes) -> SetModel:
    torch.manual_seed(seed)
    spec = CellSpec.model_validate({"task": "set", "data": {"corpus": "any"}, "model": SMALL, **axes})
    return SetModel(spec).double().eval()


def elements(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def there(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.bool)


close = {"rtol": 0.0, "atol": 1e-12}
PLACELESS = [known.word for known in KERNELS.definitions() if not known.sees_positions]
STABLE = [kernel for kernel in PLACELESS if kernel != "linear"]  # whose division loses the last digits


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(STABLE),
    st.sampled_from(["asymmetric", "symmetric"]),
    st.sampled_from(["attention", "equivariant"]),
    st.permutations(range(MOST)),
)
def test_the_order_of_the_elements_does_not_matter(kernel, symmetry, mixer, order):
    arm, x = model(kernel=kernel, symmetry=symmetry, mixer=mixer), elements(3, MOST)
    logits = arm(x, there(3, MOST))
    assert logits.shape == (3, 1, PAIRS + 1)
    torch.testing.assert_close(arm(x[:, order], there(3, MOST)), logits, **close)


@pytest.mark.parametrize("mixer", ["attention", "equivariant", "convolution"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_changes_nothing(mixer, norm):
    arm, x = model(mixer=mixer, norm=norm), elements(2, 6)
    padded = torch.cat([x, elements(2, 4, seed=1)], 1)
    hidden = torch.cat([there(2, 6), ~there(2, 4)], 1)
    torch.testing.assert_close(arm(padded, hidden), arm(x, there(2, 6)), **close)
