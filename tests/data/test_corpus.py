"""What corpora of all kinds have in common."""

from kdx.data.corpus import corpus_code, generator_of


def test_a_generated_corpus_has_a_generator_and_no_other():
    assert generator_of("synthetic-sets") == ("kdx.data.corpora.synthetic_sets",)
    assert generator_of("multi30k") == generator_of("mine") == ()


def test_the_code_of_a_corpus_is_its_readers_and_its_generators():
    reader = "kdx.data.stream"
    assert corpus_code(reader, "wikitext2") == corpus_code(reader, "mine") != corpus_code("kdx.data.parallel", "mine")
    assert corpus_code(reader, "synthetic-language") != corpus_code(reader, "mine")
