"""Each filter is its formula."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention import module as module_file
from kdx.attention.filters import FILTERS
from kdx.attention.filters.causal import Causal
from kdx.attention.filters.fixed import Fixed
from kdx.attention.filters.strided import Strided
from kdx.attention.filters.top_k import TopK
from kdx.attention.filters.window import Window
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach
from tests.attention import by_hand

# causal


def test_no_query_of_a_block_sees_keys_after_its_last() -> None:
    causal = Causal(Settings(4, 1, 4))
    assert causal.seen(range(4, 6), range(2, 20)) == slice(0, 4)
    # One is left where there is none, to be hidden.
    assert causal.seen(range(2), range(5, 20)) == slice(0, 1)


# fixed


def seen_by_fixed(query: int, reach: Reach = Reach.PAST) -> list[int]:
    pattern = Fixed(Settings(4, 1, 4, reach=reach), stride=4, summary=1)
    return pattern.visible(torch.tensor([[query]]), torch.arange(12))[0].nonzero().flatten().tolist()


def test_a_query_sees_its_block_and_the_last_of_those_before() -> None:
    assert seen_by_fixed(6) == [3, 4, 5, 6]
    assert seen_by_fixed(11) == [3, 7, 8, 9, 10, 11]


def test_reaching_to_both_sides_it_sees_the_whole_block_and_all_summaries() -> None:
    assert seen_by_fixed(5, Reach.BOTH) == [3, 4, 5, 6, 7, 11]


# sparse

POSITIONS = torch.arange(9)


def test_a_pattern_that_reaches_back_shows_nothing_that_stands_later() -> None:
    options = {"strided": {"stride": 3}, "fixed": {"stride": 3}, "window": {"left": 2, "right": 2, "sinks": 1}}
    for word, own in options.items():
        past, both = (FILTERS[word](Settings(4, 1, 4, reach=reach), **own) for reach in (Reach.PAST, Reach.BOTH))
        later = POSITIONS[:, None] < POSITIONS
        assert not past.visible(POSITIONS[:, None], POSITIONS)[later].any()
        assert both.visible(POSITIONS[:, None], POSITIONS)[later].any()


# strided


def seen_by_strided(query: int, reach: Reach = Reach.PAST) -> list[int]:
    visible = Strided(Settings(4, 1, 4, reach=reach), stride=3).visible(torch.tensor([[query]]), torch.arange(12))
    return visible[0].nonzero().flatten().tolist()


def test_a_query_sees_its_neighbours_and_every_third() -> None:
    assert seen_by_strided(10) == [1, 4, 7, 8, 9, 10]
    assert seen_by_strided(0) == [0]


def test_reaching_to_both_sides_mirrors_it() -> None:
    assert seen_by_strided(5, Reach.BOTH) == [2, 3, 4, 5, 6, 7, 8, 11]


# top_k

SETTINGS = Settings(4, 1, 4, reach=Reach.BOTH)


def chosen(score: list[float], top_k: int, visible: Tensor | None = None) -> list[bool]:
    return TopK(SETTINGS, top_k=top_k).chosen(torch.tensor([score]), None, visible)[0].tolist()


def test_the_keys_of_the_largest_weights_are_seen() -> None:
    assert chosen([0.5, -1.0, 3.0, 2.0], 2) == [False, False, True, True]


def test_what_is_hidden_is_not_among_them() -> None:
    visible = torch.tensor([[True, True, False, True]])
    assert chosen([0.5, -1.0, 3.0, 2.0], 2, visible) == [True, False, False, True]
    assert all(chosen([0.5, -1.0, 3.0, 2.0], 2, torch.tensor([[False, True, False, False]]))[1:2])


def test_no_order_of_the_keys_breaks_a_tie() -> None:
    assert chosen([1.0, 2.0, 1.0, 0.0], 2) == [True, True, True, False]


def test_where_there_are_no_more_keys_than_that_all_are_seen() -> None:
    assert TopK(SETTINGS, top_k=3).chosen(torch.zeros(1, 3), None, None) is None


def test_weights_without_logarithm_count_as_they_are_and_times_their_factors() -> None:
    top, weight = TopK(SETTINGS, top_k=1), torch.tensor([[1.0, 4.0, -9.0]])
    assert top.chosen(None, weight, None).tolist() == [[False, True, False]]
    assert top.chosen(torch.tensor([[2.0, 0.0, 0.0]]), weight, None).tolist() == [[True, False, False]]
    # However small or large all factors are.
    for shift in (-1e4, 1e4):
        assert top.chosen(torch.tensor([[2.0, 0.0, 0.0]]) + shift, weight, None).tolist() == [[True, False, False]]


def test_in_a_decoder_nothing_later_is_chosen() -> None:
    assert TopK(Settings(4, 1, 4)).visible(torch.tensor([[1]]), torch.arange(3)).tolist() == [[True, True, False]]
    assert TopK(SETTINGS).visible(torch.tensor([[1]]), torch.arange(3)) is None
    assert TopK(Settings(4, 1, 4)).seen(range(4, 6), range(2, 20)) == slice(0, 4)
    assert TopK(SETTINGS).seen(range(4, 6), range(2, 20)) == slice(0, 18)


@pytest.mark.parametrize("reach", Reach)
def test_top_k_is_the_definition_token_by_token(reach: Reach) -> None:
    torch.manual_seed(0)
    module, x = KernelAttention(8, 2, filter="top-k", top_k=3, reach=reach).double(), by_hand.draw(9, 8)

    def largest(scores: np.ndarray, head: int, query: int) -> np.ndarray:
        kept = np.argsort(scores)[-3:]
        weights = np.zeros_like(scores)
        weights[kept] = by_hand.softmax(scores[kept])
        return weights

    expected = by_hand.smoothed(module, x, row=largest, sees=lambda i, j: j <= i or reach is Reach.BOTH)
    by_hand.same(module, x, expected)


# window


def seen_by_window(query: int, reach: Reach = Reach.PAST, **options: int) -> list[int]:
    window = Window(Settings(4, 1, 4, reach=reach), **options)
    return window.visible(torch.tensor([[query]]), torch.arange(12))[0].nonzero().flatten().tolist()


def test_a_query_sees_itself_and_the_keys_before_it() -> None:
    assert seen_by_window(7, left=3) == [4, 5, 6, 7]
    assert seen_by_window(1, left=3) == [0, 1]
    assert seen_by_window(7, left=0) == [7]


def test_a_dilated_window_has_as_many_keys_farther_apart() -> None:
    assert seen_by_window(9, left=2, dilation=3) == [3, 6, 9]
    assert seen_by_window(5, Reach.BOTH, left=1, right=2, dilation=3) == [2, 5, 8, 11]


def test_the_first_tokens_stay_in_sight() -> None:
    assert seen_by_window(9, left=1, sinks=2) == [0, 1, 8, 9]
    assert seen_by_window(0, left=1, sinks=2) == [0]
    assert seen_by_window(0, Reach.BOTH, left=1, right=0, sinks=2) == [0, 1]
    # What stands before the first token is none.
    window = Window(Settings(4, 1, 4), left=1, sinks=2)
    assert window.visible(torch.tensor([[9]]), torch.arange(-3, 3)).tolist() == [[False] * 3 + [True, True, False]]


PATTERNS = st.one_of(
    st.builds(lambda stride: (Strided, {"stride": stride}), st.integers(1, 6)),
    st.builds(
        lambda stride, summary: (Fixed, {"stride": stride, "summary": min(summary, stride)}),
        st.integers(1, 6),
        st.integers(0, 6),
    ),
    st.builds(
        lambda *options: (Window, dict(zip(("left", "right", "dilation", "sinks"), options, strict=True))),
        *(st.integers(0, 6), st.integers(0, 6), st.integers(1, 3), st.integers(0, 4)),
    ),
)


@given(
    pattern=PATTERNS,
    reach=st.sampled_from(Reach),
    queries=st.tuples(st.integers(-9, 20), st.integers(1, 8)),
    keys=st.tuples(st.integers(-9, 20), st.integers(1, 20)),
)
def test_keys_of_a_block_are_those_that_its_queries_see(pattern, reach, queries, keys) -> None:
    kind, options = pattern
    filter = kind(Settings(4, 1, 4, reach=reach), **options)
    at_query, at_key = (range(first, first + length) for first, length in (queries, keys))
    visible = filter.visible(torch.tensor(at_query).unsqueeze(-1), torch.tensor(at_key))
    needed = set(visible.any(0).nonzero().flatten().tolist())
    seen = filter.seen(at_query, at_key)
    listed = list(range(len(at_key)))[seen] if isinstance(seen, slice) else seen
    assert listed
    assert listed == sorted(set(listed))
    assert needed <= set(listed) <= set(range(len(at_key)))
    if kind is Window:
        most = len(at_query) + (options["left"] + options["right"]) * options["dilation"] + options["sinks"]
        assert len(listed) <= most


@pytest.mark.parametrize("blocks", [False, True])
def test_window_is_the_definition_token_by_token(blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blocks:
        monkeypatch.setattr(module_file, "LARGEST_MASK", 0)
        monkeypatch.setattr(module_file, "BLOCK", 0)
        monkeypatch.setattr(module_file, "SMALLEST_BLOCK", 3)
    torch.manual_seed(0)
    module = KernelAttention(8, 2, filter="window", left=2, right=1, dilation=2, sinks=1, reach="both").double()
    x = by_hand.draw(11, 8)
    near = {-2, 0, 2, 4}
    by_hand.same(module, x, by_hand.smoothed(module, x, sees=lambda i, j: i - j in near or j == 0))
    back = KernelAttention(8, 2, filter="window", left=2, dilation=2, sinks=1).double()
    expected = by_hand.smoothed(back, x, sees=lambda i, j: i - j in {0, 2, 4} or j == 0)
    by_hand.same(back, x, expected)
