"""Loads parallel text as pairs, for tasks that translate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kdx.data.arrays import Counts, TokenLists, map_lists, write_lists
from kdx.data.cache import cached
from kdx.data.corpus import HELD_OUT, Corpus, unigram_loss
from kdx.data.facts import predicted_facts, split_facts, text_hash
from kdx.data.find_text import FoundText, find_kind, find_text
from kdx.data.text_corpus import learn, note_on_left_out, other_text_key, spelling_of, text_key, vocabularies
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
class ParallelCorpus(Corpus):
    """A corpus for translation.

    Facts: `vocabulary_size`, `test/unknown_rate`, … on the target text, and `test/source_text`, the source's hash.
    """

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    """The same object as the source vocabulary if the dictionaries are joint."""
    splits: Mapping[Split, ParallelText]
    target: str
    """The target language, which is the suffix of its files."""
    tokenised: bool
    """Whether BLEU uses the words as they are, without a tokeniser."""


def load_parallel(data: Data, home: Path | None = None, task: Task | None = None) -> ParallelCorpus:
    """Load the corpus that `data` names, as pairs of token lists.

    Training pairs with an empty side, or with more than `max_tokens` tokens on a side (the end token included), are
    left out; other splits are kept whole.

    Raises:
        KdxError: the corpus does not exist or is plain text, a sentence of its other splits is too long, or a setting
            does not fit it.
        StorageError: the cache cannot be written.
    """
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
        for split in HELD_OUT:
            facts |= _source_text(text, split)
        return {"unigram_loss": unigram_loss(counts), "left_out": written[Split.TRAIN].left_out, "facts": facts}

    cache = cached(home, text_key(__name__, text, data, data.max_tokens), make)
    source, target = vocabularies(text, data, cache.folder)
    splits = {split: _read_pairs(cache.folder, split) for split in Split}
    why = "pairs are left out; a side is empty or has"
    return ParallelCorpus(
        source_vocabulary=source,
        target_vocabulary=target,
        splits=splits,
        target=text.suffixes[1],
        fingerprint=cache.fingerprint,
        tokenised=text.tokenised,
        unigram_loss=cache.facts["unigram_loss"],
        notes=note_on_left_out(data, cache.facts["left_out"], len(splits[Split.TRAIN].sources), why),
        facts=cache.facts["facts"],
    )


def load_other_parallel(
    data: Data, trained: Data, corpus: ParallelCorpus, split: Split, home: Path | None = None
) -> ParallelCorpus:
    """Return a copy of `corpus` in which a held-out split is that of another text, in the same direction.

    Args:
        data: data that name the other text.
        trained: data of `corpus`, whose training words spell unknown tokens.

    Raises:
        KdxError: the text does not exist or is not parallel, or one of its sentences is too long to be read.
        StorageError: the cache cannot be written.
    """
    source, target = find_text(trained, home).suffixes
    data = data.model_copy(update={"source": source, "target": target, "max_tokens": trained.max_tokens})
    text = find_kind(data, home, PARALLEL_TEXT)
    words = [corpus.source_vocabulary, corpus.target_vocabulary]

    def make(folder: Path) -> dict[str, Any]:
        written = _write_pairs(text, data, split, words, folder)
        facts = split_facts(text, split, corpus.target_vocabulary, written.targets, spelling_of(trained, home))
        return {"facts": facts | _source_text(text, split)}

    cache = cached(home, other_text_key(__name__, text, trained, words, split), make)
    return replace(
        corpus,
        splits={**corpus.splits, split: _read_pairs(cache.folder, split)},
        facts={**corpus.facts, **cache.facts["facts"]},
        fingerprint=cache.fingerprint,
        tokenised=text.tokenised,
    )


def _source_text(text: FoundText, split: Split) -> dict[str, Any]:
    """Return the fact about the source text of a split."""
    return {f"{split}/source_text": text_hash(text.lines(split, text.suffixes[0]))}


class _Pairs(NamedTuple):
    targets: Counts
    """Number of times that each target token occurs."""
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
        for number, (line, translation) in enumerate(lines, 1):
            pair = [*source.encode(line), END], [*target.encode(translation), END]
            if split is not Split.TRAIN:
                references.append(" ".join(translation.split()))
                _check_length(text, data, split, number, pair)
            elif not all(1 < len(side) <= data.max_tokens for side in pair):
                left_out += 1
                continue
            sources.append(pair[0])
            targets.append(pair[1])
    (folder / f"{split}.references").write_text("\n".join(references), encoding="utf-8")
    return _Pairs(targets.counts, left_out)


def _check_length(text: FoundText, data: Data, split: Split, number: int, pair: tuple[list[int], list[int]]) -> None:
    """Refuse a pair that some model could not read, since an evaluation reads every pair whole."""
    most = max(MAX_POSITIONS, data.max_tokens)
    for suffix, side in zip(text.suffixes, pair, strict=True):
        if len(side) > most:
            raise KdxError(
                f"line {number:,} of {split}.{suffix} of `{data.corpus}` has {len(side):,} tokens",
                place="data.corpus",
                allowed=f"at most {most:,}, of which the last is the end token",
                hint="take the pair out, or cut it into sentences, and prepare the text anew",
            )


def _read_pairs(folder: Path, split: Split) -> ParallelText:
    """Maps the split that `_write_pairs` wrote."""
    references = (folder / f"{split}.references").read_text(encoding="utf-8")
    return ParallelText(
        sources=map_lists(folder / f"{split}.source"),
        targets=map_lists(folder / f"{split}.target"),
        references=() if split is Split.TRAIN else tuple(references.split("\n")),
    )
