"""ListOps: the value of the lists, by a stack instead of recursion."""

import statistics

from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, at_end, read

from kdx.data.corpora.listops import CLOSE, EQUALS, MAX, MEDIAN, MIN, SUM, ZERO, ListOps

OPERATIONS = {
    MIN: lambda values: sorted(values)[0],
    MAX: lambda values: sorted(values)[-1],
    MEDIAN: lambda values: int(statistics.median(values)),
    SUM: lambda values: sum(values) % 10,
}


@st.composite
def options(draw) -> dict[str, int]:
    depth, members = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    return {"depth": depth, "members": members, "length": depth * (members + 3) + draw(st.integers(0, 40))}


@given(SEED, options())
def test_the_answer_is_the_value_of_the_lists(seed, options):
    found = read(ListOps(), seed, **options)
    prompt, answer = at_end(found, EQUALS)
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
            assert ZERO <= token < ZERO + 10
            stack[-1][1].append(token - ZERO)
    ((_, value),) = stack
    assert [ZERO + one for one in value] == answer
    assert set(found.slices["depth"].values()) == {deepest} and deepest <= options["depth"]


def test_lists_that_would_hardly_ever_fit_are_refused():
    fault = ListOps(task="answer", depth=6, members=9).fault()
    assert str(fault) == "data.length: 48 tokens for lists of depth 6 and up to 9 members\n  allowed: 72 or more"
