"""The schedule of looks: it depends on what has ended, not on the order, and what is decided stays so."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.report.statistics.looks import Look
from kdx.report.statistics.multiple_comparisons import Followed, PValues, holm, until_decided

FIRST, LAST = 3, 6
P = st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.06, 0.3, 1.0])
ROW = st.lists(st.tuples(P, P), min_size=LAST + 1, max_size=LAST + 1) | st.just([None] * (LAST + 1))
TESTS = st.lists(ROW, min_size=1, max_size=4)
"""Of each comparison, at each number of seeds: its p-values, or None where it cannot be made."""


def follow(tests, ended):
    asked: list[tuple[int, int]] = []

    def test(index: int, look: Look) -> PValues | None:
        asked.append((index, look.n))
        found = tests[index][look.n]
        return None if found is None else PValues(*found)

    return until_decided(FIRST, LAST, ended, test), asked


@given(TESTS, st.data())
def test_more_ended_seeds_change_no_look_that_was_made(tests, data):
    ended = [data.draw(st.integers(0, LAST)) for _ in tests]
    later = [data.draw(st.integers(n, LAST)) for n in ended]
    before, looked = follow(tests, ended)
    after, again = follow(tests, later)
    assert again[: len(looked)] == looked
    for one, other in zip(before, after, strict=True):
        assert other.n >= one.n
        if not one.open:
            assert other == one or (other.decided and not one.decided and other.n == one.n)


@given(TESTS, st.data())
def test_a_look_waits_for_every_seed_of_every_open_comparison(tests, data):
    ended = [data.draw(st.integers(0, LAST)) for _ in tests]
    found, asked = follow(tests, ended)
    assert all(n <= ended[index] for index, n in asked)
    assert [n for _, n in asked] == sorted(n for _, n in asked)
    waiting = [index for index, one in enumerate(found) if one.open]
    if waiting:  # for one of them
        next_look = max(FIRST, max(found[index].n for index in waiting) + 1)
        assert any(ended[index] < next_look for index in waiting)
        assert len({found[index].n for index in waiting}) == 1


@given(TESTS)
def test_what_is_decided_is_so_by_holm_or_by_equivalence_at_its_last_look(tests):
    found, _ = follow(tests, [LAST] * len(tests))
    assert not any(one.open for one in found)
    assert all(FIRST <= one.n <= LAST for one in found)
    at_last = [tests[index][one.n] for index, one in enumerate(found)]
    corrected = holm([1.0 if last is None else last[0] for last in at_last])
    for one, last, p in zip(found, at_last, corrected, strict=True):
        if one.decided and last is not None:
            assert p < 0.05 or last[1] < 0.05
        elif last is not None:
            assert one.n == LAST and p >= 0.05 and last[1] >= 0.05


def test_a_comparison_is_looked_at_until_it_is_decided_and_no_longer():
    rising = [None, None, None, (0.3, 1.0), (0.01, 1.0), (0.9, 1.0), (0.9, 1.0)]
    never = [None, None, None, *[(0.5, 1.0)] * 4]
    equal = [None, None, None, (0.9, 0.2), (0.9, 0.04), (0.9, 0.9), (0.9, 0.9)]
    found, asked = follow([rising, never, equal], [LAST] * 3)
    assert found == [Followed(4, True, False), Followed(6, False, False), Followed(4, True, False)]
    assert [n for index, n in asked if index == 0] == [3, 4]


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
