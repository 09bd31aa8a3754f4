"""Another text is read in the tokens of the run, and its facts are its own."""

from pathlib import Path

import pytest

from kdx.data.corpus import load_corpus
from kdx.data.parallel import load_other_parallel
from kdx.data.prepare import prepare
from kdx.data.stream import load_other_stream
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Split


@pytest.fixture
def texts(tmp_path, data_home) -> Path:
    """Two small texts of each kind, each prepared under the name of its folder."""
    lines = {"plain": {"txt": ["a b c", "c b a"]}, "other": {"txt": ["a b", "d", "a e b"]}}
    lines |= {"pairs": {"en": ["a b", "b"], "de": ["x y", "y"]}, "others": {"en": ["b a", "c b"], "de": ["y x", "z"]}}
    for name, suffixes in lines.items():
        folder = tmp_path / name
        folder.mkdir()
        for suffix, text in suffixes.items():
            for split in Split:
                (folder / f"{split}.{suffix}").write_text("\n".join(text) + "\n")
        prepare(name, folder)
    return tmp_path


def test_a_stream_is_read_with_the_vocabulary_of_the_run(texts):
    data = Data(corpus="plain")
    corpus = load_corpus("prediction", data)
    result = load_other_stream(Data(corpus="other"), data, corpus, Split.TEST)
    assert result.vocabulary is corpus.vocabulary
    assert corpus.vocabulary.decode(result.splits[Split.TEST][:2]) == "a b"
    assert result.words[Split.TEST] == 9  # six words and three ends of a line
    assert result.splits[Split.VALID] is corpus.splits[Split.VALID]
    facts = {name: result.facts[f"test/{name}"] for name in ("tokens", "bytes", "unknown_rate")}
    assert facts == {"tokens": 9, "bytes": len("a b\nd\na e b\n"), "unknown_rate": 2 / 9}
    assert result.facts["test/spelling_nats"] > 0 == corpus.facts["test/spelling_nats"]
    assert result.facts["test/text"] != corpus.facts["test/text"]
    assert result.fingerprint != corpus.fingerprint


def test_the_own_text_read_as_another_is_the_same(texts):
    data = Data(corpus="plain")
    corpus = load_corpus("prediction", data)
    result = load_other_stream(data, data, corpus, Split.TEST)
    assert result.splits[Split.TEST].tolist() == corpus.splits[Split.TEST].tolist()
    assert (result.facts, result.words) == (corpus.facts, corpus.words)
    data = Data(corpus="pairs")
    pairs = load_corpus("translation", data)
    same = load_other_parallel(data, data, pairs, Split.TEST)
    for side in ("sources", "targets"):
        before, after = getattr(pairs.splits[Split.TEST], side), getattr(same.splits[Split.TEST], side)
        assert before.flat.tolist() == after.flat.tolist() and before.offsets.tolist() == after.offsets.tolist()
    assert same.splits[Split.TEST].references == pairs.splits[Split.TEST].references
    assert same.facts == pairs.facts


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("de", "en")])
def test_parallel_text_is_read_in_the_direction_of_the_run(texts, source, target):
    data = Data(corpus="pairs", source=source, target=target)
    corpus = load_corpus("translation", data)
    result = load_other_parallel(Data(corpus="others"), data, corpus, Split.VALID).splits[Split.VALID]
    assert result.references == (("y x", "z") if target == "de" else ("b a", "c b"))
    assert len(result.sources) == len(result.targets) == 2
    assert corpus.source_vocabulary.decode(result.sources[0]) == ("b a" if source == "en" else "y x")


def test_a_text_of_another_kind_is_refused(texts):
    data = Data(corpus="plain")
    with pytest.raises(KdxError, match="corpus `pairs` is parallel text"):
        load_other_stream(Data(corpus="pairs"), data, load_corpus("prediction", data), Split.TEST)
