"""A message has the place, the problem, what is allowed and what to do, in that order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import DatabaseError, Faults, KdxError, Place, StorageError, did_you_mean


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (KdxError("it is wrong"), "it is wrong"),
        (KdxError("it is wrong", place=Place("g.yaml", 3, 7)), "g.yaml:3:7: it is wrong"),
        (KdxError("it is wrong", place="runs.db", hint="mend it"), "runs.db: it is wrong\n  hint: mend it"),
        (KdxError("wrong", allowed=["a", "b"], hint="take a"), "wrong\n  allowed: a, b\n  hint: take a"),
        (KdxError("wrong", allowed="at most 3"), "wrong\n  allowed: at most 3"),
        (Faults([KdxError("one", hint="h"), KdxError("two")]), "one\n  hint: h\ntwo"),
    ],
)
def test_a_message_reads_in_one_order(fault, text):
    assert str(fault) == text


def test_each_kind_has_its_exit_code():
    assert [KdxError.exit_code, Faults.exit_code, DatabaseError.exit_code, StorageError.exit_code] == [2, 2, 3, 74]


def test_places_sort_as_one_reads():
    places = [Place("b", 1, 1), Place("a", 10, 1), Place("a", 9, 2), Place("a", 9, 1)]
    assert sorted(places) == places[::-1]


@pytest.mark.parametrize(
    ("word", "hint"),
    [("rfb", "did you mean `rbf`?"), ("RBF", "did you mean `rbf`?"), ("sausage", None), ("", None)],
)
def test_the_nearest_word_is_offered_only_when_it_is_near(word, hint):
    assert did_you_mean(word, ["exponential", "rbf"]) == hint


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=5))
def test_only_known_words_are_offered(word, known):
    hint = did_you_mean(word, known)
    assert hint is None or any(hint == f"did you mean `{each}`?" for each in known)
