"""Relations between the nodes of labelled graphs."""

from collections.abc import Mapping

from torch import Tensor, nn

from kdx.data.generated import ExampleCorpus
from kdx.grid.spec import CellSpec
from kdx.models.graph import GraphModel
from kdx.training.examples import ExamplesModule


class GraphModule(ExamplesModule):
    """Predicts the relation of one node to another."""

    @classmethod
    def built(cls, spec: CellSpec, corpus: ExampleCorpus) -> nn.Module:
        return GraphModel(spec, corpus.classes)

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        return GraphModel(spec, len(state["output.weight"]))
