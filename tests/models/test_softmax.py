"""What a target costs, whether all words are asked at once or cluster by cluster."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from kdx.data.vocabulary import PADDING
from kdx.errors import KdxError
from kdx.models.softmax import AdaptiveSoftmax, FullSoftmax

WIDTH, SIZE = 6, 23
EXACT = {"rtol": 0.0, "atol": 1e-12}


def adaptive(cutoffs: tuple[int, ...] = (9, 14), tied_to: nn.Embedding | None = None, seed: int = 0) -> AdaptiveSoftmax:
    """Return a softmax in double precision, with biases that are not zero."""
    torch.manual_seed(seed)
    softmax = AdaptiveSoftmax(WIDTH, SIZE, cutoffs, tied_to).double()
    for bias in (softmax.bias, softmax.cluster_bias):
        nn.init.normal_(bias)
    return softmax


def drawn(targets: list[list[int]], seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(len(targets), len(targets[0]), WIDTH, generator=generator, dtype=torch.float64)
    return hidden.requires_grad_(), torch.tensor(targets)


def explicit(softmax: AdaptiveSoftmax, hidden: Tensor) -> Tensor:
    """Log-probabilities of all words, word by word as Grave et al. 2017 define them."""
    edges = [0, *softmax.cutoffs.tolist(), SIZE]
    logits = hidden @ softmax.weight.T + softmax.bias
    clusters = hidden @ softmax.cluster_weight.T + softmax.cluster_bias
    head = torch.cat([logits[..., : edges[1]], clusters], -1).logsumexp(-1)
    columns = [logits[..., word] - head for word in range(edges[1])]
    for number, (low, high) in enumerate(pairwise(edges[1:])):
        inside = logits[..., low:high].logsumexp(-1)
        columns += [clusters[..., number] - head + logits[..., word] - inside for word in range(low, high)]
    return torch.stack(columns, -1)


every_cutoffs = st.sets(st.integers(1, SIZE - 1), min_size=1, max_size=4).map(lambda some: tuple(sorted(some)))
every_targets = st.lists(st.integers(0, SIZE - 1), min_size=4, max_size=4)


@settings(max_examples=60, deadline=None)
@given(every_cutoffs, st.lists(every_targets, min_size=1, max_size=3), st.integers(0, 9))
def test_clusters_give_the_nats_of_the_explicit_distribution_and_its_gradients(cutoffs, targets, seed):
    softmax = adaptive(cutoffs, seed=seed)
    hidden, targets = drawn(targets, seed)
    given = softmax.nats(hidden, targets)
    wanted = -explicit(softmax, hidden).gather(-1, targets.unsqueeze(-1)).flatten()
    wanted = wanted.masked_fill(targets.flatten() == PADDING, 0.0)
    torch.testing.assert_close(given, wanted, **EXACT)
    upstream = torch.randn(given.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    read = [hidden, *softmax.parameters()]
    for one, other in zip(
        torch.autograd.grad((given * upstream).sum(), read),
        torch.autograd.grad((wanted * upstream).sum(), read),
        strict=True,
    ):
        torch.testing.assert_close(one, other, **EXACT)


@settings(max_examples=30, deadline=None)
@given(every_cutoffs, st.integers(0, 9))
def test_probabilities_of_all_words_sum_to_one_and_are_those_of_the_explicit_distribution(cutoffs, seed):
    softmax = adaptive(cutoffs, seed=seed)
    hidden, _ = drawn([[1, 2, 3]], seed)
    result = softmax(hidden)
    assert result.shape == (1, 3, SIZE)
    torch.testing.assert_close(result.exp().sum(-1), torch.ones(1, 3, dtype=torch.float64), **EXACT)
    torch.testing.assert_close(result, explicit(softmax, hidden), **EXACT)


def test_the_loss_is_the_mean_over_targets_that_are_not_padding():
    hidden, targets = drawn([[5, PADDING, 12], [22, 8, PADDING]])
    for softmax in (adaptive(), FullSoftmax(WIDTH, SIZE).double()):
        nats = softmax.nats(hidden, targets)
        assert (nats == 0).tolist() == (targets == PADDING).flatten().tolist()
        torch.testing.assert_close(softmax.loss(hidden, targets), nats.sum() / 4, **EXACT)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([1, 5, 255, 256, 257, 300]),
    st.sampled_from([0.0, 0.1, 0.7]),
    st.booleans(),
    st.integers(0, 9),
)
def test_a_full_softmax_has_the_loss_and_the_gradients_of_torchs_cross_entropy(rows, length, smoothing, tied, seed):
    """Rows are computed in chunks, the last of which may be short; padding may be anywhere."""
    generator = torch.Generator().manual_seed(seed)
    softmax = FullSoftmax(WIDTH, SIZE, nn.Embedding(SIZE, WIDTH) if tied else None).double()
    targets = torch.randint(0, SIZE, (rows, length), generator=generator)
    targets[0, 0] = PADDING + 1  # one at least that counts
    hidden = 3 * torch.randn(rows, length, WIDTH, generator=generator, dtype=torch.float64)
    result = []
    for loss in (softmax.loss, _whole(softmax)):
        inputs = hidden.clone().requires_grad_()
        value = loss(inputs, targets, smoothing)
        result.append((value, *torch.autograd.grad(2 * value, [inputs, softmax.weight])))
    torch.testing.assert_close(result[0], result[1], rtol=1e-12, atol=1e-12)


def test_where_nothing_is_learnt_the_loss_is_torchs_to_the_bit():
    torch.manual_seed(0)
    softmax = FullSoftmax(WIDTH, SIZE)
    hidden, targets = torch.randn(2, 3, WIDTH), torch.tensor([[5, PADDING, 12], [22, 8, PADDING]])
    for smoothing in (0.0, 0.1):
        with torch.no_grad():
            assert torch.equal(softmax.loss(hidden, targets, smoothing), _whole(softmax)(hidden, targets, smoothing))
        with torch.autocast("cpu", torch.bfloat16):
            narrow = softmax.loss(hidden, targets, smoothing), _whole(softmax)(hidden, targets, smoothing)
        assert narrow[0].dtype is torch.float32 and torch.equal(*narrow)


def _whole(softmax: FullSoftmax) -> Callable[[Tensor, Tensor, float], Tensor]:
    def loss(hidden: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        logits = (
            functional.linear(hidden, softmax.weight).flatten(0, 1).to(torch.promote_types(hidden.dtype, torch.float))
        )
        return functional.cross_entropy(logits, targets.flatten(), ignore_index=PADDING, label_smoothing=smoothing)

    return loss


@pytest.mark.parametrize("make", [lambda tied: FullSoftmax(WIDTH, SIZE, tied), lambda tied: adaptive(tied_to=tied)])
def test_a_tied_output_has_the_embeddings_matrix_and_moves_it(make):
    embedding = nn.Embedding(SIZE, WIDTH).double()
    softmax = make(embedding)
    assert softmax.weight is embedding.weight
    softmax.loss(*drawn([[5, 12, 22]])).backward()
    assert embedding.weight.grad is not None and embedding.weight.grad[[5, 12, 22]].any(-1).all()


def test_what_is_computed_grows_with_the_targets_of_a_cluster_and_not_with_targets_times_vocabulary():
    size, targets = 50_000, torch.randint(4, 200, (1, 400), generator=torch.Generator().manual_seed(0))
    targets[0, :4] = torch.tensor([300, 4_000, 30_000, 49_999])
    softmax = AdaptiveSoftmax(WIDTH, size, (200, 2_000))
    hidden = torch.randn(1, 400, WIDTH)
    with torch.profiler.profile(record_shapes=True) as profile:
        softmax.loss(hidden, targets).backward()
    shapes = [shape for event in profile.events() for shape in event.input_shapes if shape]
    largest = max(math.prod(shape) for shape in shapes)
    assert largest == size * WIDTH  # the weights themselves; all logits at once would be 400 × 50,000


@pytest.mark.parametrize("cutoffs", [(SIZE,), (9, SIZE), (9, 100)])
def test_a_cutoff_that_leaves_no_words_is_refused_by_name(cutoffs):
    with pytest.raises(KdxError) as refusal:
        AdaptiveSoftmax(WIDTH, SIZE, cutoffs)
    assert str(refusal.value) == (
        f"model.cutoffs: the cluster of words from rank {cutoffs[-1]} on is empty: the vocabulary has {SIZE} tokens\n"
        f"  allowed: below {SIZE}\n  hint: drop the cutoffs that the text is too small for"
    )
