import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from kdx.data.corpora.synthetic_translation import _NOUNS, _VERBS, TEXT, generate
from kdx.vocabulary import Split

DEFAULT = generate(0, TEXT.train_lines)


def digest(text) -> str:
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()


def test_default_text_is_frozen():
    assert digest(DEFAULT) == "919cb6289c3360af9e809b4767f9efff8b4692b38717d516f45f509af3ff8136"


def test_held_out_sentences_are_not_training_sentences():
    train = set(DEFAULT[Split.TRAIN]["source"])
    assert not train & {*DEFAULT[Split.VALID]["source"], *DEFAULT[Split.TEST]["source"]}


@given(st.integers(0, 2**40), st.integers(1, 60))
def test_fewer_lines_are_the_first_of_more_and_leave_valid_and_test_alone(seed, lines):
    few, many = generate(seed, lines), generate(seed, 60)
    assert few[Split.TRAIN] == {side: text[:lines] for side, text in many[Split.TRAIN].items()}
    assert few[Split.VALID] == many[Split.VALID]
    assert few[Split.TEST] == many[Split.TEST]


def test_target_is_a_function_of_the_source():
    translation: dict[str, str] = {}
    for sides in DEFAULT.values():
        for source, target in zip(sides["source"], sides["target"], strict=True):
            assert translation.setdefault(source, target) == target


def test_verb_is_last_and_agrees_with_its_subject_far_away():
    ending = {form: gender + "n" * many for _, forms, gender in _NOUNS for many, form in enumerate(forms)}
    verbs = {stem for _, stem in _VERBS}
    furthest = 0
    for line in DEFAULT[Split.TRAIN]["target"]:
        words = line.split()
        subject = next(place for place, word in enumerate(words) if word in ending)
        stem = next(stem for stem in verbs if words[-1].startswith(stem))
        assert words[-1] == stem + ending[words[subject]]
        furthest = max(furthest, len(words) - 1 - subject)
    assert furthest >= 10


def test_the_same_words_in_another_order_are_another_translation():
    by_words: dict[tuple[str, ...], set[str]] = {}
    for source, target in zip(*DEFAULT[Split.TRAIN].values(), strict=True):
        by_words.setdefault(tuple(sorted(source.split())), set()).add(target)
    assert any(len(targets) > 1 for targets in by_words.values())
