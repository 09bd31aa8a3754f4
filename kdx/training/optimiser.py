"""The optimisers of a cell, each as its library defines it; all decouple weight decay from the gradient."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from lion_pytorch import Lion
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from kdx.grid.sections import Training
from kdx.vocabulary import Optimiser


def optimiser_of(model: nn.Module, training: Training) -> Optimizer:
    """Return the cell's optimiser at its peak rate.

    Muon (Jordan et al. 2024) makes the update of a matrix nearly orthogonal. It updates only the matrices inside the
    layers; AdamW updates all other parameters. Muon's update is scaled as in Liu et al. 2025, so both use one learning
    rate and one weight decay.
    """
    rate, decay = training.learning_rate, training.weight_decay
    if training.optimiser is Optimiser.LION:
        return Lion(model.parameters(), lr=rate, betas=training.betas, weight_decay=decay)
    if training.optimiser is Optimiser.ADAMW:
        return _adamw(model.parameters(), training)
    hidden = hidden_matrices(model)
    inside = {id(matrix) for matrix in hidden}
    muon = Muon(hidden, lr=rate, weight_decay=decay, momentum=training.momentum, adjust_lr_fn="match_rms_adamw")
    others = _adamw([parameter for parameter in model.parameters() if id(parameter) not in inside], training)
    return Together([muon, others])


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """Return the weight (outputs, inputs) of each linear map inside the layers, once.

    Tables of positions, Transformer-XL's u and v (biases of each head), and a convolution's kernel (a matrix for each
    distance) are not linear maps.
    """
    return [
        module.weight
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and "layers" in name.split(".")
    ]


class Together(Optimizer):
    """Several optimisers that step together, each with its own parameters; one schedule sets the rate of all."""

    def __init__(self, optimisers: Iterable[Optimizer]) -> None:
        self.optimisers = tuple(optimisers)
        # The groups themselves, so that setting a rate here sets it in each optimiser.
        super().__init__([group for optimiser in self.optimisers for group in optimiser.param_groups], {})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step every optimiser, after calling the closure if there is one; return the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for optimiser in self.optimisers:
            optimiser.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all optimisers, in their order."""
        return {"optimisers": [optimiser.state_dict() for optimiser in self.optimisers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for optimiser, state in zip(self.optimisers, state_dict["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        # Each optimiser has new groups now.
        self.param_groups = [group for optimiser in self.optimisers for group in optimiser.param_groups]


def _adamw(parameters: Iterable[Tensor], training: Training) -> AdamW:
    return AdamW(
        parameters,
        lr=training.learning_rate,
        betas=training.betas,
        eps=training.epsilon,
        weight_decay=training.weight_decay,
        fused=True,
    )
