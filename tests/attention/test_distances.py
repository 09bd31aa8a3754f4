import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kdx.attention import distances
from kdx.attention.interfaces import Settings, TokenPositions
from tests.attention.by_hand import draw


def standing(start: int, length: int, known: bool) -> TokenPositions:
    return TokenPositions(torch.arange(start, start + length), None, start if known else None)


starts_and_lengths = st.tuples(st.integers(-9, 9), st.integers(1, 6))


@given(queries=starts_and_lengths, keys=starts_and_lengths)
def test_scores_by_distance_are_laid_out_at_their_pairs_and_back(queries, keys) -> None:
    at_query, at_key = standing(*queries, True), standing(*keys, True)
    known = distances.relative_positions(at_query, at_key)
    scores = draw(2, queries[1], len(known))
    skewed = distances.skew(scores)
    rows = torch.arange(queries[1]).unsqueeze(-1)
    assert torch.equal(skewed, scores[:, rows, distances.pair_distances(at_query, at_key) - known.start])
    again = distances.unskew(skewed)
    assert torch.equal(distances.skew(again), skewed)
    assert again.count_nonzero() == skewed.count_nonzero()


@given(
    queries=starts_and_lengths,
    keys=starts_and_lengths,
    clip=st.integers(0, 4),
    sharing=st.sampled_from(["per-head", "shared"]),
)
def test_a_table_gives_the_same_by_position_and_by_pair(queries, keys, clip, sharing) -> None:
    table = distances.DistanceTable(Settings(8, 2, 4), clip, sharing).double()
    assert table.weight.shape == (2 if sharing == "per-head" else 1, 2 * clip + 1, 4)
    query, weights = draw(1, 2, queries[1], 4), draw(1, 2, queries[1], keys[1])
    rows = (
        distances.pair_distances(standing(*queries, False), standing(*keys, False)).clamp(-clip, clip) + clip
    ).flatten()
    vectors = table.weight[:, rows].unflatten(1, (queries[1], keys[1])).expand(2, -1, -1, -1)
    for known in (True, False):
        where = standing(*queries, known), standing(*keys, known)
        torch.testing.assert_close(
            table.products(query, *where), torch.einsum("bhqd,hqkd->bhqk", query, vectors), rtol=1e-12, atol=1e-12
        )
        torch.testing.assert_close(
            table.sums(weights, *where), torch.einsum("bhqk,hqkd->bhqd", weights, vectors), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("known", [True, False])
def test_without_clipping_a_distance_beyond_the_table_is_refused(known: bool) -> None:
    table = distances.DistanceTable(Settings(8, 2, 4, max_positions=3), "none", "per-head")
    assert table.weight.shape == (2, 5, 4)
    message = r"distance: 3 is not in the table; allowed: up to 2 \(`max_positions`\), or a clip"
    table.products(torch.zeros(1, 2, 3, 4), standing(0, 3, known), standing(0, 3, known))
    with pytest.raises(ValueError, match=message):
        table.products(torch.zeros(1, 2, 4, 4), standing(0, 4, known), standing(0, 4, known))
