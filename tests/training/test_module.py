"""The loss, its clipping and its optimiser, as both tasks have them."""

import math

import pytest
import torch
from runs import cell
from torch import Tensor, nn
from torch.nn import functional

from kdx.axes import Split
from kdx.models.softmax import FullSoftmax
from kdx.training.module import TaskModule, exponential

WORDS = 7


class Guesses(TaskModule):
    """Scores a batch of (logits, targets) as it is; its one trained parameter is the logits' factor."""

    def __init__(self, **training) -> None:
        model = nn.Linear(1, 1, bias=False)
        nn.init.ones_(model.weight)
        super().__init__(cell("prediction", **training), model)
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
    assert module.metrics["loss"] == pytest.approx(nats / 38)
    assert module.metrics["perplexity"] == math.exp(module.metrics["loss"])


def test_nats_are_summed_in_sixty_four_bits():
    module = Guesses()
    logits, targets = torch.zeros(1, 5000, WORDS), torch.ones(1, 5000, dtype=torch.long)
    for _ in range(3):
        module.evaluate((logits, targets), Split.TEST)
    of_one = functional.cross_entropy(logits[0, :1], targets[0, :1]).double().item()
    assert module.summarise(Split.TEST)["loss"] == pytest.approx(of_one, rel=1e-14)


@pytest.mark.parametrize(("clip", "expected"), [(None, 5.0), (1.0, 1.0), (10.0, 5.0)])
def test_the_gradient_is_clipped_to_its_norm_and_never_enlarged(clip, expected):
    module = Guesses(clip=clip)
    module.model.weight.grad = torch.full((1, 1), 5.0)
    module.on_before_optimizer_step(None)
    assert module.model.weight.grad.item() == pytest.approx(expected, rel=1e-5)


def test_the_optimiser_is_adamw_as_the_cell_says():
    training = {"learning_rate": 0.5, "betas": (0.8, 0.9), "epsilon": 1e-3, "weight_decay": 0.1, "schedule": "constant"}
    module = Guesses(warmup=0, **training)
    made = module.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    module.model.weight.grad = torch.full((1, 1), 0.3)
    optimizer.step()
    scheduler.step()
    # Bias correction makes the first step's moments the gradient itself (Loshchilov & Hutter 2019, Algorithm 2).
    assert module.model.weight.item() == pytest.approx(1 - 0.5 * (0.3 / (0.3 + 1e-3) + 0.1), rel=1e-5)
    assert scheduler.get_last_lr() == [0.5]


def test_the_fused_optimiser_gives_the_same_bits_wherever_weights_lie_in_memory():
    def steps(offset: int) -> list[Tensor]:
        module, generator = Guesses(), torch.Generator().manual_seed(0)
        shapes = [(7,), (33, 17), (129, 65)]
        parameters = []
        for shape in shapes:
            memory = torch.empty(math.prod(shape) + offset)[offset:].view(shape)
            parameters.append(nn.Parameter(memory.copy_(torch.randn(shape, generator=generator))))
        module.model.extra = nn.ParameterList(parameters)
        optimizer = module.configure_optimizers()["optimizer"]
        for _ in range(5):
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimizer.step()
        return parameters

    first = steps(0)
    for offset in range(1, 17):
        assert all(torch.equal(one, other) for one, other in zip(first, steps(offset), strict=True))


@pytest.mark.parametrize(
    ("loss", "expected"), [(0.0, 1.0), (1.0, math.e), (700.0, math.inf), (1e9, math.inf), (math.inf, math.inf)]
)
def test_a_perplexity_beyond_any_float_is_infinite(loss, expected):
    assert exponential(loss) == expected


def test_the_perplexity_of_no_number_is_none():
    assert math.isnan(exponential(math.nan))
