"""What a layer remembers of the segment before."""

import pytest
import torch
from torch import Tensor

from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.memory import Memory
from kdx.vocabulary import Norm


def test_the_newest_tokens_are_kept_and_older_ones_leave():
    memory = Memory(3)
    first, second = torch.arange(4.0).reshape(1, 4, 1), torch.arange(4.0, 6.0).reshape(1, 2, 1)
    assert memory.renew(0, first) is None
    assert memory.renew(0, second).flatten().tolist() == [1, 2, 3]
    assert memory.layers[0].flatten().tolist() == [3, 4, 5]


def test_no_gradient_flows_into_what_is_remembered():
    memory, x = Memory(2), torch.ones(1, 2, 1, requires_grad=True)
    memory.renew(0, x * 2)
    assert not memory.layers[0].requires_grad


def model(**settings) -> LanguageModel:
    torch.manual_seed(1)
    spec = CellSpec.model_validate(
        {
            "task": "prediction",
            "data": {"corpus": "text"},
            "model": {"width": 16, "heads": 2, "decoder_layers": 1, "inner": 16, "dropout": 0.0},
            "memory": 6,
            **settings,
        }
    )
    return LanguageModel(spec, 20).double().eval()


@pytest.mark.parametrize("position", [None, "relative", "lookup", "alibi", "rotary"])
@pytest.mark.parametrize("norm", Norm)
def test_one_layer_with_memory_is_one_long_pass(position, norm):
    network = model(position=position or "none", norm=norm)
    tokens = torch.randint(4, 20, (2, 12), generator=torch.Generator().manual_seed(3))
    memory = Memory(6)
    parts: list[Tensor] = [network(part, memory) for part in tokens.split(6, 1)]
    # With one layer and a memory as long as the segment, every key of the long pass is in sight.
    torch.testing.assert_close(parts[1], network(tokens)[:, 6:], rtol=1e-9, atol=1e-9)
