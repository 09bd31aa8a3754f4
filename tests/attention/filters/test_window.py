import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kdx.attention import KernelAttention
from kdx.attention import module as module_file
from kdx.attention.filters.window import Window
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach
from tests.attention import by_hand


def seen_by(query: int, reach: Reach = Reach.PAST, **options: int) -> list[int]:
    window = Window(Settings(4, 1, 4, reach=reach), **options)
    return window.visible(torch.tensor([[query]]), torch.arange(12))[0].nonzero().flatten().tolist()


def test_a_query_sees_itself_and_the_keys_before_it() -> None:
    assert seen_by(7, left=3) == [4, 5, 6, 7]
    assert seen_by(1, left=3) == [0, 1]
    assert seen_by(7, left=0) == [7]


def test_reaching_to_both_sides_it_sees_keys_after_it_too() -> None:
    assert seen_by(5, Reach.BOTH, left=2, right=1) == [3, 4, 5, 6]
    assert seen_by(5, left=2, right=1) == [3, 4, 5]


def test_a_dilated_window_has_as_many_keys_farther_apart() -> None:
    assert seen_by(9, left=2, dilation=3) == [3, 6, 9]
    assert seen_by(5, Reach.BOTH, left=1, right=2, dilation=3) == [2, 5, 8, 11]


def test_the_first_tokens_stay_in_sight() -> None:
    assert seen_by(9, left=1, sinks=2) == [0, 1, 8, 9]
    assert seen_by(0, left=1, sinks=2) == [0]
    assert seen_by(0, Reach.BOTH, left=1, right=0, sinks=2) == [0, 1]
    # What stands before the first token is none.
    window = Window(Settings(4, 1, 4), left=1, sinks=2)
    assert window.visible(torch.tensor([[9]]), torch.arange(-3, 3)).tolist() == [[False] * 3 + [True, True, False]]


@given(
    options=st.fixed_dictionaries(
        {
            "left": st.integers(0, 6),
            "right": st.integers(0, 6),
            "dilation": st.integers(1, 3),
            "sinks": st.integers(0, 4),
        }
    ),
    reach=st.sampled_from(Reach),
    queries=st.tuples(st.integers(-9, 20), st.integers(1, 8)),
    keys=st.tuples(st.integers(-9, 20), st.integers(1, 20)),
)
def test_keys_of_a_block_are_those_that_its_queries_see_and_few_others(options, reach, queries, keys) -> None:
    window = Window(Settings(4, 1, 4, reach=reach), **options)
    asked, known = (range(first, first + length) for first, length in (queries, keys))
    visible = window.visible(torch.tensor(asked).unsqueeze(-1), torch.tensor(known))
    needed = set(visible.any(0).nonzero().flatten().tolist())
    seen = window.seen(asked, known)
    listed = list(range(len(known)))[seen] if isinstance(seen, slice) else seen
    assert listed
    assert listed == sorted(set(listed))
    assert needed <= set(listed) <= set(range(len(known)))
    reached = len(asked) + (options["left"] + options["right"]) * options["dilation"] + options["sinks"]
    assert len(listed) <= reached


@pytest.mark.parametrize("blocks", [False, True])
def test_it_is_the_definition_token_by_token(blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blocks:
        monkeypatch.setattr(module_file, "LARGEST_WHOLE", 0)
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
