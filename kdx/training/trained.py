"""A model with the weights that a run was tested with, to look into."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from kdx.data.corpus import Corpus
from kdx.errors import KdxError
from kdx.grid.spec import CellSpec
from kdx.models.former_names import todays_names
from kdx.tasks import TASKS
from kdx.training.attention_weights import watched
from kdx.training.checkpoint import unpacked


@dataclass(frozen=True)
class Trained:
    """A trained model."""

    spec: CellSpec
    """The resolved cell."""
    model: nn.Module
    """On the CPU, set to evaluate."""
    corpus: Corpus | None
    """What it learned from, with the vocabulary; None where that text is not here."""

    @torch.no_grad()
    def attention(self, *inputs: Tensor, **named: Tensor) -> dict[str, Tensor]:
        """Every attention's normalised weights, by Eq. 2 as printed, while the model reads these inputs once.

        Returns:
            Module name, such as `decoder.layers.0.self_attention` → (B, H, Tq, Tk).
        """
        found: dict[str, Tensor] = {}
        with watched(self.model, lambda name, weights, _: found.update({name: weights})):
            self.model(*inputs, **named)
        return found


def model_of(spec: CellSpec, weights: bytes, place: Path) -> nn.Module:
    """The cell's model with these weights.

    Args:
        weights: content of a file that `CheckpointFiles` wrote as `best` or `average`.

        place: that file.

    Raises:
        KdxError: it holds no weights, or those of a model that has other parameters than this code builds.
    """
    try:
        state = todays_names(unpacked(weights))
    except ValueError as error:
        raise KdxError(
            "this file holds no weights that kdx wrote, and nothing in it was run",
            place=str(place),
            hint="put the file back that kdx wrote, from a backup; else train the run again, into a new database",
        ) from error
    try:
        model = TASKS[spec.task].module_class().model_of(spec, state)
        model.load_state_dict(state)
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        raise KdxError(
            "these weights are of another model than this kdx builds of the cell",
            place=str(place),
            hint="take the kdx that trained it: kdx trace tells its version, code and commit",
        ) from error
    return model.eval()
