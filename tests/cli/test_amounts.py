"""Counts and sizes read as somebody would write them."""

import pytest

from kdx.cli.amounts import count_of, size


def test_one_is_singular_and_thousands_have_commas():
    assert [count_of(number, "run") for number in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (16_944, "16.9 kB"),
        (2 * 10**9, "2.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_bytes_have_the_unit_that_suits_them(count, text):
    assert size(count) == text
