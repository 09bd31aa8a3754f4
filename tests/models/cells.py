"""Small cells, their models, and the axes whose every combination must be a model."""

from itertools import product

import torch
from torch import Tensor, nn

from kdx.attention.kernels import KERNELS
from kdx.data.vocabulary import PADDING
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.vocabulary import Symmetry

VOCABULARY = 11
WIDTH, INNER = 8, 12
SMALL = {"width": WIDTH, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "inner": INNER, "dropout": 0.0}

# The ways in which positions and values may go together (a direct sum at the input is in every value).
POSITIONS = {
    "none": {},
    "none, t in values": {"value": "with-position"},
    "input": {"position": "direct-sum"},
    "per layer": {"position": "direct-sum", "inject": "per-layer"},
    "per layer, t in values": {"position": "direct-sum", "inject": "per-layer", "value": "with-position"},
    "product": {"position": "product"},
    "product, t in values": {"position": "product", "value": "with-position"},
    "product and input": {"position": ["direct-sum", "product"]},
    "product and per layer": {"position": ["direct-sum", "product"], "inject": "per-layer"},
    "product, learned": {"position": "product", "encoding": "learned"},
    "input, learned": {"position": "direct-sum", "encoding": "learned"},
}
OF_A_KERNEL = {
    f"{symmetry}, {name}": {"symmetry": symmetry, **positions}
    for symmetry, (name, positions) in product(Symmetry, POSITIONS.items())
}
EVERY = {
    f"{kernel}, {name}": {"kernel": kernel, **axes} for kernel, (name, axes) in product(KERNELS, OF_A_KERNEL.items())
}


def cell(task: str, model: dict | None = None, **axes) -> CellSpec:
    fields = {"task": task, "data": {"corpus": "any"}, "model": SMALL | (model or {}), **axes}
    return CellSpec.model_validate(fields)


def language(model: dict | None = None, seed: int = 0, **axes) -> LanguageModel:
    """In evaluation mode and double precision."""
    torch.manual_seed(seed)
    return LanguageModel(cell("prediction", model, **axes), VOCABULARY).double().eval()


def translation(model: dict | None = None, seed: int = 0, **axes) -> TranslationModel:
    """In evaluation mode and double precision."""
    torch.manual_seed(seed)
    return TranslationModel(cell("translation", model, **axes), VOCABULARY).double().eval()


def tokens(*shape: int, seed: int = 0) -> Tensor:
    """Ordinary tokens, neither padding nor marks."""
    return torch.randint(4, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def padded(sentences: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Tokens and where they are padding."""
    batch = nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PADDING)
    return batch, batch == PADDING


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def layer_size(attentions: int = 1) -> int:
    """Parameters of a layer without positions: attentions with biases, the feed-forward, a norm for each of them."""
    attention = 4 * (WIDTH * WIDTH + WIDTH)
    feed_forward = 2 * WIDTH * INNER + INNER + WIDTH
    return attentions * attention + feed_forward + (attentions + 1) * 2 * WIDTH
