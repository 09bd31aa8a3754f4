"""Relations between the nodes of labelled graphs."""

from collections.abc import Mapping

from torch import Tensor, nn

from kdx.data.generated import ExampleCorpus
from kdx.grid.spec import CellSpec
from kdx.models.graph import GraphModel
from kdx.training.examples import ExamplesModule
from kdx.vocabulary import Split


class GraphModule(ExamplesModule):
    """A question about a node of a labelled graph."""

    name = "graph"
    attentions = ("encoder-self",)
    # A set is the nodes without their edges.
    spaces = ("graph", "set")

    @classmethod
    def built(cls, spec: CellSpec, corpus: ExampleCorpus) -> nn.Module:
        return GraphModel(spec, corpus.classes, corpus.splits[Split.TRAIN].inputs["nodes"].shape[1])

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        return GraphModel.of_weights(spec, state)
