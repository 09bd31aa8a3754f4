import pytest
import torch

from kdx.attention.filters.fixed import Fixed
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach


def seen_by(query: int, reach: Reach = Reach.PAST) -> list[int]:
    pattern = Fixed(Settings(4, 1, 4, reach=reach), stride=4, summary=1)
    return pattern.visible(torch.tensor([[query]]), torch.arange(12))[0].nonzero().flatten().tolist()


def test_a_query_sees_its_block_and_the_last_of_those_before() -> None:
    assert seen_by(6) == [3, 4, 5, 6]
    assert seen_by(11) == [3, 7, 8, 9, 10, 11]


def test_reaching_to_both_sides_it_sees_the_whole_block_and_all_summaries() -> None:
    assert seen_by(5, Reach.BOTH) == [3, 4, 5, 6, 7, 11]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 0, "summary": 0}, "stride: 0; allowed: a whole number from 1 on"),
        ({"stride": 4, "summary": 5}, "summary: 5; allowed: 0 to the stride, 4"),
        ({"stride": 4, "summary": -1}, "summary: -1; allowed: a whole number from 0 on"),
    ],
)
def test_what_is_no_pattern_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fixed(Settings(4, 1, 4), **options)
