"""Loads generated examples, which are arrays instead of text."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdx.data.arrays import Counts, map_array
from kdx.data.cache import cache_key, cached
from kdx.data.corpus import HELD_OUT, Corpus, corpus_code, unigram_loss
from kdx.data.examples import NO_ANSWER, Examples, ExamplesOneByOne, GeneratedExamples
from kdx.data.facts import example_facts
from kdx.errors import KdxError
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.sections import Data
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.definition import Task
from kdx.vocabulary import Split

_TARGETS, _SLICE = "targets", "slice"


@dataclass(frozen=True)
class ExampleCorpus(Corpus):
    """A corpus of examples. Facts: `test/examples`, `test/content`, …"""

    splits: Mapping[Split, Examples]
    tokens: int
    """Number of tokens that the model reads in an example, padding included."""
    classes: int
    """Number of classes that a target may have."""


def load_examples(data: Data, home: Path | None, task: Task) -> ExampleCorpus:
    """Load the corpus that `data` names, as arrays.

    Raises:
        KdxError: the corpus does not exist or is not for this task, or its options do not fit each other.
        StorageError: the cache cannot be written.
    """
    generator = examples_of(data, task)
    sizes = {**generator.sizes, Split.TRAIN: data.train_examples or generator.sizes[Split.TRAIN]}
    # Examples are drawn by the name of the class: its file may be moved.
    corpus = data.corpus.rpartition(":")[2]

    def make(folder: Path) -> dict[str, Any]:
        splits = {split: generator.generate(corpus, data.seed, split, sizes[split]) for split in Split}
        for split, examples in splits.items():
            for name, array in (*examples.inputs.items(), (_TARGETS, examples.targets)):
                np.save(folder / f"{split}.{name}.npy", array)
            for name, array in examples.slices.items():
                np.save(folder / f"{split}.{_SLICE}.{name}.npy", array)
        counts = {split: _counts(splits[split].targets, generator.classes) for split in Split}
        facts = {name: fact for split in HELD_OUT for name, fact in example_facts(splits[split], split).items()}
        return {
            "inputs": list(splits[Split.TRAIN].inputs),
            "slices": list(splits[Split.TRAIN].slices),
            "unigram_loss": unigram_loss(counts),
            "facts": facts,
        }

    key = cache_key([corpus, data.seed, dict(data.options), sizes, corpus_code(__name__, data.corpus)])
    cache = cached(home, key, make)
    return ExampleCorpus(
        splits={
            split: Examples(
                {name: map_array(cache.folder / f"{split}.{name}.npy") for name in cache.facts["inputs"]},
                map_array(cache.folder / f"{split}.{_TARGETS}.npy"),
                {name: map_array(cache.folder / f"{split}.{_SLICE}.{name}.npy") for name in cache.facts["slices"]},
            )
            for split in Split
        },
        tokens=generator.tokens,
        classes=generator.classes,
        fingerprint=cache.fingerprint,
        unigram_loss=cache.facts["unigram_loss"],
        facts=cache.facts["facts"],
    )


def examples_of(data: Data, task: Task) -> GeneratedExamples:
    """Return the generator of the corpus that `data` names, with its options.

    Raises:
        KdxError: the corpus does not exist or is not for this task, or its options do not fit each other.
    """
    generator = BUILT_IN.get(data.corpus)
    if not isinstance(generator, GeneratedExamples) or generator.task != task.word:
        allowed = [
            name for name, kind in BUILT_IN.items() if isinstance(kind, GeneratedExamples) and kind.task == task.word
        ]
        problem = f"`{data.corpus}` is no corpus of generated examples for task {task.word}"
        raise KdxError(problem, place="data.corpus", allowed=allowed)
    if isinstance(generator, ExamplesOneByOne):
        generator = replace(generator, **data.options)
        if fault := generator.fault():
            raise fault
        if generator.tokens > MAX_POSITIONS:
            raise KdxError(
                f"examples of {generator.tokens:,} tokens", place="data.corpus", allowed=f"at most {MAX_POSITIONS:,}"
            )
    return generator


def _counts(targets: NDArray[Any], classes: int) -> Counts:
    """Return the number of times that each class is the target."""
    return np.bincount(targets[targets != NO_ANSWER].ravel(), minlength=classes)
