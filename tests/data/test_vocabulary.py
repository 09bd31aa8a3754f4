import subprocess
import sys
import tarfile
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE

from kdx.data.merges import learn_merges
from kdx.data.vocabulary import (
    BEGIN,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    SubwordNmtVocabulary,
    Vocabulary,
    WordVocabulary,
    count_words,
    learn,
    load,
)
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import VocabularyKind

TEXT = ["the cat sees the dog", "a dog sees  the cat .", "", "low lower lowest new newer newest"]
WORDS = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=12)
LINES = st.lists(WORDS, max_size=8).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=8)


LIMITS: dict[VocabularyKind, dict] = {
    VocabularyKind.WORD: {},
    VocabularyKind.BPE: {"vocabulary_size": 4000},
    VocabularyKind.SUBWORD_NMT: {"merges": 4000},
}


def learned(text, kind) -> Vocabulary:
    (vocabulary,) = learn(Data(corpus="any", vocabulary=kind, **LIMITS[kind]), [count_words(text)])
    return vocabulary


@pytest.fixture(params=VocabularyKind)
def vocabulary(request):
    """A vocabulary of each kind."""
    return learned(TEXT, request.param)


@pytest.mark.parametrize("kind", VocabularyKind)
@settings(max_examples=100, deadline=None)
@given(text=TEXTS, words=st.lists(WORDS, max_size=6))
def test_every_unknown_token_of_a_word_is_told_as_the_text_it_stands_for(kind, text, words):
    vocabulary = learned(text, kind)
    for word in words:
        unknown, ids = vocabulary.unknown(word), vocabulary.encode(word)
        assert len(unknown) == ids.count(UNKNOWN)
        said = [vocabulary.decode([id]) if id != UNKNOWN else unknown.pop(0) for id in ids]
        assert "".join(said).replace(" ", "") == word


@pytest.mark.parametrize("kind", VocabularyKind)
@settings(max_examples=50, deadline=None)
@given(text=TEXTS, line=LINES)
def test_no_text_spells_padding_begin_or_end(kind, text, line):
    ids = learned([*text, "x"], kind).encode(line)
    assert not {PADDING, BEGIN, END} & set(ids)


@pytest.mark.parametrize("kind", VocabularyKind)
def test_words_that_look_special_are_words(kind):
    for word in ("<end>", "</w>", "<pad>", "<s>", "</s>", "0", "▁", "##a", "Ġ", "@@", "1 2"):
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
    vocabulary = WordVocabulary.learn(count_words(["b a c", "b a", "b"]), None)
    assert vocabulary.encode("b a c") == [4, 5, 6]
    assert WordVocabulary.learn(count_words(["z y x"]), None).encode("x y z") == [4, 5, 6]


def test_rare_words_beyond_the_size_are_unknown():
    vocabulary = WordVocabulary.learn(count_words(["b a c", "b a", "b"]), SPECIAL + 2)
    assert vocabulary.size == 6
    assert vocabulary.encode("a b c d") == [5, 4, UNKNOWN, UNKNOWN]
    assert vocabulary.decode([5, UNKNOWN]) == "a <unk>"


def test_unk_of_a_published_text_is_the_unknown_word():
    vocabulary = WordVocabulary.learn(count_words(["a <unk> <unk>"]), None)
    assert vocabulary.size == SPECIAL + 1
    assert vocabulary.encode("<unk> a") == [UNKNOWN, 4]


@pytest.mark.parametrize(
    ("kind", "size", "least"), [(VocabularyKind.WORD, 4, 5), (VocabularyKind.WORD, 1, 5), (VocabularyKind.BPE, 7, 8)]
)
def test_a_size_too_small_for_the_text(kind, size, least):
    with pytest.raises(KdxError) as caught:
        learn(Data(corpus="any", vocabulary=kind, vocabulary_size=size), [count_words(["a b", "cab"])])
    assert str(caught.value) == (
        f"data.vocabulary_size: a vocabulary of {size} tokens is too small for this text\n  allowed: {least} or more"
    )


def by_the_tool(merges: list[tuple[str, str]], words: list[str]) -> list[list[str]]:
    """Words as subword-nmt itself segments them, with our mark at their end."""
    codes = "#version: 0.2\n" + "\n".join(
        f"{left.replace(' ', '</w>')} {right.replace(' ', '</w>')}" for left, right in merges
    )
    tool = BPE(StringIO(codes))
    result = [tool.segment_tokens([word]) for word in words]
    return [[*(piece.removesuffix("@@") for piece in pieces[:-1]), pieces[-1] + " "] for pieces in result]


SOME_WORDS = st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(SOME_WORDS, SOME_WORDS)
def test_words_are_segmented_as_by_subword_nmt(train, others):
    counts = count_words([" ".join(train)])
    merges = learn_merges(counts, 30)
    if merges:
        # With every letter known in every place, since the tool knows all letters.
        vocabulary = SubwordNmtVocabulary.of(merges, counts | count_words([" ".join(others), "abc a b c ab bc ca"]))
        assert [vocabulary.segment(word) for word in others] == by_the_tool(merges, others)


@pytest.mark.parametrize("suffix", ["de", "en"])
def test_published_merges_give_the_published_segments(shared, suffix):
    """Byte for byte, of all three splits."""
    with tarfile.open(shared / "data" / "iwslt14.tar.xz") as archive:

        def lines(name: str) -> list[str]:
            file = archive.extractfile(f"iwslt14/{name}")
            assert file
            return file.read().decode().removesuffix("\n").split("\n")

        text = {name: lines(name) for name in (f"{split}.{suffix}" for split in ("train", "valid", "test"))}
        expected = {name: lines(f"bpe/{name}") for name in text}
        codes = lines("bpe/code")[1:]
    merges = [tuple(piece.replace("</w>", " ") for piece in code.split(" ")) for code in codes]
    assert len(merges) == 10_000
    words = count_words(line for split in text.values() for line in split)
    vocabulary = SubwordNmtVocabulary.of(merges, words)
    segmented = {word: "@@ ".join(vocabulary.segment(word)).removesuffix(" ") for word in words}
    for name, split in text.items():
        assert [" ".join(segmented[word] for word in line.split(" ")) for line in split] == expected[name]


def test_subword_nmt_lists_the_pieces_of_its_text_by_frequency():
    """`low`, `lower` and `new` are whole; the letters that they were made of are gone."""
    (vocabulary,) = learn(
        Data(corpus="any", vocabulary="subword-nmt", merges=100),
        [count_words(["low low low lower lower new new q"])],
    )
    assert [vocabulary.encode(word) for word in ("low", "lower", "new", "q")] == [[4], [5], [6], [7]]
    assert vocabulary.encode("owl") == [UNKNOWN] * 3
    assert vocabulary.encode("q ❤ low") == [7, UNKNOWN, 4]


def test_subword_nmt_fills_its_list_up_to_a_multiple_of_eight():
    for words in ("a b", "a b c d", "a b c d e", "a b c d e f g h i j k l", "a b c d e f g h i j k l m"):
        vocabulary = learned([words], VocabularyKind.SUBWORD_NMT)
        assert vocabulary.size == -(-(SPECIAL + len(words.split())) // 8) * 8
        ids = vocabulary.encode(words)
        assert sorted(ids) == list(range(SPECIAL, SPECIAL + len(ids)))
        assert vocabulary.decode(range(SPECIAL, vocabulary.size)) == words


@pytest.mark.parametrize("kind", VocabularyKind)
def test_joint_dictionaries_are_one_vocabulary(kind):
    texts = [count_words(["der hund", "ein hund"]), count_words(["the dog", "a dog"])]
    source, target = learn(Data(corpus="any", vocabulary=kind, **LIMITS[kind]), texts)
    assert source is target
    assert UNKNOWN not in source.encode("der hund the dog")


@pytest.mark.parametrize("kind", VocabularyKind)
@settings(max_examples=30, deadline=None)
@given(texts=st.tuples(TEXTS, TEXTS))
def test_separate_dictionaries_know_their_own_text(kind, texts):
    counts = [count_words([*text, "x"]) for text in texts]
    data = Data(corpus="any", vocabulary=kind, dictionaries="separate", **LIMITS[kind])
    for vocabulary, text in zip(learn(data, counts), texts, strict=True):
        for line in text:
            ids = vocabulary.encode(line)
            assert max(ids, default=0) < vocabulary.size
            assert vocabulary.decode(ids) == " ".join(line.split())
            if kind is not VocabularyKind.WORD:  # a word vocabulary has `<unk>` for a word
                assert UNKNOWN not in ids


def test_byte_pairs_are_the_same_in_every_process():
    """Hash seeds and thread counts differ between processes; ties between pairs must not."""
    script = (
        "import json\nfrom kdx.data.vocabulary import BytePairVocabulary, count_words\n"
        "text = [' '.join(f'{i * j % 97:b}' for i in range(20)) + ' zyx xyz yxz' for j in range(200)]\n"
        "print(json.dumps(BytePairVocabulary.learn(count_words(text), 60).fields()))"
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
