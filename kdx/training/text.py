"""What the two tasks on text share: the next token of a vocabulary, by a softmax that may be adaptive."""

from typing import Any, cast

from torch import Tensor

from kdx.axes import Split
from kdx.data.vocabulary import PADDING
from kdx.models.softmax import Softmax
from kdx.training.module import TaskModule


class TextModule(TaskModule):
    """Cross-entropy of each token, padding aside."""

    def hidden_and_targets(self, batch: Any) -> tuple[Tensor, Tensor]:
        """What the last layer gives (B, T, M), and the tokens (B, T) to predict from it."""
        raise NotImplementedError

    @property
    def _softmax(self) -> Softmax:
        return cast(Softmax, self.model.output)

    def loss(self, batch: Any) -> Tensor:
        return self._softmax.loss(*self.hidden_and_targets(batch), self.spec.training.label_smoothing)

    def evaluate(self, batch: Any, split: Split) -> None:
        hidden, targets = self.hidden_and_targets(batch)
        self.add(self._softmax.nats(hidden, targets), int((targets != PADDING).sum()))
