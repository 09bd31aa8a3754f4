"""Lengths of time in words."""

import pytest

from kdx.sweep.durations import in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5940, "99 min"),
        (6000, "2 h"),
        (356400, "99 h"),
        (864000, "10 days"),
    ],
)
def test_the_largest_unit_that_leaves_two_digits(seconds, words):
    assert in_words(seconds) == words
