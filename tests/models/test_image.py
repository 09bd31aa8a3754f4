"""The model of images predicts each pixel from those before it, and knows rows and columns."""

import pytest
import torch
from cells import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.corpora.synthetic_images import LEVELS, SIDE
from kdx.grid.spec import CellSpec
from kdx.models.image import ImageModel

PIXELS = SIDE * SIDE
ARMS = {
    "none": {},
    "direct sum": {"position": "direct-sum"},
    "product": {"position": "product"},
    "both, t in values, learned": {
        "position": ["direct-sum", "product"],
        "value": "with-position",
        "encoding": "learned",
    },
    "strided": {"position": "product", "filter": {"decoder-self": "strided"}, "stride": SIDE},
    "raster order": {"space": "sequence", "position": "relative"},
    "equivariant": {"mixer": "equivariant"},
    "convolution": {"mixer": "convolution"},
}


def model(seed: int = 0, **axes) -> ImageModel:
    torch.manual_seed(seed)
    spec = CellSpec.model_validate({"task": "image", "data": {"corpus": "any"}, "model": SMALL, **axes})
    return ImageModel(spec).double().eval()


def images(count: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randint(LEVELS, (count, PIXELS), generator=torch.Generator().manual_seed(seed))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(ARMS)), st.sampled_from(["post", "pre"]), st.integers(0, PIXELS - 2))
def test_a_pixel_changes_the_logits_of_those_after_it_alone(name, norm, changed):
    arm, pixels = model(norm=norm, **ARMS[name]), images()
    other = pixels.clone()
    other[:, changed] = (pixels[:, changed] + 1) % LEVELS
    before, after = arm(pixels), arm(other)
    assert before.shape == (2, PIXELS, LEVELS)
    torch.testing.assert_close(before[:, : changed + 1], after[:, : changed + 1], rtol=0.0, atol=1e-12)
    assert not torch.allclose(before[:, changed + 1], after[:, changed + 1])


@pytest.mark.parametrize("name", ARMS)
def test_every_weight_learns(name):
    arm = model(**ARMS[name])
    arm(images()).logsumexp(-1).sum().backward()
    for weight, parameter in arm.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), weight


def test_of_pixels_that_are_alike_row_and_column_decide_each_for_itself():
    attention = model(position="product").decoder.layers[0].self_attention
    weights = attention.weights(torch.zeros(1, PIXELS, SMALL["width"]).double())[0, :, -1]
    log = weights.log().unflatten(-1, (SIDE, SIDE))  # a term of the row and one of the column
    torch.testing.assert_close(log - log[:, :1] - log[:, :, :1] + log[:, :1, :1], torch.zeros_like(log))
    assert log.std((1, 2)).min() > 0.01
