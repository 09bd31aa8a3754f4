"""The sections of a cell take what they mean and nothing that merely looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.grid.evaluations import EvaluationChoices, EvaluationSettings
from kdx.grid.field_types import Section, descriptions
from kdx.grid.sections import Model, Training
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Norm


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_width_is_taken_exactly_when_it_divides_by_the_heads(width, heads):
    if width % heads == 0:
        assert Model(width=width, heads=heads).width == width
    else:
        with pytest.raises(ValidationError, match=f"width {width} does not divide by {heads} heads"):
            Model(width=width, heads=heads)


def test_warm_up_and_decay_fit_into_the_run():
    stable = {"schedule": "warmup-stable-decay", "warmup": 60, "steps": 100}
    assert Training(**stable).decay == 10
    assert Training(**stable, decay=40).decay == 40
    assert Training(**stable | {"steps": 5, "warmup": 4}).decay == 1
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


class Elsewhere(Section):
    steps: int = 1
    """No class of kdx."""


def test_each_attribute_has_its_text_on_one_line():
    texts = descriptions(Training)
    assert texts.keys() == Training.model_fields.keys()
    assert texts["decay"].startswith("Steps at the end of the run") and "  " not in texts["decay"]
    assert descriptions(Norm)["PRE"] == "Before each sublayer (Xiong et al. 2020)."


def test_those_of_base_classes_of_kdx_are_among_them():
    assert descriptions(CellSpec)["kernel"] == "The kernel that compares queries with keys."
    assert descriptions(EvaluationChoices) == descriptions(EvaluationSettings)
    assert descriptions(Elsewhere) == descriptions(Section)
