"""Beam search against a search over all sequences, against one in plain words, and alone against in a batch."""

import json
from hashlib import blake2b

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import Told, every, reference, scored
from torch import Tensor

from kdx.data.vocabulary import END
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.models.beam import Search, beam_search
from kdx.vocabulary import LengthPenalty

penalties = st.sampled_from(list(LengthPenalty))
exponents = st.sampled_from([0.0, 0.6, 1.0, 2.0])
limits = st.lists(st.integers(0, 3), min_size=1, max_size=4)


def drawn(seed: int, vocabulary: int, *, ties: bool = False, ending: float = 0.0):
    """Logits drawn anew for each sentence and each sequence of tokens; with ties, from three values."""

    def logits(sentence: int, tokens: list[int]) -> Tensor:
        digest = blake2b(json.dumps([seed, sentence, tokens]).encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        result = torch.randn(vocabulary, generator=generator, dtype=torch.float64) * 2
        result[END] += ending
        return result.sign() if ties else result

    return logits


def searched(logits, limits: list[int], search: Search) -> list[list[int]]:
    model = Told(logits, len(limits))
    return beam_search(model.logits_after, model.go_on_with, torch.tensor(limits), search)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), limits, penalties, exponents)
def test_a_beam_as_wide_as_all_sequences_finds_the_best_of_them(seed, words, limits, penalty, exponent):
    logits = drawn(seed, 3 + words)
    search = Search((words + 1) ** 4, exponent, penalty)
    for sentence, (limit, tokens) in enumerate(zip(limits, searched(logits, limits, search), strict=True)):
        result = every(lambda tokens, sentence=sentence: logits(sentence, tokens), limit, search)
        assert len(result) == sum(words**length for length in range(limit + 1))
        assert tokens == result[0][1]


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.lists(st.integers(0, 8), min_size=1, max_size=4),
    st.integers(1, 5),
    penalties,
    exponents,
    st.booleans(),
    st.sampled_from([-2.0, 0.0, 2.0]),
)
def test_any_beam_finds_what_the_search_in_plain_words_finds(
    seed, words, limits, beam, penalty, exponent, ties, ending
):
    logits = drawn(seed, 3 + words, ties=ties, ending=ending)
    search = Search(beam, exponent, penalty)
    expected = [
        reference(lambda tokens, sentence=sentence: logits(sentence, tokens), limit, search)
        for sentence, limit in enumerate(limits)
    ]
    assert searched(logits, limits, search) == expected


def test_logits_that_only_their_own_format_tells_apart_are_ranked_as_they_are():
    close = torch.full((6,), -30.0)
    close[4] = torch.tensor(20.0)
    close[5] = torch.nextafter(close[4], torch.tensor(torch.inf))
    assert searched(lambda _, tokens: close.clone(), [2], Search(1)) == [[5, 5]]


def test_logits_that_are_no_numbers_give_an_empty_translation():
    nothing = torch.full((5,), torch.nan)
    assert searched(lambda _, tokens: nothing.clone(), [3, 2], Search(2)) == [[], []]


def test_a_search_is_over_when_as_many_hypotheses_as_the_beam_have_ended():
    # Two that end at once, and long ones that would score better.
    def logits(_, tokens: list[int]) -> Tensor:
        return torch.tensor([0.0, 0.0, 8.0, 8.0, 7.9]) if len(tokens) < 2 else torch.tensor([0.0, 0.0, -9.0, 50.0, 0.0])

    model = Told(logits, 1)
    beam_search(model.logits_after, model.go_on_with, torch.tensor([30]), Search(2))
    assert model.calls < 10


def test_a_search_is_over_when_no_open_hypothesis_can_win():
    def logits(_, tokens: list[int]) -> Tensor:
        return torch.tensor([0.0, 0.0, 20.0, 0.0, 0.0])

    model = Told(logits, 1)
    # By the number of finished hypotheses alone it would take three steps.
    assert beam_search(model.logits_after, model.go_on_with, torch.tensor([30]), Search(5, 0.0)) == [[]]
    assert model.calls == 1


def test_the_penalties_are_those_of_the_papers():
    lengths = torch.tensor([1, 7])
    assert Search(penalty=LengthPenalty.LENGTH).penalties(lengths).tolist() == [1, 7]
    assert Search(length_penalty=0.5).penalties(lengths).tolist() == pytest.approx([1, 7**0.5])
    gnmt = Search(length_penalty=0.6, penalty=LengthPenalty.GNMT)
    assert gnmt.penalties(lengths).tolist() == pytest.approx([1.0, 2**0.6])
    assert scored(-14.0, 7, gnmt) == pytest.approx(-14.0 / 2**0.6)
    assert Search(length_penalty=0.0).penalties(lengths).tolist() == [1, 1]


def test_limits_follow_the_source_up_to_the_last_position_of_a_learned_table():
    lengths = torch.tensor([1, 15, 600])
    assert Search().limits(lengths).tolist() == [12, 40, MAX_POSITIONS - 1]
    assert Search(longest=(0.0, 200)).limits(lengths).tolist() == [200, 200, 200]
    assert Search(longest=(1.2, 3)).limits(lengths).tolist() == [4, 21, 723]
