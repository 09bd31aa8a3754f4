"""Beam search for the most probable translations, batched over sentences [as in Ott et al. 2019].

At each word all continuations of a sentence's open hypotheses are ranked by log-probability. Those that end, among the
best `beam`, are finished; the best `beam` that do not end stay open. The translation is the finished hypothesis with
the best score, its log-probability over a penalty of its length.

A sentence is done when `beam` of its hypotheses are finished: so a beam of 1 is greedy decoding, and published scores
were found in this way. It is done sooner where no open hypothesis can win any more, which changes no translation: a
log-probability only falls, so the best that an open one can come to is what it has, over the largest penalty. At its
limit a hypothesis is ended, at the log-probability that the end has there.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.vocabulary import LengthPenalty


class Search(NamedTuple):
    """How translations are looked for, in the words of `kdx.grid.sections.Evaluation`."""

    beam: int = 1
    """Hypotheses kept open; 1 is greedy."""
    length_penalty: float = 1.0
    """a of the penalty."""
    penalty: LengthPenalty = LengthPenalty.LENGTH
    """n^a (Ott et al. 2019), or ((5 + n) / 6)^a (Wu et al. 2016, Eq. 14)."""
    longest: tuple[float, int] = (2.0, 10)
    """Tokens of a translation at most: so many for each source token, and so many more."""

    def limits(self, lengths: Tensor) -> Tensor:
        """The most tokens of a translation, its end mark aside, for source lengths (S,), theirs counted: integers (S,).

        Never more than the positions of a learned table allow, in whatever cell, so that cells compare.
        """
        each, more = self.longest
        return ((lengths.double() * each).long() + more).clamp(max=MAX_POSITIONS - 1)

    def penalties(self, lengths: Tensor) -> Tensor:
        """What the log-probability of n tokens is divided by, for integers n; the end mark counts as one."""
        base = lengths.double() if self.penalty is LengthPenalty.LENGTH else (5 + lengths.double()) / 6
        return base**self.length_penalty


def beam_search(
    logits_after: Callable[[Tensor, int], Tensor],
    go_on_with: Callable[[Tensor, bool], None],
    limits: Tensor,
    search: Search,
) -> list[list[int]]:
    """The best translation of each sentence; deterministic: of equals the smaller token, of the better hypothesis.

    The model sees S sentences × W open hypotheses as rows, the hypotheses of a sentence together; at first W = 1.

    Args:
        logits_after: tokens (S·W,) at a position, counted from 0, to the logits (S·W, V) of the next.
        go_on_with: from now on the model's rows are these of its rows (integers), repeats allowed; the flag says
            whether a row's sentence may have changed.
        limits: of each sentence, the most tokens that its translation may have, integers (S,).
        search: how.

    Returns:
        Token ids without the end mark; none where no sequence has a positive probability.
    """
    device = limits.device
    translations: list[list[int]] = [[] for _ in range(len(limits))]
    sentences = torch.arange(len(limits), device=device)  # those not done yet
    best = torch.full((len(limits),), -torch.inf, dtype=torch.float64, device=device)  # score of the translation so far
    finished = torch.zeros_like(limits)  # hypotheses
    earliest = int(limits.min()) if len(limits) else 0
    scores = torch.zeros(len(limits), 1, dtype=torch.float64, device=device)  # log-probabilities, (S, W)
    prefixes = torch.empty(len(limits), 1, 0, dtype=torch.long, device=device)  # tokens of the hypotheses, (S, W, T)
    tokens = torch.full((len(limits),), BEGIN, device=device)
    step = 0
    while len(sentences):
        closing = limits == step if step >= earliest else None
        ranked, parents, words = _ranked(logits_after(tokens, step), scores, closing, search.beam)

        ends = words == END
        ended = ends & (ranked > -torch.inf)
        ended[:, search.beam :] = False
        finished = finished + ended.sum(1)
        score = (ranked / search.penalties(torch.tensor(step + 1))).masked_fill(~ended, -torch.inf)
        score, winner = score.max(1)
        for place in (score > best).nonzero()[:, 0].tolist():
            translations[int(sentences[place])] = prefixes[place, parents[place, winner[place]]].tolist()
        best = best.maximum(score)

        # Those that do not end come first, still the best first.
        stays = ends.int().sort(dim=1, stable=True).indices[:, : search.beam]
        scores = ranked.masked_fill(ends, -torch.inf).gather(1, stays)
        reachable = scores[:, 0] / search.penalties(limits + 1)
        left = ((finished < search.beam) & (reachable > best)).nonzero()[:, 0]
        parents, words = parents[left].gather(1, stays[left]), words[left].gather(1, stays[left])
        rows = (left * prefixes.size(1))[:, None] + parents
        fewer, wider = len(left) < len(sentences), parents.size(1) != prefixes.size(1)
        prefixes = torch.cat([prefixes.flatten(0, 1)[rows], words[:, :, None]], 2)
        sentences, best, finished = sentences[left], best[left], finished[left]
        limits, scores, tokens = limits[left], scores[left], words.flatten()
        if len(left):
            go_on_with(rows.flatten(), fewer or wider)
        step += 1
    return translations


def _ranked(logits: Tensor, scores: Tensor, closing: Tensor | None, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """Continuations of each sentence's hypotheses, the most probable first: all that can be among the best `beam`.

    Args:
        logits: (S·W, V) of the next token.
        scores: log-probability of each hypothesis, (S, W).
        closing: True where a sentence's hypotheses can only end, (S,); None: nowhere.
        beam: how many are of use.

    Returns:
        Their log-probabilities, which hypothesis each goes on from, and with which token, (S, N) each.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    total = logits.logsumexp(-1, keepdim=True)
    logits[:, [PADDING, BEGIN]] = -torch.inf
    if closing is not None:
        others = torch.arange(logits.size(1), device=logits.device) != END
        logits.masked_fill_(closing.repeat_interleave(scores.size(1))[:, None] & others, -torch.inf)
    # Of a hypothesis the best `beam` + 1 are enough, since one at most ends. Their order is that of the logits, which
    # no rounding of the sums below disturbs.
    words, logits = _largest(logits, beam + 1)
    ranked = (scores.view(-1, 1) + (logits.double() - total.double())).view(len(scores), -1)
    ranked, order = ranked.masked_fill(ranked.isnan(), -torch.inf).sort(dim=-1, descending=True, stable=True)
    return ranked, order // words.size(1), words.reshape_as(order).gather(1, order)


def _largest(numbers: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The places (R, K) of each row's largest numbers, K at most `most`, and these; of equals the first comes first."""
    most = min(most, numbers.size(1))
    largest, places = numbers.topk(min(most + 1, numbers.size(1)))
    # Which of equals it takes, and in which order, torch does not say.
    last, next_ = largest[:, most - 1], largest[:, -1]
    if most < largest.size(1) and bool(((last == next_) & last.isfinite()).any()):
        largest, places = numbers.sort(dim=-1, descending=True, stable=True)
        return places[:, :most], largest[:, :most]
    places = places[:, :most].sort(-1).values
    largest, order = numbers.gather(1, places).sort(dim=-1, descending=True, stable=True)
    return places.gather(1, order), largest
