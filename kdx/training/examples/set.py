"""Classes of sets."""

from kdx.models.set import SetModel
from kdx.training.examples import ExamplesModule


class SetModule(ExamplesModule):
    """The class of a set."""

    name = "set"
    attentions = ("encoder-self",)
    spaces = ("set",)

    build = SetModel
