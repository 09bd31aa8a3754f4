"""Lines whose label only the order of their words tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.data.corpora.synthetic_order import TRADES, generate


def test_every_generated_line_has_a_twin_of_the_same_words_with_another_label():
    text = generate(0, 30_000)
    labels = {line: label for split in text.values() for line, label in zip(split["txt"], split["labels"], strict=True)}
    assert set(labels.values()) == set(TRADES)
    twins = 0
    for line, label in labels.items():
        one, other = (word for word in line.split() if word in TRADES)
        assert label in (one, other)
        twin = " ".join({one: other, other: one}.get(word, word) for word in line.split())
        if twin in labels:
            twins += 1
            assert sorted(twin.split()) == sorted(line.split())
            assert {label, labels[twin]} == {one, other}
    assert twins > 0.6 * len(labels)


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(0, 3))
def test_generated_text_is_a_function_of_the_seed_and_fewer_lines_are_the_first_of_more(lines, seed):
    few, more = generate(seed, lines), generate(seed, lines + 5)
    assert few["train"]["txt"] == more["train"]["txt"][:lines]
    assert few["test"] == more["test"]
    assert not set(few["train"]["txt"]) & set(few["test"]["txt"])
