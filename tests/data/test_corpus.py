import dataclasses
import math
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from kdx import axes
from kdx.axes import Split
from kdx.data.corpora import BUILT_IN
from kdx.data.corpus import load_corpus
from kdx.data.generated import load_examples
from kdx.data.parallel import load_parallel
from kdx.data.prepare import prepare
from kdx.data.stream import load_stream
from kdx.data.vocabulary import END, SPECIAL, UNKNOWN
from kdx.errors import KdxError, StorageError
from kdx.grid.sections import Data
from kdx.tasks import TASKS

BPE = axes.Vocabulary.BPE


@pytest.fixture
def pets(pairs) -> Data:
    """A prepared parallel corpus."""
    prepare("pets", pairs)
    return Data(corpus="pets")


@pytest.fixture
def letters(plain) -> Data:
    """A prepared plain corpus."""
    prepare("letters", plain)
    return Data(corpus="letters")


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
    """So a translation with the unknown word in it cannot match them there."""
    sides = {"de": "a\n", "en": "a\n"}
    files = {f"{split}.{side}": text for split in Split for side, text in sides.items()}
    prepare("odd", write(files | {"test.en": "a\u00a0 b\t<unk>\n", "test.de": "a\n"}))
    corpus = load_parallel(Data(corpus="odd"))
    assert corpus.splits[Split.TEST].references == ("a b <unk>",)
    assert targets_of(corpus, Split.TEST) == ["a <unk> <unk>"]
    assert corpus.splits[Split.VALID].references == ("a",)
    assert corpus.splits[Split.TRAIN].references == ()


def test_words_of_other_splits_are_unknown(pets):
    test = load_parallel(pets).splits[Split.TEST]
    assert UNKNOWN in test.targets[1]
    assert UNKNOWN not in test.targets[0]


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
    assert corpus.left_out == load_parallel(Data(corpus="odd", max_tokens=3)).left_out == 3
    assert load_parallel(Data(corpus="odd")).left_out == 1


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


def test_no_pair_short_enough(pets):
    with pytest.raises(KdxError) as caught:
        load_parallel(pets.model_copy(update={"max_tokens": 2}))
    assert str(caught.value) == "data.max_tokens: no training pair has at most 2 tokens on either side"


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


def test_unigram_loss_of_pairs_is_that_of_the_targets(pets):
    """Valid target `the cat` and end; training targets: the 3, dog 2, sleeps 2, cat 1, end 3; 8 German words beside."""
    corpus = load_parallel(pets)
    size = corpus.target_vocabulary.size
    expected = -(math.log(4 / (11 + size)) + math.log(2 / (11 + size)) + math.log(4 / (11 + size))) / 3
    assert corpus.unigram_loss == pytest.approx(expected, rel=1e-12)


def test_second_load_reads_no_text(pets, letters, monkeypatch):
    first = load_parallel(pets), load_stream(letters)

    def read(*_):
        raise AssertionError("read again")

    monkeypatch.setattr("kdx.data.find_text._lines", read)
    second = load_parallel(pets), load_stream(letters)
    for before, after in zip(first, second, strict=True):
        assert after.fingerprint == before.fingerprint
        assert after.unigram_loss == before.unigram_loss
    assert second[0].target_vocabulary.fields() == first[0].target_vocabulary.fields()
    assert second[1].vocabulary.fields() == first[1].vocabulary.fields()
    assert second[0].splits[Split.TEST].references == first[0].splits[Split.TEST].references
    assert targets_of(second[0], Split.TRAIN) == targets_of(first[0], Split.TRAIN)
    assert second[1].splits[Split.TRAIN].tolist() == first[1].splits[Split.TRAIN].tolist()
    assert second[1].words == first[1].words


def test_same_text_under_another_name_is_the_same_data(pairs):
    prepare("one", pairs)
    prepare("two", pairs)
    assert load_parallel(Data(corpus="one")).fingerprint == load_parallel(Data(corpus="two")).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"vocabulary_size": 6},
        {"vocabulary": BPE, "vocabulary_size": 40},
        {"vocabulary": "subword-nmt", "merges": 10},
        {"vocabulary": "subword-nmt", "merges": 4},
        {"dictionaries": "separate"},
        {"train_lines": 2},
        {"max_tokens": 3},
        {"source": "en", "target": "de"},
    ],
    ids=str,
)
def test_fingerprint_follows_every_setting(pets, change):
    assert load_parallel(pets.model_copy(update=change)).fingerprint != load_parallel(pets).fingerprint


def test_fingerprint_follows_the_text(write):
    source = write({f"{split}.txt": "a b\n" for split in Split})
    prepare("one", source)
    write({"test.txt": "b a\n"})
    prepare("two", source)
    assert load_stream(Data(corpus="one")).fingerprint != load_stream(Data(corpus="two")).fingerprint


def test_all_the_lines_and_no_limit_are_the_same_data(pets):
    assert load_parallel(pets.model_copy(update={"train_lines": 3})).fingerprint == load_parallel(pets).fingerprint


def test_damaged_cache_is_made_anew(letters, home):
    before = load_stream(letters).splits[Split.TRAIN].tolist()
    (path,) = (home / "cache").glob("*/train.npy")
    path.write_bytes(path.read_bytes()[:-6])
    assert load_stream(letters).splits[Split.TRAIN].tolist() == before
    (path,) = (home / "cache").glob("*/vocabulary.json")
    path.write_text("{}")
    assert load_stream(letters).splits[Split.TRAIN].tolist() == before


def test_vocabulary_of_another_corpus_in_the_cache_is_not_used(letters, home, write):
    expected = load_stream(letters).vocabulary.fields()
    prepare("more", write({f"{split}.txt": "x y x\n" for split in Split}, "more"))
    load_stream(Data(corpus="more"))
    one, other = (home / "cache").glob("*/vocabulary.json")
    for path, text in ((one, other.read_bytes()), (other, one.read_bytes())):
        path.write_bytes(text)
    assert load_stream(letters).vocabulary.fields() == expected


@pytest.mark.parametrize("file", ["train.npy", "vocabulary.json", "contents.json"])
def test_full_disk(letters, home, monkeypatch, file):
    """On the device that is always full, from the first file on or from a later one."""
    opened = Path.open

    def write(path, mode="r", *arguments, **settings):
        # Only to be written: read, that device never ends.
        return opened(Path("/dev/full") if path.name == file and "w" in mode else path, mode, *arguments, **settings)

    def write_text(path, text, encoding):
        with write(path, "w", encoding=encoding) as stream:
            stream.write(text)

    monkeypatch.setattr(Path, "open", write)
    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        load_stream(letters)
    assert caught.value.exit_code == 74
    assert not list((home / "cache").iterdir())


def test_parallel_text_does_not_serve_prediction(pets):
    with pytest.raises(KdxError) as caught:
        load_stream(pets)
    assert str(caught.value) == (
        "data.corpus: corpus `pets` is parallel text, for translation; this task needs plain text, for prediction\n"
        "  allowed: synthetic-language"
    )


def test_plain_text_does_not_serve_translation(letters):
    with pytest.raises(KdxError) as caught:
        load_parallel(letters)
    assert str(caught.value) == (
        "data.corpus: corpus `letters` is plain text, for prediction; this task needs parallel text, for translation\n"
        "  allowed: synthetic-translation"
    )


def test_separate_dictionaries_hold_what_each_language_holds(pets):
    corpus = load_parallel(pets.model_copy(update={"dictionaries": axes.Dictionaries.SEPARATE}))
    source, target = corpus.source_vocabulary, corpus.target_vocabulary
    assert (source.size, target.size) == (SPECIAL + 5, SPECIAL + 4)
    assert source.encode("der hund schläft die katze") == [4, 5, 6, 7, 8]
    assert target.encode("the dog sleeps cat der") == [4, 5, 6, 7, UNKNOWN]
    train = corpus.splits[Split.TRAIN]
    assert [source.decode(tokens) for tokens in train.sources] == ["der hund", "die katze schläft", "der hund schläft"]
    assert targets_of(corpus, Split.TRAIN) == ["the dog", "the cat sleeps", "the dog sleeps"]
    assert targets_of(corpus, Split.TEST) == ["the dog", "the <unk>"]
    again = load_parallel(pets.model_copy(update={"dictionaries": axes.Dictionaries.SEPARATE}))
    assert again.source_vocabulary.fields() == source.fields() != again.target_vocabulary.fields() == target.fields()


def test_unigram_loss_with_separate_dictionaries_is_over_the_targets_own(pets):
    corpus = load_parallel(pets.model_copy(update={"dictionaries": axes.Dictionaries.SEPARATE}))
    expected = -(math.log(4 / (11 + 8)) + math.log(2 / (11 + 8)) + math.log(4 / (11 + 8))) / 3
    assert corpus.unigram_loss == pytest.approx(expected, rel=1e-12)


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


def test_generated_corpora(home):
    parallel = load_parallel(Data(corpus="synthetic-translation", train_lines=50))
    assert parallel.tokenised
    assert len(parallel.splits[Split.TRAIN].sources) == 50
    stream = load_stream(Data(corpus="synthetic-language", train_lines=50))
    assert np.count_nonzero(stream.splits[Split.TRAIN] == END) == 50
    other = load_stream(Data(corpus="synthetic-language", train_lines=50, seed=1))
    assert other.fingerprint != stream.fingerprint


def test_generated_examples_are_made_once_and_told_by_a_fingerprint(home, monkeypatch):
    made = BUILT_IN["synthetic-sets"]
    data = Data(corpus="synthetic-sets", train_examples=50)
    corpus = load_examples(data, None, TASKS["set"])
    assert {split: len(examples) for split, examples in corpus.splits.items()} == {**made.sizes, Split.TRAIN: 50}
    assert corpus.tokens == made.tokens
    for split, examples in corpus.splits.items():
        expected = made.generate("synthetic-sets", 0, split, len(examples))
        assert examples.inputs.keys() == expected.inputs.keys()
        assert all((examples.inputs[name] == array).all() for name, array in expected.inputs.items())
        assert (examples.targets == expected.targets).all()
    other, fewer = (
        load_examples(data.model_copy(update=change), None, TASKS["set"])
        for change in ({"seed": 1}, {"train_examples": 49})
    )
    assert len({corpus.fingerprint, other.fingerprint, fewer.fingerprint}) == 3
    monkeypatch.setitem(BUILT_IN, "synthetic-sets", dataclasses.replace(made, make=None))
    assert load_corpus("set", data).fingerprint == corpus.fingerprint


def test_unigram_loss_of_examples_is_that_of_their_targets(home):
    corpus = load_examples(Data(corpus="synthetic-sets", train_examples=10), None, TASKS["set"])
    train, valid = (corpus.splits[split].targets.ravel().tolist() for split in (Split.TRAIN, Split.VALID))
    expected = -sum(math.log((train.count(target) + 1) / (10 + 4)) for target in valid) / len(valid)
    assert corpus.unigram_loss == pytest.approx(expected)


@pytest.mark.parametrize("name", ["synthetic-tours", "synthetic-language", "multi30k", "absent"])
def test_only_examples_for_the_task_serve_it(home, name):
    with pytest.raises(KdxError) as caught:
        load_corpus("set", Data(corpus=name))
    assert str(caught.value) == (
        f"data.corpus: `{name}` is no corpus of generated examples for task set\n  allowed: synthetic-sets"
    )


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


def test_loading_needs_no_torch(letters, home):
    script = (
        "import sys; from kdx.data.stream import load_stream; from kdx.grid.sections import Data\n"
        "load_stream(Data(corpus='letters')); print({'torch', 'tokenizers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"KDX_DATA": str(home)})
    assert done.stdout == "set()\n", done.stderr
