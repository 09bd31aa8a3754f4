"""The corpora of generated examples: every answer is what its question asks, computed another way.

That answers about graphs are right, `test_graphs` checks.
"""

import statistics
from collections import Counter
from dataclasses import replace
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.corpora import copy, listops, parity
from kdx.data.corpora.addition import EQUALS, PLUS, ZERO, Addition
from kdx.data.corpora.ancestor import Ancestor
from kdx.data.corpora.copy import Copy
from kdx.data.corpora.edge_label import EdgeLabel
from kdx.data.corpora.induction import Induction
from kdx.data.corpora.listops import CLOSE, MAX, MEDIAN, MIN, SUM, ListOps
from kdx.data.corpora.neighbour import Neighbour
from kdx.data.corpora.parity import Parity
from kdx.data.corpora.recall import BLANK, Recall
from kdx.data.corpora.relation import Relation
from kdx.data.corpora.reverse import Reverse
from kdx.data.examples import NO_ANSWER, ExamplesOneByOne
from kdx.data.graphs import CHILD, LABELS, NO_EDGE
from kdx.vocabulary import Split

SEED = st.integers(0, 2**40)


class Read(NamedTuple):
    """An example of the task `answer` as a reader has it: tokens without padding, and answers by their place."""

    tokens: list[int]
    answers: dict[int, int]
    slices: dict[str, dict[int, int]]


def read(corpus: ExamplesOneByOne, seed: int, **options) -> Read:
    """Return one example at a difficulty, which must fit."""
    corpus = replace(corpus, **options)
    assert corpus.fault() is None
    example = corpus.draw(Random(seed))
    row, targets = example.inputs["tokens"].tolist(), example.targets.tolist()
    assert len(row) == len(targets) == corpus.tokens
    tokens = [token for token in row if token]
    assert row == tokens + [0] * (corpus.tokens - len(tokens))
    answers = {place: target for place, target in enumerate(targets) if target != NO_ANSWER}
    assert answers and max(answers) < len(tokens)
    assert all(0 < token < corpus.classes for token in (*tokens, *answers.values()))
    slices = {name: {place: int(values[place]) for place in answers} for name, values in example.slices.items()}
    return Read(tokens, answers, slices)


def at_end(example: Read, mark: int) -> tuple[list[int], list[int]]:
    """Return the tokens before the only mark, and the answer after it, of which all but the last is read again."""
    assert example.tokens.count(mark) == 1
    place = example.tokens.index(mark)
    assert list(example.answers) == list(range(place, place + len(example.answers)))
    answer = list(example.answers.values())
    assert example.tokens[place + 1 :] == answer[:-1]
    return example.tokens[:place], answer


@pytest.mark.parametrize(("corpus", "direction"), [(Copy(), 1), (Reverse(), -1)])
@given(SEED, st.integers(1, 30), st.integers(2, 30))
def test_copies_are_what_was_given(corpus, direction, seed, length, symbols):
    example = read(corpus, seed, length=length, symbols=symbols)
    prompt, answer = at_end(example, copy.MARK)
    assert answer == prompt[::direction] and 1 <= len(prompt) <= length
    assert set(example.slices["length"].values()) == {len(prompt)}


@given(SEED, st.integers(4, 40))
def test_parity_is_whether_ones_are_odd_in_number(seed, length):
    example = read(Parity(), seed, length=length)
    bits, answer = at_end(example, parity.MARK)
    assert set(bits) <= {parity.ZERO, parity.ZERO + 1}
    odd = sum(bit - parity.ZERO for bit in bits) % 2
    assert answer == [parity.ZERO + odd] and 1 <= len(bits) <= length
    assert set(example.slices["length"].values()) == {len(bits)}


def number(tokens: list[int]) -> int:
    return int("".join(str(token - ZERO) for token in tokens))


@given(SEED, st.integers(1, 12), st.sampled_from(["reversed", "plain"]))
def test_addition_gives_the_sum(seed, digits, order):
    example = read(Addition(), seed, digits=digits, order=order)
    prompt, answer = at_end(example, EQUALS)
    plus = prompt.index(PLUS)
    left, right = prompt[:plus], prompt[plus + 1 :]
    assert len(left) == len(right) == len(answer) - 1 <= digits
    assert number(answer if order == "plain" else answer[::-1]) == number(left) + number(right)
    assert set(example.slices["digits"].values()) == {len(left)}
    # A carry goes into each place at which the sum of all digits up to it does not fit.
    carries = sum(number(left[-upto:]) + number(right[-upto:]) >= 10**upto for upto in range(1, len(left) + 1))
    assert set(example.slices["carries"].values()) == {carries}


@given(SEED, st.integers(4, 40), st.integers(2, 30))
def test_induction_gives_what_came_after_the_same_token_before(seed, length, symbols):
    example = read(Induction(), seed, length=length, symbols=symbols)
    first: dict[int, int] = {}
    expected = {}
    for place, token in enumerate(example.tokens):
        if token in first:
            expected[place] = example.tokens[first[token] + 1]
        else:
            first[token] = place
    assert example.answers == expected
    assert set(example.slices["distance"].values()) == {len(first)}
    assert 2 * len(first) <= length == len(example.tokens)


def test_induction_has_every_distance():
    periods = {next(iter(read(Induction(), seed).slices["distance"].values())) for seed in range(200)}
    assert periods == set(range(2, 17))


@st.composite
def recall_options(draw) -> dict[str, int]:
    pairs = draw(st.integers(1, 20))
    length, symbols = 3 * pairs + draw(st.integers(0, 30)), pairs + draw(st.integers(0, 20))
    return {"pairs": pairs, "length": length, "symbols": symbols}


@given(SEED, recall_options())
def test_recall_gives_the_value_that_was_read_with_the_key_and_overwrites_none(seed, options):
    example = read(Recall(), seed, **options)
    keys = range(BLANK + 1, BLANK + 1 + options["symbols"])
    written: dict[int, tuple[int, int]] = {}
    place = 0
    while place + 1 < len(example.tokens) and example.tokens[place + 1] >= keys.stop:
        key, value = example.tokens[place : place + 2]
        assert key in keys and key not in written
        written[key] = value, place
        place += 2
    questions = {at: token for at, token in enumerate(example.tokens) if at >= place and token != BLANK}
    assert example.answers == {at: written[key][0] for at, key in questions.items()}
    assert sorted(questions.values()) == sorted(written)
    assert example.slices["distance"] == {at: at - written[key][1] for at, key in questions.items()}
    assert set(example.slices["pairs"].values()) == {len(written)}
    assert 1 <= len(written) <= options["pairs"] and len(example.tokens) == options["length"]


OPERATIONS = {
    MIN: lambda values: sorted(values)[0],
    MAX: lambda values: sorted(values)[-1],
    MEDIAN: lambda values: int(statistics.median(values)),
    SUM: lambda values: sum(values) % 10,
}


@st.composite
def listops_options(draw) -> dict[str, int]:
    depth, members = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    return {"depth": depth, "members": members, "length": depth * (members + 3) + draw(st.integers(0, 40))}


@given(SEED, listops_options())
def test_listops_gives_the_value_of_the_lists(seed, options):
    """By a stack instead of recursion."""
    example = read(ListOps(), seed, **options)
    prompt, answer = at_end(example, listops.EQUALS)
    stack: list[tuple[int, list[int]]] = [(0, [])]
    deepest = 0
    for token in prompt:
        if token in OPERATIONS:
            stack.append((token, []))
            deepest = max(deepest, len(stack) - 1)
        elif token == CLOSE:
            operator, values = stack.pop()
            assert 2 <= len(values) <= options["members"]
            stack[-1][1].append(OPERATIONS[operator](values))
        else:
            assert listops.ZERO <= token < listops.ZERO + 10
            stack[-1][1].append(token - listops.ZERO)
    ((_, value),) = stack
    assert [listops.ZERO + digit for digit in value] == answer
    assert set(example.slices["depth"].values()) == {deepest} and deepest <= options["depth"]


@pytest.mark.parametrize(
    ("corpus", "problem"),
    [
        (
            Recall(task="answer", pairs=17),
            "data.pairs: 17 pairs of different keys\n  allowed: at most the 16 symbols",
        ),
        (
            Recall(task="answer", length=23),
            "data.length: 8 pairs and as many questions in 23 tokens\n  allowed: 24 or more",
        ),
        (
            ListOps(task="answer", depth=6, members=9),
            "data.length: 48 tokens for lists of depth 6 and up to 9 members\n  allowed: 72 or more",
        ),
        (replace(Neighbour(), nodes=9), "data.edges: 16 edges from one of 9 nodes to others\n  allowed: at most 8"),
        (replace(Ancestor(), nodes=9, steps=5), "data.steps: chains of 5 among 9 nodes are rare\n  allowed: at most 4"),
        (replace(Relation(), nodes=9, steps=5), "data.steps: chains of 5 among 9 nodes are rare\n  allowed: at most 4"),
    ],
)
def test_options_that_leave_no_examples_are_refused(corpus, problem):
    assert str(corpus.fault()) == problem


def test_half_of_the_nodes_are_ancestors_and_every_distance_comes():
    examples = Ancestor().generate("ancestor", 0, Split.TEST, 400)
    distances = Counter(examples.slices["distance"].ravel().tolist())
    assert 150 < distances[0] < 250 and set(distances) == {0, 1, 2, 3}


def test_every_relation_comes_equally_often():
    examples = Relation().generate("relation", 0, Split.TEST, 400)
    distances = Counter(examples.slices["distance"].ravel().tolist())
    assert set(distances) == {0, 1, 2, 3} and all(60 < count < 140 for count in distances.values())


@pytest.mark.parametrize("nodes", [4, 10])
def test_every_node_sees_one_other_and_the_answer_is_the_label_of_that_edge(nodes):
    corpus, random = EdgeLabel(nodes=nodes), Random(0)
    for _ in range(100):
        example = corpus.draw(random)
        labels, (node,) = example.inputs["edges"], example.inputs["nodes"].tolist()
        assert ((labels != NO_EDGE).sum(1) == 1).all() and (labels.diagonal() == NO_EDGE).all()
        assert labels[node].max() == 1 + example.targets.item() < LABELS


def test_every_label_comes_equally_often():
    corpus, random = EdgeLabel(), Random(0)
    labels = Counter(corpus.draw(random).targets.item() for _ in range(1200))
    assert set(labels) == set(range(corpus.classes)) and all(150 < count < 250 for count in labels.values())


@settings(deadline=None)
@given(SEED, st.integers(4, 14), st.data())
def test_the_answer_is_the_name_of_the_only_child_of_the_last_node(seed, nodes, data):
    edges = data.draw(st.integers(2, nodes - 1))
    corpus = Neighbour(nodes=nodes, edges=edges)
    assert corpus.fault() is None
    example = corpus.draw(Random(seed))
    labels, named = example.inputs["edges"], example.inputs["nodes"].tolist()
    (answer,), (difficulty,) = example.targets.tolist(), example.slices["edges"].tolist()
    assert sorted(named) == list(range(nodes)) and 0 <= answer < corpus.classes == nodes - 1
    assert [node for node in range(nodes) if labels[named[-1], node] == CHILD] == [named[answer]]
    assert 2 <= difficulty <= edges and ((labels >= 0).sum(1) == difficulty).all()


def test_every_name_and_every_number_of_edges_comes():
    corpus, random = Neighbour(nodes=6, edges=4), Random(0)
    examples = [corpus.draw(random) for _ in range(300)]
    assert {example.targets.item() for example in examples} == set(range(5))
    assert {example.slices["edges"].item() for example in examples} == {2, 3, 4}
