"""The model of several modalities sees what happens when, and nothing of padding."""

import pytest
import torch
from cells import SMALL
from torch import Tensor

from kdx.data.corpora.synthetic_streams import EVERY, EXAMPLES, NO_TIME
from kdx.grid.spec import CellSpec
from kdx.models.multimodal import MultimodalModel
from kdx.vocabulary import Modality, Split

DRAWN = EXAMPLES.generate("any", 0, Split.TRAIN, 3)
STREAMS = {
    name: torch.from_numpy(array).to(torch.float64 if array.dtype.kind == "f" else torch.int64)
    for name, array in DRAWN.inputs.items()
}
SPACES = ("multimodal", "crossmodal", "sequence")
every_space = pytest.mark.parametrize("space", SPACES)
EXACT = {"rtol": 0.0, "atol": 1e-12}


def model(model: dict | None = None, **axes) -> MultimodalModel:
    torch.manual_seed(0)
    sizes = {**SMALL, "width": 24, **(model or {})}
    spec = CellSpec.model_validate({"task": "multimodal", "data": {"corpus": "any"}, "model": sizes, **axes})
    return MultimodalModel(spec).double().eval()


def without(name: Modality, row: int) -> dict[str, Tensor]:
    """The streams, of which one is absent in one example."""
    times = STREAMS[f"{name}_times"].clone()
    times[row] = NO_TIME
    return {**STREAMS, f"{name}_times": times}


def later(streams: dict[str, Tensor], names: list[Modality]) -> dict[str, Tensor]:
    """All that happens in some streams, one unit of time later."""
    times = {f"{name}_times": streams[f"{name}_times"] for name in names}
    return {**streams, **{key: torch.where(when < 0, when, when + 1) for key, when in times.items()}}


@every_space
@pytest.mark.parametrize("position", ["none", "direct-sum", "product", "relative", "rotary"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_weight_learns(space, position, norm):
    arm = model(space=space, position=position, norm=norm)
    logits = arm(**STREAMS)
    assert logits.shape == (3, 1, EXAMPLES.classes)
    logits.logsumexp(-1).sum().backward()
    for weight, parameter in arm.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), weight


@every_space
@pytest.mark.parametrize("position", ["none", "product"])
def test_what_stands_in_padding_changes_nothing(space, position):
    arm = model(space=space, position=position)
    junk = dict(STREAMS)
    for name in EVERY:
        hidden = (STREAMS[f"{name}_times"] < 0)[:, :, None]
        junk[name] = torch.where(hidden, 7.0, STREAMS[name])
    junk["language"] = torch.where(STREAMS["language_times"] < 0, 3, STREAMS["language"])
    more = {name: torch.cat([array, array[:, :2]], 1) for name, array in junk.items()}
    for name in Modality:
        more[f"{name}_times"][:, -2:] = NO_TIME
    logits = arm(**STREAMS)
    torch.testing.assert_close(arm(**junk), logits, **EXACT)
    torch.testing.assert_close(arm(**more), logits, **EXACT)


@every_space
@pytest.mark.parametrize("name", Modality)
def test_an_absent_stream_is_no_trouble_to_the_others(space, name):
    arm = model(space=space, position="product")
    absent, whole = arm(**without(name, row=1)), arm(**STREAMS)
    assert absent.isfinite().all()
    torch.testing.assert_close(absent[[0, 2]], whole[[0, 2]], **EXACT)
    assert not torch.allclose(absent[1], whole[1])
    nothing = arm(**{key: torch.full_like(x, NO_TIME) if "times" in key else x for key, x in STREAMS.items()})
    assert nothing.isfinite().all()


@every_space
def test_the_order_in_which_a_stream_is_listed_does_not_matter_its_times_do(space):
    arm = model(space=space, position="product")
    shuffled = {name: array.flip(1) for name, array in STREAMS.items()}
    torch.testing.assert_close(arm(**shuffled), arm(**STREAMS), **EXACT)
    assert not torch.allclose(arm(**later(STREAMS, [Modality.LANGUAGE])), arm(**STREAMS))


def test_relative_times_are_all_that_matters_to_a_scheme_of_distances():
    arm = model(space="crossmodal", position="relative")
    torch.testing.assert_close(arm(**later(STREAMS, list(Modality))), arm(**STREAMS), rtol=0.0, atol=1e-9)
