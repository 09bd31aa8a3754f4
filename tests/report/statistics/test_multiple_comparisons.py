"""The schedule of looks: it depends on what has ended, not on the order, and what is decided stays so."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.report.statistics.looks import Look
from kdx.report.statistics.multiple_comparisons import Followed, holm, until_decided

FIRST, LAST = 3, 6
P = st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.06, 0.3, 1.0])
ROW = st.lists(st.tuples(P, P), min_size=LAST + 1, max_size=LAST + 1) | st.just([None] * (LAST + 1))
TESTS = st.lists(ROW, min_size=1, max_size=4)
"""Of each comparison, at each number of seeds: its p-values, or None where it cannot be made."""


def follow(tests, ended):
    requests: list[tuple[int, int]] = []

    def test(index: int, look: Look) -> tuple[float, float] | None:
        requests.append((index, look.n))
        return tests[index][look.n]

    return until_decided(FIRST, LAST, ended, test), requests


@given(TESTS, st.data())
def test_more_ended_seeds_change_no_look_that_was_made(tests, data):
    ended = [data.draw(st.integers(0, LAST)) for _ in tests]
    later = [data.draw(st.integers(n, LAST)) for n in ended]
    before, looked = follow(tests, ended)
    after, again = follow(tests, later)
    assert again[: len(looked)] == looked
    for first, other in zip(before, after, strict=True):
        assert other.n >= first.n
        if not first.open:
            assert other == first or (other.decided and not first.decided and other.n == first.n)


@given(TESTS, st.data())
def test_a_look_waits_for_every_seed_of_every_open_comparison(tests, data):
    ended = [data.draw(st.integers(0, LAST)) for _ in tests]
    result, requests = follow(tests, ended)
    assert all(n <= ended[index] for index, n in requests)
    assert [n for _, n in requests] == sorted(n for _, n in requests)
    waiting = [index for index, each in enumerate(result) if each.open]
    if waiting:  # for one of them
        next_look = max(FIRST, max(result[index].n for index in waiting) + 1)
        assert any(ended[index] < next_look for index in waiting)
        assert len({result[index].n for index in waiting}) == 1


@given(TESTS)
def test_what_is_decided_is_so_by_holm_or_by_equivalence_at_its_last_look(tests):
    result, _ = follow(tests, [LAST] * len(tests))
    assert not any(item.open for item in result)
    assert all(FIRST <= item.n <= LAST for item in result)
    at_last = [tests[index][item.n] for index, item in enumerate(result)]
    corrected = holm([1.0 if last is None else last[0] for last in at_last])
    for each, last, p in zip(result, at_last, corrected, strict=True):
        if each.decided and last is not None:
            assert p < 0.05 or last[1] < 0.05
        elif last is not None:
            assert each.n == LAST and p >= 0.05 and last[1] >= 0.05


def test_a_comparison_is_looked_at_until_it_is_decided_and_no_longer():
    rising = [None, None, None, (0.3, 1.0), (0.01, 1.0), (0.9, 1.0), (0.9, 1.0)]
    never = [None, None, None, *[(0.5, 1.0)] * 4]
    equal = [None, None, None, (0.9, 0.2), (0.9, 0.04), (0.9, 0.9), (0.9, 0.9)]
    result, requests = follow([rising, never, equal], [LAST] * 3)
    assert result == [Followed(4, True, False), Followed(6, False, False), Followed(4, True, False)]
    assert [n for index, n in requests if index == 0] == [3, 4]


def test_the_correction_counts_comparisons_that_are_decided():
    """0.02 alone would be significant; beside one that is decided it is, beside one that is open it is not."""
    row = [None, None, None, (0.04, 1.0), (0.04, 1.0), (0.04, 1.0), (0.04, 1.0)]
    clear, open_ = ([None, None, None, *[(p, 1.0)] * 4] for p in (0.001, 0.9))
    assert follow([row, clear], [3, 3])[0][0] == Followed(3, True, False)
    assert follow([row, open_], [3, 3])[0][0] == Followed(3, False, True)


def test_where_no_seed_has_a_score_no_other_is_asked_for():
    assert follow([[None] * (LAST + 1)], [LAST])[0] == [Followed(3, False, False)]


def test_nothing_is_looked_at_before_the_first_seeds_have_ended():
    assert follow([[(0.0, 0.0)] * (LAST + 1)], [2]) == ([Followed(0)], [])
