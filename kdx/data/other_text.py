"""Text that a run was not trained with, in the run's own tokens, so that a trained model can be evaluated on it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdx.data.arrays import map_array, map_lists, write_array, write_lists
from kdx.data.cache import cached
from kdx.data.corpus import TokenLists, cache_key
from kdx.data.facts import Spelling, text_facts, text_hash, unknown_rate, vocabulary_facts
from kdx.data.find_text import FoundText, find_text
from kdx.data.parallel import ParallelCorpus, ParallelText
from kdx.data.storage import data_home
from kdx.data.stream import StreamCorpus
from kdx.data.text_corpus import find_kind
from kdx.data.vocabulary import END, Vocabulary, count_words
from kdx.errors import KdxError
from kdx.fingerprint import fingerprint
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.sections import Data
from kdx.tasks.data_kinds import PARALLEL_TEXT, PLAIN_TEXT
from kdx.vocabulary import Split


def load_other_stream(
    data: Data, trained: Data, corpus: StreamCorpus, split: Split, home: Path | None = None
) -> StreamCorpus:
    """A copy of `corpus` in which a split is that of the text which `data` names.

    Args:
        trained: the data of `corpus`, with whose training words unknown tokens are spelled.

    Raises:
        KdxError: there is no such plain text.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
    text = find_kind(data, home, PLAIN_TEXT)

    def make(folder: Path) -> dict[str, Any]:
        with write_array(folder / "tokens.npy", below=corpus.vocabulary.size) as ids:
            for line in text.lines(split, *text.suffixes):
                ids.extend([*corpus.vocabulary.encode(line), END])
        words = count_words(text.lines(split, *text.suffixes)).total() + int(ids.counts[END])
        spelling = _spelling(trained, home)
        facts = text_facts(text.lines(split, *text.suffixes), corpus.vocabulary, ids.counts, spelling)
        return {"words": words, "facts": facts}

    with cached(home, _key(text, trained, [corpus.vocabulary], split), make) as cache:
        return replace(
            corpus,
            splits={**corpus.splits, split: map_array(cache.folder / "tokens.npy")},
            words={**corpus.words, split: cache.facts["words"]},
            title=text.title,
            facts={**corpus.facts, **_of(split, cache.facts["facts"])},
            fingerprint=cache.fingerprint,
        )


def load_other_parallel(
    data: Data, trained: Data, corpus: ParallelCorpus, split: Split, home: Path | None = None
) -> ParallelCorpus:
    """A copy of `corpus` in which a split is that of the text which `data` names, in the same direction.

    Args:
        trained: the data of `corpus`, with whose training words unknown tokens are spelled.

    Raises:
        KdxError: there is no such parallel text, or one of its sentences is too long to be read.
        StorageError: neither the cache nor a temporary file can be written.
    """
    home = home or data_home()
    own = find_text(trained, home)
    text = find_kind(
        data.model_copy(update=dict(zip(("source", "target"), own.suffixes, strict=True))), home, PARALLEL_TEXT
    )
    vocabularies = [corpus.source_vocabulary, corpus.target_vocabulary]
    most = max(MAX_POSITIONS, trained.max_tokens)

    def make(folder: Path) -> dict[str, Any]:
        counts = []
        for suffix, words in zip(text.suffixes, vocabularies, strict=True):
            with write_lists(folder / suffix, below=words.size) as lists:
                for number, line in enumerate(text.lines(split, suffix), 1):
                    tokens = [*words.encode(line), END]
                    if len(tokens) > most:
                        problem = f"line {number:,} of {split}.{suffix} of `{data.corpus}` has {len(tokens):,} tokens"
                        raise KdxError(problem, place="corpus", allowed=f"at most {most:,}")
                    lists.append(tokens)
            counts.append(lists.counts)
        source, target = text.suffixes
        references = [" ".join(line.split()) for line in text.lines(split, target)]
        (folder / "references").write_text("\n".join(references), encoding="utf-8")
        facts = text_facts(text.lines(split, target), vocabularies[1], counts[1], _spelling(trained, home))
        return {
            "facts": facts,
            "source_text": text_hash(text.lines(split, source)),
            "source_unknown_rate": unknown_rate(counts[0]),
        }

    with cached(home, _key(text, trained, vocabularies, split), make) as cache:
        sources, targets = (TokenLists(*map_lists(cache.folder / suffix)) for suffix in text.suffixes)
        references = tuple((cache.folder / "references").read_text(encoding="utf-8").split("\n"))
        facts = {
            **_of(split, cache.facts["facts"]),
            f"{split}/source_text": cache.facts["source_text"],
            f"source/{split}/unknown_rate": cache.facts["source_unknown_rate"],
        }
        return replace(
            corpus,
            splits={**corpus.splits, split: ParallelText(sources, targets, references)},
            facts={**corpus.facts, **facts},
            fingerprint=cache.fingerprint,
            tokenised=text.tokenised,
        )


def _spelling(trained: Data, home: Path) -> Spelling:
    """Of the words of the text that the run was trained with, in the language that is predicted."""
    own = find_text(trained, home)
    return Spelling(count_words(own.lines(Split.TRAIN, own.suffixes[-1])))


def _of(split: Split, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{split}/{name}": fact for name, fact in facts.items()}


def _key(text: FoundText, trained: Data, vocabularies: list[Vocabulary], split: Split) -> str:
    """Changes with whatever the tokens and their facts depend on."""
    words = [vocabulary_facts(one)["vocabulary"] for one in vocabularies]
    code = fingerprint({__name__}).sha256
    return cache_key([text.identity, text.suffixes, trained.model_dump(mode="json"), words, split, code])
