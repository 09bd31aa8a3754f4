"""A corpus as tokens or arrays: what `kdx.grid.spec.Data` names, made once and from then on mapped from the cache."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdx import axes
from kdx.axes import Split, Task
from kdx.data import BUILT_IN, vocabulary
from kdx.data.cache import cached
from kdx.data.examples import Examples, GeneratedExamples
from kdx.data.find_text import FoundText, corpus_names, find_text
from kdx.data.storage import data_home
from kdx.data.text import Lines
from kdx.data.vocabulary import END, Vocabulary
from kdx.errors import KdxError
from kdx.grid.sections import Data

Tokens = NDArray[np.int32]
_TARGETS = "targets"


@dataclass(frozen=True)
class TokenLists:
    """Lists of token ids of any lengths, laid end to end."""

    flat: Tokens
    """Every token, list after list."""
    offsets: NDArray[np.int64]
    """Where each list begins, and where the last one ends: one more than there are lists."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Tokens:
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each list."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus, pair by pair."""

    sources: TokenLists
    """Each ends with the end token."""
    targets: TokenLists
    """Each ends with the end token."""
    references: tuple[str, ...]
    """The target text, words with one space between them: what BLEU compares a translation with."""


@dataclass(frozen=True)
class ParallelCorpus:
    """A corpus for translation."""

    vocabulary: Vocabulary
    """One for both languages."""
    splits: Mapping[Split, ParallelText]
    fingerprint: str
    """SHA-256 over the text in use and the settings that made tokens of it."""
    tokenised: bool
    """Whether BLEU is to take the words as they are, without a tokeniser of its own."""
    unigram_loss: float
    """Nats per target token of the validation text under the training text's unigram distribution, each count + 1."""


@dataclass(frozen=True)
class StreamCorpus:
    """A corpus for sequence prediction: every line, one after the other."""

    vocabulary: Vocabulary
    splits: Mapping[Split, Tokens]
    """Each line's tokens and one end token; an empty line is the end token alone."""
    words: Mapping[Split, int]
    """Words of a split and one end a line: what perplexity per word divides by, whatever a token is."""
    fingerprint: str
    """SHA-256 over the text in use and the settings that made tokens of it."""
    unigram_loss: float
    """Nats per token of the validation text under the training text's unigram distribution, each count + 1."""


@dataclass(frozen=True)
class ExampleCorpus:
    """A corpus of examples that are no text."""

    splits: Mapping[Split, Examples]
    tokens: int
    """That the model reads of an example, padding included."""
    fingerprint: str
    """SHA-256 over the examples."""
    unigram_loss: float
    """Nats per target of the validation examples under the distribution of the training targets, each count + 1."""


def load_corpus(task: Task, data: Data, home: Path | None = None) -> ParallelCorpus | StreamCorpus | ExampleCorpus:
    """The corpus that `data` names, in the form that the task learns from.

    Raises:
        KdxError: see the three below.
        StorageError: the cache cannot be written.
    """
    if task is Task.TRANSLATION:
        return load_parallel(data, home)
    return load_stream(data, home) if task is Task.PREDICTION else load_examples(task, data, home)


def load_parallel(data: Data, home: Path | None = None) -> ParallelCorpus:
    """The corpus that `data` names, as pairs of token lists.

    Of the training text only, pairs with an empty side or with more than `max_tokens` tokens on a side (the end token
    included) are left out.

    Raises:
        KdxError: there is no such corpus, it is plain text, or a setting does not fit it.
        StorageError: the cache cannot be written.
    """
    home = home or data_home()
    text = _find(data, home, parallel=True)

    def make(folder: Path) -> dict[str, Any]:
        lines, words = _learn(text, data, folder)
        targets = {}
        for split in Split:
            source, target = (lines[split][suffix] for suffix in text.suffixes)
            pairs = [([*words.encode(s), END], [*words.encode(t), END], t) for s, t in zip(source, target, strict=True)]
            if split is Split.TRAIN:
                pairs = [(s, t, r) for s, t, r in pairs if all(1 < len(side) <= data.max_tokens for side in (s, t))]
                if not pairs:
                    problem = f"no training pair has at most {data.max_tokens} tokens on either side"
                    raise KdxError(problem, place="data.max_tokens")
            _save_lists(folder / f"{split}.source", [s for s, _, _ in pairs])
            targets[split] = _save_lists(folder / f"{split}.target", [t for _, t, _ in pairs])
            (folder / f"{split}.references").write_text("\n".join(r for _, _, r in pairs), encoding="utf-8")
        return {
            "fingerprint": _hash([lines, words.fields(), text.suffixes, data.max_tokens]),
            "unigram_loss": _unigram_loss(targets[Split.TRAIN], targets[Split.VALID], words.size),
        }

    folder, facts = cached(home, _key(text, data, data.max_tokens), make)
    return ParallelCorpus(
        vocabulary=vocabulary.load(folder / "vocabulary.json"),
        splits={
            split: ParallelText(
                sources=_load_lists(folder / f"{split}.source"),
                targets=_load_lists(folder / f"{split}.target"),
                references=tuple((folder / f"{split}.references").read_text(encoding="utf-8").split("\n")),
            )
            for split in Split
        },
        tokenised=text.tokenised,
        **facts,
    )


def load_stream(data: Data, home: Path | None = None) -> StreamCorpus:
    """The corpus that `data` names, as one stream of tokens a split.

    Raises:
        KdxError: there is no such corpus, it is parallel text, or a setting does not fit it.
        StorageError: the cache cannot be written.
    """
    home = home or data_home()
    text = _find(data, home, parallel=False)
    (suffix,) = text.suffixes

    def make(folder: Path) -> dict[str, Any]:
        lines, words = _learn(text, data, folder)
        streams = {}
        for split in Split:
            ids = (id for line in lines[split][suffix] for id in (*words.encode(line), END))
            streams[split] = np.fromiter(ids, np.int32)
            np.save(folder / f"{split}.npy", streams[split])
        return {
            "words": {split: sum(len(line.split()) + 1 for line in lines[split][suffix]) for split in Split},
            "fingerprint": _hash([lines, words.fields()]),
            "unigram_loss": _unigram_loss(streams[Split.TRAIN], streams[Split.VALID], words.size),
        }

    folder, facts = cached(home, _key(text, data), make)
    return StreamCorpus(
        vocabulary=vocabulary.load(folder / "vocabulary.json"),
        splits={split: _map(folder / f"{split}.npy") for split in Split},
        words={split: facts["words"][split] for split in Split},
        fingerprint=facts["fingerprint"],
        unigram_loss=facts["unigram_loss"],
    )


def load_examples(task: Task, data: Data, home: Path | None = None) -> ExampleCorpus:
    """The corpus that `data` names, as arrays.

    Raises:
        KdxError: there is no such corpus, or it is not for this task.
        StorageError: the cache cannot be written.
    """
    made = BUILT_IN.get(data.corpus)
    if not isinstance(made, GeneratedExamples) or made.task is not task:
        allowed = [name for name, kind in BUILT_IN.items() if isinstance(kind, GeneratedExamples) and kind.task is task]
        problem = f"`{data.corpus}` is no corpus of generated examples for task {task}"
        raise KdxError(problem, place="data.corpus", allowed=allowed)
    sizes = {**made.sizes, Split.TRAIN: data.train_examples or made.sizes[Split.TRAIN]}

    def make(folder: Path) -> dict[str, Any]:
        splits = {split: made.generate(data.corpus, data.seed, split, sizes[split]) for split in Split}
        for split, examples in splits.items():
            for name, array in (*examples.inputs.items(), (_TARGETS, examples.targets)):
                np.save(folder / f"{split}.{name}.npy", array)
        targets = {split: splits[split].targets.ravel() for split in (Split.TRAIN, Split.VALID)}
        return {
            "inputs": list(splits[Split.TRAIN].inputs),
            "fingerprint": _hash(
                {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
            ),
            "unigram_loss": _unigram_loss(targets[Split.TRAIN], targets[Split.VALID], made.classes),
        }

    folder, facts = cached(home or data_home(), _hash([data.corpus, data.seed, sizes, _code()]), make)
    return ExampleCorpus(
        splits={
            split: Examples(
                {name: _map(folder / f"{split}.{name}.npy") for name in facts["inputs"]},
                _map(folder / f"{split}.{_TARGETS}.npy"),
            )
            for split in Split
        },
        tokens=made.tokens,
        fingerprint=facts["fingerprint"],
        unigram_loss=facts["unigram_loss"],
    )


def _find(data: Data, home: Path, *, parallel: bool) -> FoundText:
    text = find_text(data, home)
    if (len(text.suffixes) > 1) is not parallel:
        kinds = {True: "parallel text, for translation", False: "plain text, for prediction"}
        raise KdxError(
            f"corpus `{data.corpus}` is {kinds[not parallel]}; this task needs {kinds[parallel]}",
            place="data.corpus",
            allowed=corpus_names(home, parallel=parallel),
        )
    return text


def _learn(text: FoundText, data: Data, folder: Path) -> tuple[Lines, Vocabulary]:
    """The text, and the vocabulary of its training part, which is saved in `folder`."""
    lines = text.read()
    train = [line for suffix in text.suffixes for line in lines[Split.TRAIN][suffix]]
    words = vocabulary.learn(data.vocabulary, train, data.vocabulary_size)
    words.save(folder / "vocabulary.json")
    return lines, words


def _key(text: FoundText, data: Data, *settings: int) -> str:
    """Changes with whatever the tokens depend on: the text, the settings, and the code that makes the one the other."""
    library = version("tokenizers") if data.vocabulary is axes.Vocabulary.BPE else None
    wanted = [data.vocabulary, data.vocabulary_size, data.train_lines, *settings]
    return _hash([text.identity, text.suffixes, wanted, library, _code()])


def _code() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _unigram_loss(train: Tokens, valid: Tokens, size: int) -> float:
    counts = np.bincount(train, minlength=size) + 1
    return float(-np.log(counts[valid] / counts.sum()).mean())


def _save_lists(stem: Path, lists: Sequence[Sequence[int]]) -> Tokens:
    flat = np.fromiter(chain.from_iterable(lists), np.int32)
    np.save(f"{stem}.tokens.npy", flat)
    np.save(f"{stem}.offsets.npy", np.cumsum([0, *map(len, lists)], dtype=np.int64))
    return flat


def _load_lists(stem: Path) -> TokenLists:
    return TokenLists(flat=_map(f"{stem}.tokens.npy"), offsets=_map(f"{stem}.offsets.npy"))


def _map(path: Path | str) -> NDArray[Any]:
    # As a plain array: a slice of a memmap costs several times one of an array over the same memory.
    return np.asarray(np.load(path, mmap_mode="r"))
