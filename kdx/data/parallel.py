"""Loads parallel text as pairs, for tasks that translate."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kdx.data.arrays import Counts, map_lists, write_lists
from kdx.data.cache import cached
from kdx.data.corpus import HELD_OUT, TokenLists, unigram_loss
from kdx.data.facts import text_hash, unknown_rate, vocabulary_facts
from kdx.data.find_text import FoundText
from kdx.data.storage import data_home
from kdx.data.text_corpus import find_kind, learn, predicted_facts, text_key, vocabularies
from kdx.data.vocabulary import END, Vocabulary, count_words
from kdx.errors import KdxError
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.sections import Data
from kdx.tasks.data_kinds import PARALLEL_TEXT
from kdx.tasks.definition import Task
from kdx.vocabulary import Split


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus, pair by pair."""

    sources: TokenLists
    """Token lists, each with the end token last."""
    targets: TokenLists
    """Token lists, each with the end token last."""
    references: tuple[str, ...]
    """The target text for BLEU, with one space between words; empty for training."""


@dataclass(frozen=True)
class ParallelCorpus:
    """A corpus for translation."""

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    """The same object as the source vocabulary if the dictionaries are joint."""
    splits: Mapping[Split, ParallelText]
    fingerprint: str
    """SHA-256 over the tokens, the references and what each token is."""
    target: str
    """The target language, which is the suffix of its files."""
    tokenised: bool
    """Whether BLEU uses the words as they are, without a tokeniser."""
    unigram_loss: float
    """Nats per target token of the validation text under the training text's unigrams, with 1 added to counts."""
    left_out: int
    """Number of training pairs that are not in `splits`, since a side is empty or too long."""
    facts: Mapping[str, Any]
    """Facts by which scores compare, see `kdx.data.facts`: `vocabulary_size`, `test/unknown_rate`, … on the target
    text, `source/vocabulary_size`, `source/test/unknown_rate`, `test/source_text`, … on the source text."""
    notes: tuple[str, ...] = ()
    """Remarks for readers of the results."""
    uncached: str | None = None
    """Why the corpus is not in the cache; None if it is."""


def load_parallel(data: Data, home: Path | None = None, task: Task | None = None) -> ParallelCorpus:
    """The corpus that `data` names, as pairs of token lists.

    Training pairs with an empty side, or with more than `max_tokens` tokens on a side (the end token included), are
    left out; other splits are kept whole.

    Raises:
        KdxError: there is no such corpus, it is plain text, a sentence of its other splits is too long, or a
            setting does not fit it.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
    text = find_kind(data, home, PARALLEL_TEXT)

    def make(folder: Path) -> dict[str, Any]:
        train = [count_words(text.lines(Split.TRAIN, suffix)) for suffix in text.suffixes]
        words = learn(text, data, folder, train)
        written = {split: _write_pairs(text, data, split, words, folder) for split in Split}
        counts = {split: pairs.targets for split, pairs in written.items()}
        if not counts[Split.TRAIN].any():
            problem = f"no training pair has at most {data.max_tokens} tokens on either side"
            raise KdxError(problem, place="data.max_tokens")
        facts = predicted_facts(text, data, words[1], counts, train[1])
        facts |= {f"source/{name}": fact for name, fact in vocabulary_facts(words[0]).items()}
        for split in HELD_OUT:
            facts[f"{split}/source_text"] = text_hash(text.lines(split, text.suffixes[0]))
            facts[f"source/{split}/unknown_rate"] = unknown_rate(written[split].sources)
        return {"unigram_loss": unigram_loss(counts), "left_out": written[Split.TRAIN].left_out, "facts": facts}

    with cached(home, text_key(__name__, text, data, data.max_tokens), make) as cache:
        source, target = vocabularies(text, data, cache.folder)
        splits = {
            split: ParallelText(
                sources=TokenLists(*map_lists(cache.folder / f"{split}.source")),
                targets=TokenLists(*map_lists(cache.folder / f"{split}.target")),
                references=_references(cache.folder, split),
            )
            for split in Split
        }
        left_out, kept = cache.facts["left_out"], len(splits[Split.TRAIN].sources)
        return ParallelCorpus(
            source_vocabulary=source,
            target_vocabulary=target,
            splits=splits,
            target=text.suffixes[1],
            fingerprint=cache.fingerprint,
            tokenised=text.tokenised,
            unigram_loss=cache.facts["unigram_loss"],
            left_out=left_out,
            notes=(_left_out(left_out, data, kept),) if left_out else (),
            facts=cache.facts["facts"],
            uncached=cache.uncached,
        )


class _Pairs(NamedTuple):
    sources: Counts
    """How often each source token occurs."""
    targets: Counts
    left_out: int
    """Number of pairs that were left out."""


def _write_pairs(text: FoundText, data: Data, split: Split, words: list[Vocabulary], folder: Path) -> _Pairs:
    """Writes one split into `folder`."""
    source, target = words
    references = []
    left_out = 0
    with (
        write_lists(folder / f"{split}.source", below=source.size) as sources,
        write_lists(folder / f"{split}.target", below=target.size) as targets,
    ):
        lines = zip(*(text.lines(split, suffix) for suffix in text.suffixes), strict=True)
        for number, (one, other) in enumerate(lines, 1):
            pair = [*source.encode(one), END], [*target.encode(other), END]
            if split is not Split.TRAIN:
                references.append(" ".join(other.split()))
                _check_length(text, data, split, number, pair)
            elif not all(1 < len(side) <= data.max_tokens for side in pair):
                left_out += 1
                continue
            sources.append(pair[0])
            targets.append(pair[1])
    (folder / f"{split}.references").write_text("\n".join(references), encoding="utf-8")
    return _Pairs(sources.counts, targets.counts, left_out)


def _check_length(text: FoundText, data: Data, split: Split, number: int, pair: tuple[list[int], list[int]]) -> None:
    """Refuses a pair that some model could not read, since an evaluation reads every pair whole."""
    most = max(MAX_POSITIONS, data.max_tokens)
    for suffix, side in zip(text.suffixes, pair, strict=True):
        if len(side) > most:
            raise KdxError(
                f"line {number:,} of {split}.{suffix} of `{data.corpus}` has {len(side):,} tokens",
                place="data.corpus",
                allowed=f"at most {most:,}, of which the last is the end token",
                hint="take the pair out, or cut it into sentences, and prepare the text anew",
            )


def _references(folder: Path, split: Split) -> tuple[str, ...]:
    if split is Split.TRAIN:
        return ()
    return tuple((folder / f"{split}.references").read_text(encoding="utf-8").split("\n"))


def _left_out(pairs: int, data: Data, kept: int) -> str:
    return (
        f"{data.corpus}: {pairs:,} of {pairs + kept:,} training pairs are left out;"
        f" a side is empty or has more than {data.max_tokens:,} tokens (data.max_tokens)"
    )
