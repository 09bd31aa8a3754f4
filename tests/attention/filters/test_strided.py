import torch
from hypothesis import given
from hypothesis import strategies as st

from kdx.attention.filters.fixed import Fixed
from kdx.attention.filters.strided import Strided
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach


def summaries(kind: type, summary: int) -> dict[str, int]:
    """The option of a pattern that has it."""
    return {"summary": summary} if kind is Fixed else {}


def seen_by(query: int, reach: Reach = Reach.PAST) -> list[int]:
    visible = Strided(Settings(4, 1, 4, reach=reach), stride=3).visible(torch.tensor([[query]]), torch.arange(12))
    return visible[0].nonzero().flatten().tolist()


def test_a_query_sees_its_neighbours_and_every_third() -> None:
    assert seen_by(10) == [1, 4, 7, 8, 9, 10]
    assert seen_by(0) == [0]


def test_reaching_to_both_sides_mirrors_it() -> None:
    assert seen_by(5, Reach.BOTH) == [2, 3, 4, 5, 6, 7, 8, 11]


@given(
    kind=st.sampled_from([Strided, Fixed]),
    stride=st.integers(1, 6),
    summary=st.integers(0, 6),
    reach=st.sampled_from(Reach),
    queries=st.tuples(st.integers(-9, 20), st.integers(1, 8)),
    keys=st.tuples(st.integers(-9, 20), st.integers(1, 20)),
)
def test_keys_of_a_block_are_those_that_its_queries_see(kind, stride, summary, reach, queries, keys) -> None:
    pattern = kind(Settings(4, 1, 4, reach=reach), stride=stride, **summaries(kind, min(summary, stride)))
    asked, known = (range(first, first + length) for first, length in (queries, keys))
    visible = pattern.visible(torch.tensor(asked).unsqueeze(-1), torch.tensor(known))
    needed = set(visible.any(0).nonzero().flatten().tolist())
    seen = pattern.seen(asked, known)
    listed = list(range(len(known)))[seen] if isinstance(seen, slice) else seen
    assert listed
    assert listed == sorted(set(listed))
    assert needed <= set(listed) <= set(range(len(known)))
