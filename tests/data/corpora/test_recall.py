"""Associative recall: no pair is overwritten, and each question has the value that was read with its key."""

from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, read

from kdx.data.corpora.recall import BLANK, Recall


@st.composite
def options(draw) -> dict[str, int]:
    pairs = draw(st.integers(1, 20))
    return {
        "pairs": pairs,
        "length": 3 * pairs + draw(st.integers(0, 30)),
        "symbols": pairs + draw(st.integers(0, 20)),
    }


@given(SEED, options())
def test_no_pair_is_overwritten_and_every_question_was_written_before(seed, options):
    found = read(Recall(), seed, **options)
    keys = range(BLANK + 1, BLANK + 1 + options["symbols"])
    written: dict[int, tuple[int, int]] = {}
    place = 0
    while place + 1 < len(found.tokens) and found.tokens[place + 1] >= keys.stop:
        key, value = found.tokens[place : place + 2]
        assert key in keys and key not in written
        written[key] = value, place
        place += 2
    questions = {at: token for at, token in enumerate(found.tokens) if at >= place and token != BLANK}
    assert found.answers == {at: written[key][0] for at, key in questions.items()}
    assert sorted(questions.values()) == sorted(written)
    assert found.slices["distance"] == {at: at - written[key][1] for at, key in questions.items()}
    assert set(found.slices["pairs"].values()) == {len(written)}
    assert 1 <= len(written) <= options["pairs"] and len(found.tokens) == options["length"]


def test_what_cannot_be_is_told_at_its_option():
    many = Recall(task="answer", pairs=17).fault()
    assert str(many) == "data.pairs: 17 pairs of different keys\n  allowed: at most the 16 symbols"
    short = Recall(task="answer", length=23).fault()
    assert str(short) == "data.length: 8 pairs and as many questions in 23 tokens\n  allowed: 24 or more"
