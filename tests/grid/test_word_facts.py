"""What is known of a word comes from its definition, its enum or its module."""

from kdx.attention.kernels import KERNELS
from kdx.grid.word_facts import Facts, facts_at, facts_of, facts_of_corpus
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Norm


def test_of_a_kernel_all_that_its_definition_says():
    facts = facts_of(KERNELS, "rbf")
    assert (facts.title, facts.formula) == ("Radial basis function", "k(q, k) = exp(-|q - k|² / T√D)")
    assert [option.name for option in facts.options] == ["temperature"]


def test_of_a_task_its_title_and_options():
    facts = facts_of(TASKS, "classification")
    assert facts.title[0].isupper() and [option.name for option in facts.options] == ["pooling"]


def test_of_a_word_of_an_enum_what_stands_below_it():
    assert facts_of((), Norm.PRE) == Facts("pre", "Before each sublayer (Xiong et al. 2020)")


def test_of_any_other_word_nothing():
    assert facts_of(("a", "b"), "a") == Facts("a") and facts_of(KERNELS, "none") == Facts("none")


def test_every_corpus_has_a_title():
    assert [word for word in BUILT_IN.addresses if not facts_of_corpus(word).title] == []
    assert facts_of_corpus("wikitext2").title.startswith("WikiText-2 (Merity et al. 2017)")


def test_a_key_says_which_words_are_meant():
    assert facts_at("value", "table") != facts_at("filter.decoder-self", "causal") is not None
    assert facts_at("model.bias", "none") is None and facts_at("data.corpus", "rbf") is None
