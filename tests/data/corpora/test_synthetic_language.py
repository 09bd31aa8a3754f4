import hashlib
import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kdx.data.corpora.synthetic_language import (
    _ADJECTIVES,
    _INTRANSITIVE,
    _NOUNS,
    _PEOPLE,
    _TRADES,
    _TRANSITIVE,
    TEXT,
    generate,
)
from kdx.vocabulary import Split

DEFAULT = generate(0, TEXT.train_lines)


def paragraphs(lines):
    return [part.split("\n") for part in "\n".join(lines).strip("\n").split("\n\n")]


def test_default_text_is_frozen():
    assert (
        hashlib.sha256(json.dumps(DEFAULT).encode()).hexdigest()
        == "479978203dc7c39c5bf06b0e10e7627df60d6df8f11a8cc6a277585c25161b94"
    )


@given(st.integers(0, 2**40), st.integers(1, 60))
def test_fewer_lines_are_the_first_of_more_and_leave_valid_and_test_alone(seed, lines):
    few, many = generate(seed, lines), generate(seed, 60)
    assert few[Split.TRAIN]["txt"] == many[Split.TRAIN]["txt"][:lines]
    assert few[Split.VALID] == many[Split.VALID]
    assert few[Split.TEST] == many[Split.TEST]


def test_a_trade_belongs_to_one_person_throughout_a_paragraph():
    person_of: dict[str, set[str]] = {trade: set() for trade in _TRADES}
    recalled = 0
    for lines in paragraphs(DEFAULT[Split.TRAIN]["txt"])[:-1]:
        said = {words[1]: words[3] for words in map(str.split, lines[:3])}
        for trade, person in said.items():
            person_of[trade].add(person)
        for words in map(str.split, lines[3:]):
            if len(words) == 5 and words[2] == "is":
                assert said[words[1]] == words[3]
                recalled += 1
    assert recalled > 300
    assert all(len(people) > 5 for people in person_of.values())


def test_pronoun_has_the_gender_of_the_person_before_it():
    pronoun = dict(_PEOPLE)
    checked = 0
    for lines in paragraphs(DEFAULT[Split.TRAIN]["txt"]):
        for before, line in pairwise(lines):
            if line.split()[0] in ("she", "he"):
                assert pronoun[before.split()[0]] == line.split()[0]
                checked += 1
    assert checked > 300


def test_a_verb_agrees_with_its_subject_not_with_the_noun_beside_it():
    one, many = ({forms[several] for forms in (*_TRANSITIVE, *_INTRANSITIVE)} for several in (0, 1))
    plural = dict(_NOUNS)
    # the (old) dogs that (see) the cat (sing): a clause whose noun is of the other number.
    verb, noun = "|".join(one | many), rf"the (?:(?:{'|'.join(_ADJECTIVES)}) )?(\w+)"
    clause = re.compile(rf"{noun} that (?:{verb}) {noun} ({verb})\b")
    checked = 0
    for match in map(clause.match, DEFAULT[Split.TRAIN]["txt"]):
        if match and (match[1] in plural.values()) != (match[2] in plural.values()):
            assert match[3] in (many if match[1] in plural.values() else one)
            checked += 1
    assert checked > 20
