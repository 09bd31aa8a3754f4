"""Parallel text becomes pairs of token lists."""

import math
import tarfile

import numpy as np
import pytest

from kdx.data.parallel import load_parallel
from kdx.data.prepare import prepare
from kdx.data.vocabulary import END, SPECIAL, UNKNOWN
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Dictionaries, Split, VocabularyKind

BPE = VocabularyKind.BPE


def targets_of(corpus, split) -> list[str]:
    """What the target tokens say."""
    return [corpus.target_vocabulary.decode(tokens) for tokens in corpus.splits[split].targets]


def test_pairs_as_tokens(pets):
    corpus = load_parallel(pets)
    train = corpus.splits[Split.TRAIN]
    assert targets_of(corpus, Split.TRAIN) == ["the dog", "the cat sleeps", "the dog sleeps"]
    assert all(tokens[-1] == END for side in (train.sources, train.targets) for tokens in side)
    assert train.sources.lengths.tolist() == [3, 4, 4]
    assert train.sources.flat.dtype == np.int32
    assert train.sources.offsets.dtype == np.int64
    assert not corpus.tokenised


def test_references_are_the_text_itself_and_unknown_words_are_in_them(write):
    """A translation with the unknown word in it cannot match them there."""
    sides = {"de": "a\n", "en": "a\n"}
    files = {f"{split}.{side}": text for split in Split for side, text in sides.items()}
    prepare("odd", write(files | {"test.en": "a\u00a0 b\t<unk>\n", "test.de": "a\n"}))
    corpus = load_parallel(Data(corpus="odd"))
    assert corpus.splits[Split.TEST].references == ("a b <unk>",)
    assert targets_of(corpus, Split.TEST) == ["a <unk> <unk>"]
    assert corpus.splits[Split.VALID].references == ("a",)
    assert corpus.splits[Split.TRAIN].references == ()


def test_direction_turns_the_pairs_around(pets):
    there = load_parallel(pets)
    back = load_parallel(pets.model_copy(update={"source": "en", "target": "de"}))
    assert targets_of(back, Split.TRAIN)[0] == "der hund"
    assert back.splits[Split.TEST].references == ("der hund", "die maus")
    assert back.source_vocabulary.decode(back.splits[Split.TRAIN].sources[0]) == "the dog"
    assert back.fingerprint != there.fingerprint
    assert (there.target, back.target) == ("en", "de")


def test_long_and_empty_pairs_are_left_out_of_training_only(write):
    sides = {"de": "a b c\na\n\na b\n", "en": "a\na b c\na\nb a\n"}
    prepare("odd", write({f"{split}.{side}": text for split in Split for side, text in sides.items()}))
    corpus = load_parallel(Data(corpus="odd", max_tokens=3))
    assert targets_of(corpus, Split.TRAIN) == ["b a"]
    assert corpus.splits[Split.VALID].references == corpus.splits[Split.TEST].references == ("a", "a b c", "a", "b a")
    assert corpus.splits[Split.VALID].sources[2].tolist() == [END]
    assert corpus.notes == load_parallel(Data(corpus="odd", max_tokens=3)).notes
    assert corpus.notes[0].startswith("odd: 3 of 4 training pairs are left out")
    assert load_parallel(Data(corpus="odd")).notes[0].startswith("odd: 1 of 4 training pairs are left out")


def test_a_pair_that_no_evaluation_could_read_is_refused_before_anything_is_kept(pairs, write, home):
    # A language that does not part its words: few of them, and many tokens.
    write({"test.de": "der hund\n" + "ab" * 1024 + "\n"})
    prepare("odd", pairs)
    data = Data(corpus="odd", vocabulary=BPE, vocabulary_size=40)
    with pytest.raises(KdxError) as caught:
        load_parallel(data)
    assert str(caught.value) == (
        "data.corpus: line 2 of test.de of `odd` has 2,050 tokens\n"
        "  allowed: at most 1,024, of which the last is the end token\n"
        "  hint: take the pair out, or cut it into sentences, and prepare the text anew"
    )
    assert not list((home / "cache").iterdir())
    # Whoever trains on pairs as long as this can read it.
    assert load_parallel(data.model_copy(update={"max_tokens": 2050})).splits[Split.TEST].sources.lengths[1] == 2050


def test_unigram_loss_of_pairs_is_that_of_the_targets(pets):
    """Valid target `the cat` and end; training targets: the 3, dog 2, sleeps 2, cat 1, end 3; 8 German words beside."""
    corpus = load_parallel(pets)
    size = corpus.target_vocabulary.size
    expected = -(math.log(4 / (11 + size)) + math.log(2 / (11 + size)) + math.log(4 / (11 + size))) / 3
    assert corpus.unigram_loss == pytest.approx(expected, rel=1e-12)


def test_separate_dictionaries_hold_what_each_language_holds(pets):
    corpus = load_parallel(pets.model_copy(update={"dictionaries": Dictionaries.SEPARATE}))
    source, target = corpus.source_vocabulary, corpus.target_vocabulary
    assert (source.size, target.size) == (SPECIAL + 5, SPECIAL + 4)
    assert source.encode("der hund schläft die katze") == [4, 5, 6, 7, 8]
    assert target.encode("the dog sleeps cat der") == [4, 5, 6, 7, UNKNOWN]
    train = corpus.splits[Split.TRAIN]
    assert [source.decode(tokens) for tokens in train.sources] == ["der hund", "die katze schläft", "der hund schläft"]
    assert targets_of(corpus, Split.TRAIN) == ["the dog", "the cat sleeps", "the dog sleeps"]
    assert targets_of(corpus, Split.TEST) == ["the dog", "the <unk>"]
    again = load_parallel(pets.model_copy(update={"dictionaries": Dictionaries.SEPARATE}))
    assert again.source_vocabulary.fields() == source.fields() != again.target_vocabulary.fields() == target.fields()


def test_iwslt14_with_byte_pairs_of_subword_nmt(shared, home):
    with tarfile.open(shared / "data" / "iwslt14.tar.xz") as archive:
        archive.extractall(home / "source", filter="data")
    prepare("iwslt", home / "source" / "iwslt14")
    settings = {"vocabulary": "subword-nmt", "dictionaries": "separate", "max_tokens": 1024}
    corpus = load_parallel(Data(corpus="iwslt", merges=1000, train_lines=5000, **settings))
    train, test = corpus.splits[Split.TRAIN], corpus.splits[Split.TEST]
    for vocabulary, tokens in ((corpus.source_vocabulary, train.sources), (corpus.target_vocabulary, train.targets)):
        assert vocabulary.size % 8 == 0
        assert 0 <= vocabulary.size - tokens.flat.max() - 1 < 8
        counts = np.bincount(tokens.flat)[SPECIAL:]
        assert (np.diff(counts) <= 0).all(), "by frequency"
        assert UNKNOWN not in tokens.flat
    assert sum(len(line.split()) for line in test.references) == 131_156
    decoded = targets_of(corpus, Split.TEST)
    known = [pair for pair in zip(decoded, test.references, strict=True) if "<unk>" not in pair[0]]
    assert len(test.references) - 50 < len(known) < len(test.references)
    assert all(line == reference for line, reference in known)


def test_multi30k_with_byte_pairs(shared, home):
    prepare("multi30k", shared / "data" / "multi30k.tar.xz")
    corpus = load_parallel(Data(corpus="multi30k", vocabulary=BPE, vocabulary_size=4000))
    assert corpus.target_vocabulary.size == 4000
    assert corpus.source_vocabulary is corpus.target_vocabulary
    assert {split: len(text.sources) for split, text in corpus.splits.items()} == {
        "train": 29_000,
        "valid": 1_014,
        "test": 1_000,
    }
    assert targets_of(corpus, Split.VALID) == list(corpus.splits[Split.VALID].references)
    assert UNKNOWN not in corpus.splits[Split.TRAIN].targets.flat
    assert 5 < corpus.unigram_loss < 6.5
