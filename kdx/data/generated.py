"""Loads generated examples, which are arrays instead of text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kdx.data.arrays import map_array
from kdx.data.cache import cached
from kdx.data.corpora import BUILT_IN
from kdx.data.corpus import HELD_OUT, cache_key, corpus_code, unigram_loss
from kdx.data.examples import Examples, GeneratedExamples
from kdx.data.facts import example_facts
from kdx.data.storage import data_home
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.tasks.definition import Task
from kdx.vocabulary import Split

_TARGETS = "targets"


@dataclass(frozen=True)
class ExampleCorpus:
    """A corpus of examples."""

    splits: Mapping[Split, Examples]
    tokens: int
    """Number of tokens that the model reads in an example, padding included."""
    fingerprint: str
    """SHA-256 over the examples."""
    unigram_loss: float
    """Nats per target of the validation examples under the training targets' distribution, with 1 added to counts."""
    facts: Mapping[str, Any]
    """Facts by which scores compare, see `kdx.data.facts`: `test/examples`, `test/content`, …"""
    notes: tuple[str, ...] = ()
    """Remarks for readers of the results."""
    uncached: str | None = None
    """Why the corpus is not in the cache; None if it is."""


def load_examples(data: Data, home: Path | None, task: Task) -> ExampleCorpus:
    """The corpus that `data` names, as arrays.

    Raises:
        KdxError: there is no such corpus, or it is not for this task.
        StorageError: neither the cache nor a temporary file can be written.
    """
    made = BUILT_IN.get(data.corpus)
    if not isinstance(made, GeneratedExamples) or made.task != task.word:
        allowed = [
            name for name, kind in BUILT_IN.items() if isinstance(kind, GeneratedExamples) and kind.task == task.word
        ]
        problem = f"`{data.corpus}` is no corpus of generated examples for task {task.word}"
        raise KdxError(problem, place="data.corpus", allowed=allowed)
    sizes = {**made.sizes, Split.TRAIN: data.train_examples or made.sizes[Split.TRAIN]}

    def make(folder: Path) -> dict[str, Any]:
        splits = {split: made.generate(data.corpus, data.seed, split, sizes[split]) for split in Split}
        for split, examples in splits.items():
            for name, array in (*examples.inputs.items(), (_TARGETS, examples.targets)):
                np.save(folder / f"{split}.{name}.npy", array)
        counts = {split: np.bincount(splits[split].targets.ravel(), minlength=made.classes) for split in Split}
        facts = {f"{split}/{name}": fact for split in HELD_OUT for name, fact in example_facts(splits[split]).items()}
        return {"inputs": list(splits[Split.TRAIN].inputs), "unigram_loss": unigram_loss(counts), "facts": facts}

    with cached(
        home or data_home(), cache_key([data.corpus, data.seed, sizes, corpus_code(__name__, data.corpus)]), make
    ) as cache:
        return ExampleCorpus(
            splits={
                split: Examples(
                    {name: map_array(cache.folder / f"{split}.{name}.npy") for name in cache.facts["inputs"]},
                    map_array(cache.folder / f"{split}.{_TARGETS}.npy"),
                )
                for split in Split
            },
            tokens=made.tokens,
            fingerprint=cache.fingerprint,
            unigram_loss=cache.facts["unigram_loss"],
            facts=cache.facts["facts"],
            uncached=cache.uncached,
        )
