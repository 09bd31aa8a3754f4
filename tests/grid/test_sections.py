"""The sections take what they mean and nothing that merely looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.grid.sections import Data, Model, Training, refuse


def test_a_refusal_carries_its_field_and_its_remedy():
    error = refuse("width", "too narrow", allowed="4", hint="widen it")
    assert error.context == {"field": "width", "problem": "too narrow", "allowed": "4", "hint": "widen it"}
    assert error.message() == "too narrow"


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_width_is_taken_exactly_when_it_divides_by_the_heads(width, heads):
    if width % heads == 0:
        assert Model(width=width, heads=heads).width == width
    else:
        with pytest.raises(ValidationError, match=f"width {width} does not divide by {heads} heads"):
            Model(width=width, heads=heads)


@pytest.mark.parametrize(
    "settings", [{"corpus": "../up"}, {"corpus": ""}, {"corpus": ".hidden"}, {"corpus": "a b"}, {"corpus": "x" * 65}]
)
def test_a_corpus_is_named_by_a_word_that_is_no_path(settings):
    with pytest.raises(ValidationError):
        Data(**settings)


def test_source_and_target_go_together_and_byte_pairs_have_a_size():
    with pytest.raises(ValidationError, match="source and target go together"):
        Data(corpus="text", source="de")
    with pytest.raises(ValidationError, match="byte pairs need a vocabulary size"):
        Data(corpus="text", vocabulary="bpe")


@pytest.mark.parametrize("value", [True, "10", 1.5, 0, -1, None])
def test_a_count_is_a_whole_number_from_one(value):
    with pytest.raises(ValidationError):
        Training(steps=value)
