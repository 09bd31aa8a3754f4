"""Relations between the nodes of labelled graphs."""

from collections.abc import Mapping

from torch import Tensor, nn

from kdx.data.generated import ExampleCorpus
from kdx.grid.spec import CellSpec
from kdx.models.graph import GraphModel
from kdx.training.examples import ExamplesModule


class GraphModule(ExamplesModule):
    """What a node of a labelled graph is to another."""

    attentions = ("encoder-self",)
    # As a set, the nodes without their edges.
    spaces = ("graph", "set")

    @classmethod
    def built(cls, spec: CellSpec, corpus: ExampleCorpus) -> nn.Module:
        return GraphModel(spec, corpus.classes)

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        return GraphModel(spec, len(state["output.weight"]))
