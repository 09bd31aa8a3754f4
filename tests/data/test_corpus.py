"""What corpora of all kinds have in common."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.data.corpus import corpus_code, generator_of, token_lists


@given(st.lists(st.lists(st.integers(0, 1000), max_size=5), max_size=6))
def test_lists_laid_end_to_end_are_there_again(lists):
    laid = token_lists(lists)
    assert [one.tolist() for one in laid] == lists
    assert laid.lengths.tolist() == list(map(len, lists))


def test_a_generated_corpus_has_a_generator_and_no_other():
    assert generator_of("synthetic-sets") == ("kdx.data.corpora.synthetic_sets",)
    assert generator_of("multi30k") == generator_of("mine") == ()


def test_the_code_of_a_corpus_is_its_readers_and_its_generators():
    reader = "kdx.data.stream"
    assert corpus_code(reader, "wikitext2") == corpus_code(reader, "mine") != corpus_code("kdx.data.parallel", "mine")
    assert corpus_code(reader, "synthetic-language") != corpus_code(reader, "mine")
