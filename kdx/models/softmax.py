"""The output layers: the distribution of the next token over all words at once, or by clusters of rarer words.

Both have the same interface. N is the number of targets.
"""

from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from kdx.data.vocabulary import PADDING
from kdx.errors import KdxError

# Rows of logits: the fastest of 64, 256 and 1,500 for 1,500 targets, forward and backward on one CPU core: 0.57, 0.54
# and 0.44 of the time of whole logits for 2,000, 4,000 and 8,000 words.
_CHUNKS = nn.LinearCrossEntropyOptions(batch_chunk_size=256)


class Softmax(Protocol):
    """The interface that training and evaluation use."""

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return the mean nats of targets (B, T), except padding, from hidden (B, T, M); `smoothing`: Szegedy et al."""

    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return -ln p of each target, (N,), 0 for padding."""


class FullSoftmax(nn.Linear):
    """One dot product for every word, without bias.

    Args:
        width: M.
        size: V.
        tied_to: embedding whose matrix is the output's as well; None for a separate, Xavier-uniform matrix.
    """

    def __init__(self, width: int, size: int, tied_to: nn.Embedding | None = None) -> None:
        super().__init__(width, size, bias=False)
        if tied_to is None:
            nn.init.xavier_uniform_(self.weight)
        else:
            self.weight = tied_to.weight

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """See `Softmax.loss`."""
        hidden, targets = hidden.flatten(0, 1), targets.flatten()
        if not _fits_chunks(hidden):
            logits = _wide(self(hidden))
            return functional.cross_entropy(logits, targets, ignore_index=PADDING, label_smoothing=smoothing)
        loss = functional.linear_cross_entropy(hidden, self.weight, targets, ignore_index=PADDING, options=_CHUNKS)
        if not smoothing:
            return loss
        # The mean of -ln p over all words is the target's -ln p plus its logit minus the mean of all logits. That mean
        # is linear in the weights, so no other logit is needed.
        more = ((functional.embedding(targets, self.weight) - self.weight.mean(0)) * hidden).sum(-1)
        return loss + smoothing * more.masked_fill(targets == PADDING, 0.0).sum() / (targets != PADDING).sum()

    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """See `Softmax.nats`."""
        return _nats(self(hidden).flatten(0, 1), targets.flatten())


class AdaptiveSoftmax(nn.Module):
    """p(word) = p(its cluster) p(word | its cluster)          [Grave et al. 2017]

    The first cluster has its words and one more logit for each other cluster. The logits of another cluster are
    computed only for the targets in it, which are few if ids go from frequent words to rare ones. No tensor is as large
    as targets × vocabulary. All clusters have the width M, and each logit has a bias (Dai et al. 2019).

    Args:
        width: M.
        size: V.
        cutoffs: first id of each cluster except the first, in rising order.
        tied_to: as for `FullSoftmax`.

    Raises:
        KdxError: a cutoff is not below V.
    """

    cutoffs: Tensor

    def __init__(self, width: int, size: int, cutoffs: tuple[int, ...], tied_to: nn.Embedding | None = None) -> None:
        super().__init__()
        if cutoffs[-1] >= size:
            raise KdxError(
                f"the cluster of words from rank {cutoffs[-1]} on is empty: the vocabulary has {size} tokens",
                place="model.cutoffs",
                allowed=f"below {size}",
                hint="drop the cutoffs that the text is too small for",
            )
        self.sizes = [stop - start for start, stop in pairwise((0, *cutoffs, size))]
        self.register_buffer("cutoffs", torch.tensor(cutoffs), persistent=False)
        self.weight = nn.Parameter(torch.empty(size, width)) if tied_to is None else tied_to.weight
        self.bias = nn.Parameter(torch.zeros(size))
        self.cluster_weight = nn.Parameter(torch.empty(len(cutoffs), width))
        self.cluster_bias = nn.Parameter(torch.zeros(len(cutoffs)))
        nn.init.xavier_uniform_(self.cluster_weight)
        if tied_to is None:
            nn.init.xavier_uniform_(self.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (…, V) of all words, from (…, M); neither training nor evaluation needs them."""
        head, *tails = (_wide(functional.linear(hidden, *cluster)).log_softmax(-1) for cluster in self._clusters())
        words, shares = head[..., : self.sizes[0]], head[..., self.sizes[0] :]
        return torch.cat([words, *(shares[..., [number]] + tail for number, tail in enumerate(tails))], -1)

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """See `Softmax.loss`; cells with smoothing, which would need every word's probability, are refused earlier."""
        assert not smoothing
        return self.nats(hidden, targets).sum() / (targets != PADDING).sum()

    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """See `Softmax.nats`."""
        hidden, targets = hidden.flatten(0, 1), targets.flatten()
        head, *tails = self._clusters()
        cluster = torch.bucketize(targets, self.cutoffs, right=True)
        in_head = torch.where(cluster == 0, targets, self.sizes[0] - 1 + cluster)
        # Padding is always in the head.
        nats = _nats(functional.linear(hidden, *head), in_head)
        for number, tail in enumerate(tails):
            rows = (cluster == number + 1).nonzero()[:, 0]
            logits = functional.linear(hidden.index_select(0, rows), *tail)
            inside = functional.cross_entropy(_wide(logits), targets[rows] - self.cutoffs[number], reduction="none")
            nats = nats.index_add(0, rows, inside)
        return nats

    def _clusters(self) -> list[tuple[Tensor, Tensor]]:
        """Return weights (words, M) and biases (words,) of each cluster; the first ends with those of the others."""
        # Split, not sliced: the gradient of each slice would be as large as the whole matrix.
        weights, biases = torch.split(self.weight, self.sizes), torch.split(self.bias, self.sizes)
        head = torch.cat([weights[0], self.cluster_weight]), torch.cat([biases[0], self.cluster_bias])
        return [head, *zip(weights[1:], biases[1:], strict=True)]


def _fits_chunks(hidden: Tensor) -> bool:
    """Return whether the loss is faster in chunks of rows: on a CPU, where a cache holds the logits of a chunk."""
    narrow = torch.is_autocast_enabled(hidden.device.type) or torch.finfo(hidden.dtype).bits < 32
    return hidden.device.type == "cpu" and torch.is_grad_enabled() and not narrow


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(_wide(logits), targets, ignore_index=PADDING, reduction="none")


def _wide(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
