"""Beam search in plain words, one sentence and one hypothesis at a time, to compare the batched one with."""

from collections.abc import Callable

import torch
from torch import Tensor

from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.models.beam import Search
from kdx.vocabulary import LengthPenalty

Logits = Callable[[list[int]], Tensor]
"""Tokens so far, begin not among them, to the logits (V,) of the next."""


def scored(log_probability: float, tokens: int, search: Search) -> float:
    """The score of a finished hypothesis of so many tokens, end included."""
    base = tokens if search.penalty is LengthPenalty.LENGTH else (5 + tokens) / 6
    return log_probability / base**search.length_penalty


def reference(logits: Logits, limit: int, search: Search) -> list[int]:
    """Search as `kdx.models.beam` describes it, but without stopping early where nothing can win any more."""
    open_: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for step in range(limit + 1):
        candidates = []
        for rank, (so_far, tokens) in enumerate(open_):
            next_ = logits(tokens)
            total = next_.logsumexp(-1).double()
            for token in range(len(next_)):
                allowed = token == END if step == limit else token not in (PADDING, BEGIN)
                if allowed:
                    result = so_far + (next_[token].double() - total).item()
                    candidates.append((-result, rank, -next_[token].item(), token, tokens))
        candidates.sort()
        for minus, _, _, token, tokens in candidates[: search.beam]:
            if token == END:
                finished.append((scored(-minus, step + 1, search), tokens))
        open_ = [(-minus, [*tokens, token]) for minus, _, _, token, tokens in candidates if token != END]
        open_ = open_[: search.beam]
        if len(finished) >= search.beam:
            break
    return max(finished, key=lambda one: one[0])[1]


def every(logits: Logits, limit: int, search: Search) -> list[tuple[float, list[int]]]:
    """All sequences up to the limit with their scores, the best first."""
    result = []

    def extend(so_far: float, tokens: list[int]) -> None:
        log_probabilities = logits(tokens).log_softmax(-1).tolist()
        result.append((scored(so_far + log_probabilities[END], len(tokens) + 1, search), tokens))
        if len(tokens) < limit:
            for token, more in enumerate(log_probabilities):
                if token not in (PADDING, BEGIN, END):
                    extend(so_far + more, [*tokens, token])

    extend(0.0, [])
    return sorted(result, key=lambda one: -one[0])


class Told:
    """A model for `beam_search` whose logits are any function of the sentence and the tokens so far."""

    def __init__(self, logits: Callable[[int, list[int]], Tensor], sentences: int) -> None:
        self.logits = logits
        self.rows: list[tuple[int, list[int]]] = [(sentence, []) for sentence in range(sentences)]
        self.calls = 0

    def logits_after(self, tokens: Tensor, step: int) -> Tensor:
        self.calls += 1
        if step:
            for (_, told), token in zip(self.rows, tokens.tolist(), strict=True):
                told.append(token)
        else:
            assert set(tokens.tolist()) == {BEGIN}
        assert {len(told) for _, told in self.rows} == {step}
        return torch.stack([self.logits(sentence, told) for sentence, told in self.rows])

    def go_on_with(self, rows: Tensor, other_sentences: bool) -> None:
        before = [sentence for sentence, _ in self.rows]
        self.rows = [(self.rows[row][0], list(self.rows[row][1])) for row in rows.tolist()]
        assert other_sentences or [sentence for sentence, _ in self.rows] == before
