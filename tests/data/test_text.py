from kdx.data.examples import GeneratedExamples
from kdx.data.text import PLAIN, KnownText
from kdx.tasks.corpora import BUILT_IN


def test_built_in_corpora_are_parallel_or_plain():
    texts = {name: text for name, text in BUILT_IN.items() if not isinstance(text, GeneratedExamples)}
    assert "synthetic-language" in texts
    for name, text in texts.items():
        assert len(text.suffixes) == 2 or text.suffixes == PLAIN, name


def test_every_known_corpus_can_be_come_by():
    for name, text in BUILT_IN.items():
        if isinstance(text, KnownText):
            assert (text.address or "").startswith("https://") or text.by_hand, name
            assert set(text.names.values()) <= set(text.files), name
