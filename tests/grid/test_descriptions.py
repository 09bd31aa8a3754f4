"""What is said of an attribute stands below it in the source."""

from kdx.grid.evaluations import EvaluationChoices, EvaluationSettings
from kdx.grid.field_types import Section, descriptions
from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Norm


class Elsewhere(Section):
    steps: int = 1
    """No class of kdx."""


def test_each_attribute_has_its_text_on_one_line():
    texts = descriptions(Training)
    assert texts.keys() == Training.model_fields.keys()
    assert texts["decay"].startswith("Of warmup-stable-decay: the steps") and "  " not in texts["decay"]
    assert descriptions(Norm)["PRE"] == "Before each sublayer (Xiong et al. 2020)."


def test_those_of_base_classes_of_kdx_are_among_them():
    assert descriptions(CellSpec)["kernel"] == "The kernel that compares queries with keys."
    assert descriptions(EvaluationChoices) == descriptions(EvaluationSettings)
    assert descriptions(Elsewhere) == descriptions(Section)
