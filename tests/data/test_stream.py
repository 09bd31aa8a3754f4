"""Plain text becomes one stream of tokens a split."""

import math

import pytest

from kdx.data.prepare import prepare
from kdx.data.stream import load_stream
from kdx.data.vocabulary import END, UNKNOWN
from kdx.grid.sections import Data
from kdx.vocabulary import Split, VocabularyKind

BPE = VocabularyKind.BPE


def test_stream_has_an_end_for_every_line_empty_ones_too(letters):
    corpus = load_stream(letters)
    a, b, c = corpus.vocabulary.encode("a b c")
    assert corpus.splits[Split.TRAIN].tolist() == [a, b, a, END, END, b, c, END]
    assert corpus.splits[Split.TEST].tolist() == [c, UNKNOWN, END]
    assert corpus.words == {"train": 8, "valid": 3, "test": 3}


def test_words_are_counted_as_words_whatever_a_token_is(write):
    prepare("long", write({f"{split}.txt": "abcdef ghijkl\nabc\n" for split in Split}))
    corpus = load_stream(Data(corpus="long", vocabulary=BPE, vocabulary_size=20))
    assert corpus.words[Split.TRAIN] == 5
    assert len(corpus.splits[Split.TRAIN]) > 5


def test_unigram_loss_by_hand(letters):
    """Training counts a 2, b 2, c 1, end 3; seven ids; each count + 1, of 8 + 7."""
    corpus = load_stream(letters)
    assert corpus.vocabulary.size == 7
    expected = -(math.log(3 / 15) + math.log(2 / 15) + math.log(4 / 15)) / 3
    assert corpus.unigram_loss == pytest.approx(expected, rel=1e-12)
