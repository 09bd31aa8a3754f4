"""The loss and the sums of an evaluation, as both tasks on text have them."""

import math
from types import SimpleNamespace

import pytest
import torch
from runs import cell
from torch import Tensor, nn
from torch.nn import functional

from kdx.models.softmax import FullSoftmax
from kdx.training.text import TextModule
from kdx.vocabulary import Split

WORDS = 7
FACTS = {f"{split}/{name}": value for split in Split for name, value in (("spelling_nats", 3.0), ("bytes", 50))}


class Guesses(TextModule):
    """Scores a batch of (logits, targets) as it is; its one trained parameter is the logits' factor."""

    def __init__(self, **training) -> None:
        model = nn.Linear(1, 1, bias=False)
        nn.init.ones_(model.weight)
        super().__init__(cell("prediction", **training), model, SimpleNamespace(facts=FACTS))
        model.output = FullSoftmax(WORDS, WORDS).requires_grad_(False)
        nn.init.eye_(model.output.weight)

    def hidden_and_targets(self, batch):
        logits, targets = batch
        return logits * self.model.weight, targets


def draw(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, WORDS, generator=generator), torch.randint(1, WORDS, shape, generator=generator)


def test_padding_counts_neither_in_training_nor_in_evaluation():
    logits, targets = draw(2, 5)
    targets[0, 3:] = 0
    module = Guesses()
    kept = functional.cross_entropy(logits[targets != 0], targets[targets != 0])
    torch.testing.assert_close(module.training_step((logits, targets), 0), kept)
    module.evaluate((logits, targets), Split.VALID)
    assert module.summarise(Split.VALID)["loss"] == pytest.approx(kept.item())


def test_label_smoothing_is_in_the_training_loss_and_in_no_evaluation():
    logits, targets = draw(2, 5)
    module = Guesses(label_smoothing=0.2)
    sharp = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    uniform = -functional.log_softmax(logits, -1).mean()
    torch.testing.assert_close(module.training_step((logits, targets), 0), 0.8 * sharp + 0.2 * uniform)
    module.evaluate((logits, targets), Split.TEST)
    assert module.summarise(Split.TEST)["loss"] == pytest.approx(sharp.item())


def test_an_evaluation_is_a_mean_over_tokens_not_over_batches_and_starts_anew():
    one, other = draw(1, 2), draw(4, 9, seed=1)
    module = Guesses()
    for _ in range(2):
        module.on_validation_epoch_start()
        for batch in (one, other):
            module.validation_step(batch, 0)
        module.on_validation_epoch_end()
    nats = sum(
        functional.cross_entropy(x.flatten(0, 1).double(), y.flatten(), reduction="sum").item() for x, y in (one, other)
    )
    assert module.results["loss"] == pytest.approx(nats / 38)
    assert module.results["perplexity"] == math.exp(module.results["loss"])
