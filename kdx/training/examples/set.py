"""Classes of sets."""

from kdx.models.set import SetModel
from kdx.training.examples import ExamplesModule


class SetModule(ExamplesModule):
    """Predicts the class of a set."""

    build = SetModel
