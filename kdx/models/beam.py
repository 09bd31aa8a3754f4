"""Beam search for the most probable translations, batched over sentences [as in Ott et al. 2019].

At each word all continuations of a sentence's open hypotheses are ranked by log-probability. Among the best `beam`, the
continuations that end are finished; the best `beam` that do not end stay open. The translation is the finished
hypothesis with the best score: its log-probability over a penalty on its length.

A sentence is done when `beam` of its hypotheses are finished, as for published scores; so a beam of 1 is greedy
decoding. It is done sooner if no open hypothesis can win any more, which changes no translation: a log-probability only
falls, so the best possible score of an open hypothesis is its current log-probability over the largest penalty. A
hypothesis that reaches its limit is ended there, at the log-probability of the end mark.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.vocabulary import LengthPenalty


class Search(NamedTuple):
    """The settings of beam search, see `kdx.grid.sections.Evaluation`."""

    beam: int = 1
    """Hypotheses kept open; 1 is greedy."""
    length_penalty: float = 1.0
    """a of the penalty."""
    penalty: LengthPenalty = LengthPenalty.LENGTH
    """n^a (Ott et al. 2019), or ((5 + n) / 6)^a (Wu et al. 2016, Eq. 14)."""
    longest: tuple[float, int] = (2.0, 10)
    """The most tokens of a translation: a number for each source token, plus a constant."""

    def limits(self, lengths: Tensor) -> Tensor:
        """Return the most tokens of a translation, integers (S,), without its end mark; source lengths (S,) include it.

        The limit never exceeds what a learned table of positions allows, even in cells without one, so cells compare.
        """
        each, more = self.longest
        return ((lengths.double() * each).long() + more).clamp(max=MAX_POSITIONS - 1)

    def penalties(self, lengths: Tensor) -> Tensor:
        """Return the divisor of the log-probability of n tokens, for integers n; the end mark counts as a token."""
        base = lengths.double() if self.penalty is LengthPenalty.LENGTH else (5 + lengths.double()) / 6
        return base**self.length_penalty


def beam_search(
    logits_after: Callable[[Tensor, int], Tensor],
    go_on_with: Callable[[Tensor, bool], None],
    limits: Tensor,
    search: Search,
) -> list[list[int]]:
    """Return the best translation of each sentence.

    The search is deterministic: among equal scores the better hypothesis comes first, then the smaller token. The model
    sees S sentences × W open hypotheses as rows, the hypotheses of a sentence together; at first W = 1.

    Args:
        logits_after: maps tokens (S·W,) at a position, counted from 0, to the logits (S·W, V) of the next token.
        go_on_with: replaces the model's rows by these of its rows (integers, with repeats); the flag says whether the
            sentence of a row may have changed.
        limits: the most tokens of each sentence's translation, integers (S,).
        search: settings of the search.

    Returns:
        Token ids without the end mark; empty if no sequence has a positive probability.
    """
    device = limits.device
    translations: list[list[int]] = [[] for _ in range(len(limits))]
    sentences = torch.arange(len(limits), device=device)  # sentences that are not done yet
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

        # Continuations that do not end come first, in order of their scores.
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
    """Return the continuations of each sentence's hypotheses that can be among the best `beam`, the best first.

    Args:
        logits: logits of the next token, (S·W, V).
        scores: log-probability of each hypothesis, (S, W).
        closing: True where a sentence's hypotheses can only end, (S,); None if nowhere.
        beam: number of continuations that are needed.

    Returns:
        The log-probability of each continuation, the hypothesis that it continues, and its token, (S, N) each.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    total = logits.logsumexp(-1, keepdim=True)
    logits[:, [PADDING, BEGIN]] = -torch.inf
    if closing is not None:
        others = torch.arange(logits.size(1), device=logits.device) != END
        logits.masked_fill_(closing.repeat_interleave(scores.size(1))[:, None] & others, -torch.inf)
    # The best `beam` + 1 continuations of a hypothesis are enough, since at most one ends. They are ordered by logits,
    # so rounding in the sums below does not disturb the order.
    words, logits = _largest(logits, beam + 1)
    ranked = (scores.view(-1, 1) + (logits.double() - total.double())).view(len(scores), -1)
    ranked, order = ranked.masked_fill(ranked.isnan(), -torch.inf).sort(dim=-1, descending=True, stable=True)
    return ranked, order // words.size(1), words.reshape_as(order).gather(1, order)


def _largest(numbers: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the indices (R, K) of each row's K ≤ `most` largest numbers, and the numbers; ties keep their order."""
    most = min(most, numbers.size(1))
    largest, places = numbers.topk(min(most + 1, numbers.size(1)))
    # torch does not define which of equal numbers it takes, or in which order.
    last, next_ = largest[:, most - 1], largest[:, -1]
    if most < largest.size(1) and bool(((last == next_) & last.isfinite()).any()):
        largest, places = numbers.sort(dim=-1, descending=True, stable=True)
        return places[:, :most], largest[:, :most]
    places = places[:, :most].sort(-1).values
    largest, order = numbers.gather(1, places).sort(dim=-1, descending=True, stable=True)
    return places.gather(1, order), largest
