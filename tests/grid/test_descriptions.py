"""What is said of an attribute stands below it in the source."""

from kdx.grid.descriptions import descriptions
from kdx.grid.sections import Section, Training
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Norm


class Elsewhere(Section):
    steps: int = 1
    """No class of kdx."""


def test_a_text_of_several_lines_is_one_line():
    text = descriptions(Training)["decay"]
    assert text.startswith("Of warmup-stable-decay: the steps") and "\n" not in text and "  " not in text


def test_an_attribute_without_a_text_has_none():
    assert "model_config" not in descriptions(Training)


def test_those_of_base_classes_are_among_them():
    assert descriptions(CellSpec)["kernel"] == "The kernel that compares queries with keys."


def test_words_of_an_enum_have_them_too():
    assert descriptions(Norm) == {
        "POST": "After the residual sum (Vaswani et al. 2017).",
        "PRE": "Before each sublayer (Xiong et al. 2020).",
    }


def test_a_class_from_outside_says_nothing():
    assert dict(descriptions(Elsewhere)) == dict(descriptions(Section))
