import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx import axes
from kdx.data.vocabulary import (
    BEGIN,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    BytePairVocabulary,
    WordVocabulary,
    learn,
    load,
)
from kdx.errors import KdxError

TEXT = ["the cat sees the dog", "a dog sees  the cat .", "", "low lower lowest new newer newest"]
WORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=12)
LINES = st.lists(WORDS, max_size=8).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=8)


def learned(text, kind):
    return learn(kind, text, 4000 if kind is axes.Vocabulary.BPE else None)


@pytest.fixture(params=axes.Vocabulary)
def vocabulary(request):
    """A vocabulary of each kind."""
    return learned(TEXT, request.param)


def test_special_tokens():
    assert (PADDING, BEGIN, END, UNKNOWN, SPECIAL) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("kind", axes.Vocabulary)
@settings(max_examples=50, deadline=None)
@given(text=TEXTS)
def test_training_text_comes_back(kind, text):
    vocabulary = learned([*text, "x"], kind)
    for line in text:
        ids = vocabulary.encode(line)
        assert all(UNKNOWN <= id < vocabulary.size for id in ids)
        assert vocabulary.decode(ids) == " ".join(line.split())


@pytest.mark.parametrize("kind", axes.Vocabulary)
@settings(max_examples=50, deadline=None)
@given(text=TEXTS, line=LINES)
def test_no_text_spells_padding_begin_or_end(kind, text, line):
    ids = learned([*text, "x"], kind).encode(line)
    assert not {PADDING, BEGIN, END} & set(ids)


@pytest.mark.parametrize("kind", axes.Vocabulary)
@pytest.mark.parametrize("word", ["<end>", "</w>", "<pad>", "<s>", "</s>", "0", "▁", "##a", "Ġ", "@@", "1 2"])
def test_words_that_look_special_are_words(kind, word):
    vocabulary = learned([f"{word} a {word}b"] * 3, kind)
    ids = vocabulary.encode(f"a {word} {word}b")
    assert not set(ids) & {PADDING, BEGIN, END, UNKNOWN}
    assert vocabulary.decode(ids) == f"a {word} {word}b"


def test_decoding_stops_at_end_and_skips_what_is_no_text(vocabulary):
    ids = vocabulary.encode("the cat")
    assert vocabulary.decode([BEGIN, *ids, PADDING, END, *ids]) == "the cat"
    assert vocabulary.decode([END]) == ""
    assert vocabulary.decode([]) == ""


def test_saved_and_loaded_it_is_the_same(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "vocabulary.json")
    again = load(tmp_path / "vocabulary.json")
    assert type(again) is type(vocabulary)
    assert again.size == vocabulary.size
    for line in [*TEXT, "unseen ❤ words"]:
        assert again.encode(line) == vocabulary.encode(line)
        assert again.decode(again.encode(line)) == vocabulary.decode(vocabulary.encode(line))


def test_words_by_frequency_then_by_spelling():
    vocabulary = WordVocabulary.learn(["b a c", "b a", "b"], None)
    assert vocabulary.encode("b a c") == [4, 5, 6]
    assert WordVocabulary.learn(["z y x"], None).encode("x y z") == [4, 5, 6]


def test_rare_words_beyond_the_size_are_unknown():
    vocabulary = WordVocabulary.learn(["b a c", "b a", "b"], SPECIAL + 2)
    assert vocabulary.size == 6
    assert vocabulary.encode("a b c d") == [5, 4, UNKNOWN, UNKNOWN]
    assert vocabulary.decode([5, UNKNOWN]) == "a <unk>"


def test_unk_of_a_published_text_is_the_unknown_word():
    vocabulary = WordVocabulary.learn(["a <unk> <unk>"], None)
    assert vocabulary.size == SPECIAL + 1
    assert vocabulary.encode("<unk> a") == [UNKNOWN, 4]


def test_byte_pairs_merge_what_is_frequent():
    vocabulary = BytePairVocabulary.learn(["low lower lowest", "low lower", "low"], 14)
    assert vocabulary.size <= 14
    assert len(vocabulary.encode("low low")) < len("low low")


def test_byte_pairs_know_a_letter_wherever_it_stands():
    """`q` was never the last letter of a word, nor `d` the first."""
    vocabulary = BytePairVocabulary.learn(["quad quad"], 100)
    assert vocabulary.decode(vocabulary.encode("dauq q duq")) == "dauq q duq"


def test_an_unknown_letter_does_not_join_words():
    vocabulary = BytePairVocabulary.learn(["a b"], 100)
    assert vocabulary.decode(vocabulary.encode("a❤ b ❤ a")) == "a<unk> b <unk> a"


def test_byte_pairs_hold_the_size_they_were_given():
    text = [" ".join(f"{i}x{i * i}" for i in range(j, j + 10)) for j in range(100)]
    for size in (20, 50, 100):
        assert BytePairVocabulary.learn(text, size).size == size


@pytest.mark.parametrize(
    ("kind", "size", "least"), [(axes.Vocabulary.WORD, 4, 5), (axes.Vocabulary.WORD, 1, 5), (axes.Vocabulary.BPE, 7, 8)]
)
def test_a_size_too_small_for_the_text(kind, size, least):
    with pytest.raises(KdxError) as caught:
        learn(kind, ["a b", "cab"], size)
    assert str(caught.value) == (
        f"data.vocabulary_size: a vocabulary of {size} tokens is too small for this text\n  allowed: {least} or more"
    )


def test_byte_pairs_are_the_same_in_every_process():
    """Hash seeds and thread counts differ between processes; ties between pairs must not."""
    script = (
        "import json\nfrom kdx.data.vocabulary import BytePairVocabulary\n"
        "text = [' '.join(f'{i * j % 97:b}' for i in range(20)) + ' zyx xyz yxz' for j in range(200)]\n"
        "print(json.dumps(BytePairVocabulary.learn(text, 60).fields()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"RAYON_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2", "5")
    }
    assert len(outputs) == 1


def test_words_need_no_library():
    script = (
        "import sys; from kdx.data.vocabulary import WordVocabulary; WordVocabulary.learn(['a'], None).encode('a');"
        "print({'torch', 'tokenizers'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"
