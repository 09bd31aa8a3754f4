"""Thinning hides nothing: every extreme of every curve is still there."""

from array import array
from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from kdx.report.writers.html.curves import band
from kdx.store.records import CurveRecord


def curve(*points: tuple[int, float]) -> CurveRecord:
    return CurveRecord(array("q", [step for step, _ in points]), array("d", [value for _, value in points]))


def test_few_steps_are_kept_as_they_are() -> None:
    one, two = curve((1, 5.0), (10, 3.0), (20, 4.0)), curve((1, 6.0), (10, 2.0))
    found = band([one, two], one, most=3)
    assert found is not None
    assert (found.steps, found.low, found.high) == ((1, 10, 20), (5, 2, 4), (6, 3, 4))
    assert found.line == ((1, 5), (10, 3), (20, 4))
    assert found.seeds == 2


def test_many_steps_become_stretches_with_their_extremes() -> None:
    noisy = curve(*((step, 100.0 if step == 517 else float(step % 7)) for step in range(1000)))
    found = band([noisy], noisy, most=10)
    assert found is not None
    assert len(found.steps) == 10 and found.low == (0.0,) * 10
    assert found.high == (6.0,) * 5 + (100.0,) + (6.0,) * 4
    assert (517, 100.0) in found.line and len(found.line) <= 20


def test_what_is_not_a_number_is_left_out() -> None:
    found = band([curve((1, nan), (2, inf), (3, 1.0)), curve((1, nan))], curve((1, nan)), most=5)
    assert found is not None
    assert (found.steps, found.low, found.high, found.line, found.seeds) == ((3,), (1.0,), (1.0,), (), 1)
    assert band([curve((1, nan))], None, most=5) is None
    assert band([], None, most=5) is None


points = st.lists(
    st.tuples(st.integers(0, 10_000), st.floats(allow_nan=True)), max_size=60, unique_by=lambda point: point[0]
).map(lambda found: curve(*sorted(found)))


@given(st.lists(points, min_size=1, max_size=4), st.integers(1, 12))
def test_no_extreme_is_lost_and_no_value_made_up(curves: list[CurveRecord], most: int) -> None:
    finite = [value for one in curves for value in one.values if abs(value) < inf]
    found = band(curves, curves[0], most)
    if not finite:
        assert found is None
        return
    assert found is not None
    assert (min(found.low), max(found.high)) == (min(finite), max(finite))
    assert {*found.low, *found.high} <= set(finite)
    assert all(low <= high for low, high in zip(found.low, found.high, strict=True))
    assert list(found.steps) == sorted(set(found.steps)) and len(found.steps) <= max(most, 1)
    own = [(step, value) for step, value in zip(curves[0].steps, curves[0].values, strict=True) if abs(value) < inf]
    assert set(found.line) <= set(own) and list(found.line) == sorted(found.line)
    if own:
        values = [value for _, value in found.line]
        assert (min(values), max(values)) == (min(v for _, v in own), max(v for _, v in own))
