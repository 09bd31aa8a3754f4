"""What is recorded of a text, by hand: equal texts are told as equal, and unknown words cost what it takes to spell."""

import hashlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.data.facts import Spelling
from kdx.data.parallel import load_parallel
from kdx.data.prepare import prepare
from kdx.data.stream import load_stream
from kdx.data.vocabulary import count_words
from kdx.grid.sections import Data
from kdx.vocabulary import VocabularyKind

WORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=6)


def test_spelling_by_hand():
    """Words ab twice and é, which has two bytes: 6 bytes and 3 ends, each of 257 counts + 1."""
    spelling = Spelling(count_words(["ab ab", "é"]))
    total = 6 + 3 + 257
    a, end, other = (-math.log(count / total) for count in (2 + 1, 3 + 1, 0 + 1))
    assert spelling.nats("a") == pytest.approx(a + end)
    assert spelling.nats("xa") == pytest.approx(other + a + end)
    assert spelling.nats("é") == pytest.approx(2 * -math.log(2 / total) + end)
    assert spelling.nats("") == pytest.approx(end)


@given(st.dictionaries(WORDS, st.integers(1, 9)))
def test_the_probabilities_of_bytes_and_end_mark_sum_to_one(words):
    spelling = Spelling(words)
    of_each = [math.exp(-nats) for nats in (*spelling._nats, spelling._end)]
    assert len(of_each) == 257 and math.fsum(of_each) == pytest.approx(1)


def prepared(write, folder: str, **splits: str) -> Data:
    prepare(folder, write({f"{split}.txt": text for split, text in splits.items()}, folder))
    return Data(corpus=folder)


def test_facts_of_a_stream_by_hand(write):
    """Training words a 2, b; of the test `a  xy` and an empty line, two ends: xy is unknown, and has 2 bytes."""
    data = prepared(write, "letters", train="a b a\n", valid="a\n", test="a  xy \n\n")
    facts = load_stream(data).facts
    assert facts["vocabulary_size"] == 6 and facts["tokenisation"] == "word, raw text"
    assert (facts["test/tokens"], facts["test/unknown_rate"]) == (4, 0.25)
    assert facts["test/text"] == hashlib.sha256(b"a xy\n\n").hexdigest()[:16]
    assert facts["test/bytes"] == len("a xy\n\n")
    spelled = 2 * math.log(3 + 3 + 257) - math.log(3 + 1) + math.log(3 + 3 + 257)
    assert facts["test/spelling_nats"] == pytest.approx(spelled)
    assert (facts["valid/unknown_rate"], facts["valid/spelling_nats"]) == (0, 0)


def test_equal_texts_have_equal_hashes_whatever_is_learned_from_and_other_vocabularies_other_ones():
    few, many, sized = (
        load_stream(Data(corpus="synthetic-language", **settings)).facts
        for settings in ({"train_lines": 20}, {"train_lines": 300}, {"train_lines": 300, "vocabulary_size": 12})
    )
    for split in ("valid", "test"):
        assert few[f"{split}/text"] == many[f"{split}/text"] == sized[f"{split}/text"]
        assert few[f"{split}/bytes"] == many[f"{split}/bytes"]
        assert sized[f"{split}/unknown_rate"] > few[f"{split}/unknown_rate"] > many[f"{split}/unknown_rate"] == 0
    assert len({facts["vocabulary"] for facts in (few, many, sized)}) == 3
    assert all(len(facts["vocabulary"]) == len(facts["test/text"]) == 16 for facts in (few, many, sized))


def test_facts_of_pairs_are_of_the_target_and_the_hash_of_the_source(pairs):
    """The test's `der hund / die maus` and `the dog / the mouse`: maus and mouse are unknown, of 6 tokens each."""
    prepare("pets", pairs)
    facts = load_parallel(Data(corpus="pets", dictionaries="separate")).facts
    assert facts["vocabulary_size"] == 4 + 4
    assert facts["test/unknown_rate"] == pytest.approx(1 / 6)
    assert facts["test/text"] == hashlib.sha256(b"the dog\nthe mouse\n").hexdigest()[:16]
    assert facts["test/source_text"] == hashlib.sha256(b"der hund\ndie maus\n").hexdigest()[:16]
    assert facts["test/bytes"] == 18 and facts["test/spelling_nats"] > 5


@pytest.mark.parametrize("kind", [VocabularyKind.BPE, VocabularyKind.SUBWORD_NMT])
def test_of_byte_pairs_the_unknown_pieces_alone_are_spelled(kind, write):
    data = prepared(write, "pieces", train="ab ab abc\n" * 9, valid="ab\n", test="x ab x\n")
    size = {"vocabulary_size": 40} if kind is VocabularyKind.BPE else {"merges": 2}
    facts = load_stream(data.model_copy(update={"vocabulary": kind, **size})).facts
    assert (facts["valid/unknown_rate"], facts["valid/spelling_nats"]) == (0, 0)
    spelling = Spelling(count_words(["ab ab abc"] * 9))
    # The one keeps the end of a word as a piece of its own, the other as part of its last letter.
    pieces = ["x", "x"] if kind is VocabularyKind.BPE else ["x ", "x "]
    assert facts["test/spelling_nats"] == pytest.approx(sum(map(spelling.nats, pieces)))
    assert facts["test/unknown_rate"] == pytest.approx(2 / facts["test/tokens"])


def test_facts_are_computed_once_and_leave_the_fingerprint_alone(pairs, home, monkeypatch):
    prepare("pets", pairs)
    first = load_parallel(Data(corpus="pets"))
    (folder,) = (home / "cache").iterdir()
    assert not [path.name for path in folder.iterdir() if "facts" in path.name]

    def again(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr("kdx.data.facts.split_facts", again)
    monkeypatch.setattr("kdx.data.facts.Spelling", again)
    second = load_parallel(Data(corpus="pets"))
    assert (second.facts, second.fingerprint) == (first.facts, first.fingerprint)
