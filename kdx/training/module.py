"""The base class of the tasks' LightningModules: the optimiser, clipping, and the sums of an evaluation."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn

from kdx.data.corpus import HELD_OUT
from kdx.data.documents import Documents
from kdx.data.vocabulary import Vocabulary
from kdx.grid.spec import CellSpec
from kdx.training.attention_weights import entropies
from kdx.training.optimiser import optimiser_of
from kdx.training.schedule import rate_factor
from kdx.training.sums import ByDocument, DocumentSums, Slices
from kdx.vocabulary import Split
from kdx.words.option import options_of


class TrainBatches(Protocol):
    """The batches of an epoch, which is repeated."""

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""

    def batch(self, step: int) -> Any:
        """Return the batch of this step of the run; it depends on nothing else."""


@dataclass(frozen=True)
class Batches:
    """The batches that a run reads."""

    train: TrainBatches
    evaluation: Mapping[Split, Any]
    """Validation and test, each batch once."""

    @classmethod
    def of(cls, batches: Callable[[Split], Any]) -> "Batches":
        """Return batches made by a function of the split; evaluations read them in their order."""
        return cls(batches(Split.TRAIN), {split: list(batches(split).in_order()) for split in HELD_OUT})


class TaskModule(lightning.LightningModule):
    """A task: its model, its loss and its evaluation.

    A class declares its facts (`kdx.tasks.definition.Task`) as literals, and inherits those of its base classes. After
    each evaluation pass, `results` has the metrics that the class names.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[str]
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]]
    only_test: ClassVar[Mapping[str, tuple[str, str, str]]] = {}
    slicings: ClassVar[tuple[tuple[str, str, tuple[str, ...]], ...]] = ()
    attentions: ClassVar[tuple[str, ...]]
    spaces: ClassVar[tuple[str, ...]] = ()
    embeddings: ClassVar[tuple[str, ...]]
    settings: ClassVar[tuple[str, ...]] = ()
    head_divisor: ClassVar[int] = 1

    texts: ClassVar[tuple[str, ...]] = ()
    """Names of the texts that the task reads, an item having one line of each; empty if it reads no text."""

    def __init__(self, spec: CellSpec, model: nn.Module) -> None:
        super().__init__()
        self.spec = spec
        self.model = model
        for name in options_of(type(self)):
            setattr(self, name, spec.option(name))
        self.results: dict[str, float] = {}
        """Metrics of the last evaluation pass, by name without split: `loss`, `perplexity`, …"""
        self._nats = torch.zeros((), dtype=torch.float64)
        self._targets = 0
        self.slices = Slices()
        """Measurements of a test by slice."""
        self.by_document = ByDocument(None)
        """Measurements of a test by document."""
        self.entropies: dict[str, float] = {}
        """Entropies of the last validation: `entropy/encoder-self`, …"""
        self.gradient_norm: Tensor | None = None
        """Norm of the last step's gradient before clipping; None if the cell does not clip."""

    @classmethod
    def of(cls, spec: CellSpec, corpus: Any) -> "TaskModule":
        """Return the module for a cell and its corpus."""
        return cls(spec, corpus)

    @classmethod
    def batches(cls, spec: CellSpec, corpus: Any, seed: int) -> Batches:
        """Return the batches of a corpus of the task's kind; the seed orders them, unless it is a stream of text."""
        raise NotImplementedError

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        """Return the cell's model for these weights, which give the sizes of vocabularies, so no text is needed."""
        raise NotImplementedError

    def outputs(self) -> Mapping[str, Sequence[str]]:
        """Return text to keep with the metrics of the last evaluation: name → one line an item (translations, …)."""
        return {}

    def inputs(self, *texts: str) -> dict[str, Tensor]:
        """Return the model's inputs for one line of each of `texts`, by the names of its arguments; B is 1."""
        raise TypeError(f"task {self.spec.task} reads no text")

    def translate(self, sentences: Sequence[str], beam: int | None = None) -> list[str]:
        """Return a translation of each sentence; see `kdx.training.trained.Trained.translate`."""
        raise TypeError(f"task {self.spec.task} does not translate")

    def vocabulary(self, text: str) -> Vocabulary | None:
        """Return the vocabulary of one of `texts`; None if its unknown words are not counted."""
        return None

    def classify(self, lines: Sequence[str]) -> list[dict[str, float]]:
        """Return the labels of each line; see `kdx.training.trained.Trained.classify`."""
        raise TypeError(f"task {self.spec.task} gives text no labels")

    def nats(self, *texts: Sequence[str]) -> tuple[float, int]:
        """Return the summed -ln p of the last of `texts`, given as lines, and its number of tokens."""
        raise TypeError(f"task {self.spec.task} gives no text a probability")

    def configure_optimizers(self) -> Any:
        """Return the cell's optimiser and schedule."""
        training = self.spec.training
        optimizer = optimiser_of(self.model, training)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(training, step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning's own clipping refuses a fused optimiser in bf16, though only fp16 would scale the gradients.
        clip = self.spec.training.clip
        if clip is not None:
            self.gradient_norm = nn.utils.clip_grad_norm_(self.parameters(), clip)

    def loss(self, batch: Any) -> Tensor:
        """Return the mean loss of a batch's targets in nats, with label smoothing if the cell has it."""
        raise NotImplementedError

    def snapshot(self) -> Callable[[], None]:
        """Return a function that restores what a batch leaves in the module for the next one, except weights."""
        return lambda: None

    def training_step(self, batch: Any, index: int) -> Tensor:
        return self.loss(batch)

    def evaluate(self, batch: Any, split: Split) -> None:
        """Add a batch to the sums of an evaluation."""
        raise NotImplementedError

    def add(self, nats: Tensor, targets: int) -> None:
        """Add each -ln p, without label smoothing, and the number of targets."""
        self._nats += nats.double().sum().cpu()
        self._targets += targets

    @property
    def nats_so_far(self) -> float:
        """The sum of an evaluation so far."""
        return self._nats.item()

    def summarise(self, split: Split) -> dict[str, float]:
        """Return the metrics of the whole pass. `loss` is in nats per target, without label smoothing."""
        loss = self._nats.item() / max(self._targets, 1)
        return {"loss": loss, "perplexity": exponential(loss)}

    def test_documents(self) -> Documents | None:
        """Return the documents of the test, whose items `evaluate` passes to `by_document`; None if it has none."""
        return None

    def document_sums(self) -> DocumentSums | None:
        """Return the last test's sums by document; None without documents, or if they give a score no error."""
        return self.by_document.sums()

    def definitions(self, split: Split) -> dict[str, str]:
        """Return metric of `summarise` → what it means for a split, in one line."""
        raise NotImplementedError

    def _start(self) -> None:
        self._nats.zero_()
        self._targets = 0
        self.slices = Slices()
        self.by_document = ByDocument(None)

    def on_validation_epoch_start(self) -> None:
        self._start()

    def validation_step(self, batch: Any, index: int) -> None:
        if index == 0:
            # One batch is enough, since Eq. 2 as printed is expensive.
            with entropies(self.model) as means:
                self.loss(batch)
            self.entropies = {f"entropy/{attention}": mean for attention, mean in means.items()}
        self.evaluate(batch, Split.VALID)

    def on_validation_epoch_end(self) -> None:
        self.results = self.summarise(Split.VALID) | self.entropies

    def on_test_epoch_start(self) -> None:
        self._start()
        self.by_document = ByDocument(self.test_documents())

    def test_step(self, batch: Any, index: int) -> None:
        self.evaluate(batch, Split.TEST)

    def on_test_epoch_end(self) -> None:
        self.results = self.summarise(Split.TEST)


def exponential(loss: float) -> float:
    """Return e^loss, infinite if a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf if loss == loss else math.nan
