"""A run's one number holds the seed of each source of randomness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.seed_sources import MOST_APART, SourceSeeds, in_words, seed_of, seed_word, shared

APART = st.builds(SourceSeeds, *[st.integers(0, MOST_APART)] * 3)
ALONE = st.integers(0, 2**32 - 1)


@given(ALONE)
def test_a_seed_that_is_written_by_itself_is_that_of_every_source(seed):
    assert SourceSeeds.of(seed) == (seed, seed, seed) and SourceSeeds.of(seed).number == seed
    assert seed_word(seed) == str(seed)


@given(APART)
def test_the_number_of_a_combination_gives_it_back(seeds):
    assert SourceSeeds.of(seeds.number) == seeds


@given(APART, APART, ALONE)
def test_no_two_combinations_share_a_number(one, other, alone):
    assert (one.number == other.number) == (one == other)
    assert (one.number == alone) == (one == (alone, alone, alone))


def test_the_digits_of_the_number_are_read_by_eye():
    assert SourceSeeds(12, 3, 4567).number == 1_0012_0003_4567
    assert seed_word(1_0012_0003_4567) == "i12-o3-d4567"


def test_equal_seeds_are_that_seed_however_large():
    assert SourceSeeds(70_000, 70_000, 70_000).number == 70_000


def test_larger_seeds_have_no_number_where_they_differ():
    with pytest.raises(ValueError, match="at most 9999"):
        _ = SourceSeeds(10_000, 0, 0).number


@pytest.mark.parametrize(
    ("combinations", "found"),
    [
        ([(0, 0, 0), (1, 1, 1)], ()),
        ([(0, 0, 0), (1, 0, 0), (2, 0, 0)], ()),
        ([(0, 0, 0), (1, 1, 0)], ()),
        ([(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)], ("initialisation", "order")),
        ([(0, 0, 0), (1, 0, 0), (1, 1, 0)], ("initialisation", "order")),
        ([(0, 0, 0)], ()),
        ([], ()),
    ],
)
def test_runs_that_share_a_seed_of_what_varies_are_not_independent(combinations, found):
    assert shared(SourceSeeds(*each).number for each in combinations) == found


def test_what_varies_is_said_in_words():
    crossed = [SourceSeeds(i, o, 7).number for i in range(3) for o in range(2)]
    assert in_words(crossed) == "3 of initialisation × 2 of order, seed 7 of dropout"
    assert in_words([0, 1, 2]) == "" and in_words([]) == ""
    assert (
        in_words([SourceSeeds(1, 0, 0).number]) == "seed 1 of initialisation and seed 0 of order and seed 0 of dropout"
    )


@given(APART)
def test_the_word_of_a_combination_is_read_as_its_number(seeds):
    if len(set(seeds)) > 1:
        assert seed_of(seed_word(seeds.number)) == seeds.number


@pytest.mark.parametrize("word", ["", "7", "i0-o1", "i0-o1-d10000", "i-o1-d2", "i0-o1-d2\n"])
def test_other_words_are_no_seeds(word):
    assert seed_of(word) is None
