"""Evaluates a trained model: reads a text as the run's test did, or with other settings, and returns the metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from torch.utils.data import DataLoader

from kdx.cell_code import evaluation_code_of
from kdx.data.corpus import Corpus
from kdx.data.evaluated import evaluated_corpus
from kdx.data.reading import longest_context
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training.determinism import fix_arithmetic
from kdx.training.environment import environment
from kdx.training.lifecycle import DuringTest
from kdx.training.module import TaskModule
from kdx.training.stopping import StopRequest
from kdx.training.sums import DocumentSums
from kdx.training.trainer import evaluator_of
from kdx.vocabulary import Split


@dataclass(frozen=True)
class EvaluationOutcome:
    """The result of an evaluation."""

    metrics: Mapping[str, float]
    """Metric, without a split → value."""
    definitions: Mapping[str, str]
    """Metric → what it means, or its signature."""
    data_fingerprint: str
    longest_context: int | None
    """The largest number of tokens that a token is predicted from, memory included; None if no stream was read."""
    documents: DocumentSums | None = None
    """Sums by document; None if the task has no documents."""


class Evaluator:
    """Evaluates one run, loading its weights and corpus once."""

    def __init__(
        self,
        spec: CellSpec,
        seed: int,
        weights: Mapping[str, Any],
        corpus: Corpus,
        *,
        stop: StopRequest,
        alive: Callable[[], None],
        home: Path | None = None,
    ) -> None:
        """Take a run of this cell and seed.

        Args:
            weights: state of the model that was tested.
            corpus: corpus that the run was trained with.
            stop: once requested, an evaluation stops before its next batch.
            alive: called before each batch.
            home: folder of prepared corpora; None for the user's.
        """
        fix_arithmetic(spec.training)
        self._spec, self._seed, self._corpus, self._home = spec, seed, corpus, home
        self._weights = weights
        self._trainer = evaluator_of(spec.training, DuringTest(seed, stop, alive))
        code = evaluation_code_of(spec)
        self.code_fingerprint = code.sha256
        self.environment = {**environment(spec.training), "code": dict(code.modules)}
        """The libraries, hardware and code that compute the evaluations."""

    def evaluate(self, evaluation: ResolvedEvaluation) -> EvaluationOutcome:
        """Read the text once, with the settings of the evaluation.

        Raises:
            Stopped: a stop was requested.
            KdxError: the text does not exist, or is too short.
            StorageError: the cache cannot be written.
        """
        corpus = evaluated_corpus(self._spec, evaluation, self._corpus, self._home)
        task: type[TaskModule] = TASKS[self._spec.task]
        module = task.of(evaluation.spec, corpus)
        module.model = self._model(evaluation.spec)
        batches = task.batches(evaluation.spec, corpus, self._seed).evaluation[Split.TEST]
        self._trainer.test(module, DataLoader(batches, batch_size=None), verbose=False)
        return EvaluationOutcome(
            metrics=dict(module.results),
            definitions=module.definitions(Split.TEST),
            data_fingerprint=corpus.fingerprint,
            longest_context=longest_context(evaluation.spec, corpus, Split.TEST),
            documents=module.document_sums(),
        )

    def _model(self, spec: CellSpec) -> nn.Module:
        # Positions are counted from the longest memory, even if the memory of this evaluation is shorter.
        longest = max(self._spec.memory, self._spec.evaluation.memory or 0, spec.evaluation.memory or 0)
        section = spec.evaluation.model_copy(update={"memory": longest or None})
        task: type[TaskModule] = TASKS[spec.task]
        model = task.model_of(spec.model_copy(update={"evaluation": section}), self._weights)
        model.load_state_dict(self._weights)
        return model.eval()
