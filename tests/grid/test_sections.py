"""The sections take what they mean and nothing that merely looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.grid.field_types import refuse
from kdx.grid.sections import Data, Model, Training


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


def test_warm_up_and_decay_fit_into_the_run():
    stable = {"schedule": "warmup-stable-decay", "warmup": 60, "steps": 100}
    assert Training(**stable).decay == 10
    assert Training(**stable, decay=40).decay == 40
    assert Training(**stable | {"steps": 5, "warmup": 4}).decay == 1
    with pytest.raises(ValidationError, match="60 steps of warm-up and 41 of decay are more than the 100 of the run"):
        Training(**stable, decay=41)
    # Other schedules have no decay to fit in.
    assert Training(schedule="cosine", warmup=60, steps=50).decay is None


@pytest.mark.parametrize(
    ("section", "settings", "inert"),
    [
        (Training, {"schedule": "cosine"}, {"decay": 10}),
        (Training, {"schedule": "inverse-sqrt"}, {"final_rate": 0.1}),
        (Training, {"schedule": "constant"}, {"final_rate": 0.1}),
        (Training, {"optimiser": "lion"}, {"epsilon": 1e-6, "momentum": 0.9}),
        (Training, {"optimiser": "adamw"}, {"momentum": 0.9}),
        (Model, {"normalisation": "rms"}, {"normalisation_bias": "learned"}),
    ],
)
def test_what_another_word_takes_comes_to_nothing(section, settings, inert):
    assert section(**settings, **inert) == section(**settings)


@pytest.mark.parametrize(
    ("section", "settings", "effective"),
    [
        (Training, {"schedule": "cosine"}, {"final_rate": 0.1}),
        (Training, {"schedule": "warmup-stable-decay"}, {"final_rate": 0.1}),
        (Training, {"optimiser": "muon"}, {"momentum": 0.9}),
        (Training, {"optimiser": "muon"}, {"epsilon": 1e-6}),
        (Model, {}, {"normalisation_bias": "none"}),
    ],
)
def test_what_a_word_takes_makes_another_section(section, settings, effective):
    assert section(**settings, **effective) != section(**settings)


def test_rms_has_no_bias_and_says_so():
    assert Model(normalisation="rms").normalisation_bias == "none"


def test_source_and_target_go_together_and_byte_pairs_have_a_size():
    with pytest.raises(ValidationError, match="source and target go together"):
        Data(corpus="text", source="de")
    with pytest.raises(ValidationError, match="byte pairs need a vocabulary size"):
        Data(corpus="text", vocabulary="bpe")


@pytest.mark.parametrize("value", [True, "10", 1.5, 0, -1, None])
def test_a_count_is_a_whole_number_from_one(value):
    with pytest.raises(ValidationError):
        Training(steps=value)


def test_a_number_that_no_database_could_keep_is_refused():
    with pytest.raises(ValidationError, match="a whole number from 1 on"):
        Training(steps=2**63)
