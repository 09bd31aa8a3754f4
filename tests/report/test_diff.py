"""How two sides differ: settings, conditions, scores, and curves bit for bit."""

import math
from array import array
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kdx.report.diff import (
    Change,
    condition_changes,
    curve_differences,
    seed_pairs,
    setting_changes,
)
from kdx.store.records import CurveRecord, Provenance, RunRecord, RunState

NOTHING = Provenance(None, None, None, None)
HERE = Provenance("d1", "c1", {"torch": "2.12", "host": "a"}, None, facts={"lines": 3}, modules={"kdx.m": "1"})
RUN = RunRecord(1, "a" * 32, 0, 0, RunState.COMPLETED, 1, None, None, 9, 0, 1.0, 9, 2.0, None, 1.0)


def curve(points: dict[int, float]) -> CurveRecord:
    return CurveRecord(array("q", points), array("d", points.values()))


def test_settings_that_differ_are_named_by_their_dotted_field():
    each = {"kernel": "rbf", "training": {"steps": 10, "clip": None}}
    other = {"kernel": "rbf", "training": {"steps": 20, "clip": None}, "degree": 2}
    assert setting_changes(each, other) == [Change("training.steps", 10, 20), Change("degree", None, 2)]
    assert setting_changes(each, each) == []


def test_conditions_are_those_of_all_runs_of_a_side():
    newer = replace(HERE, environment={"torch": "2.13", "host": "a"}, code="c2", modules={"kdx.m": "2"})
    assert condition_changes([HERE, NOTHING], [HERE]) == []
    assert condition_changes([HERE], [newer]) == [
        Change("torch", "2.12", "2.13"),
        Change("code", "c1", "c2"),
        Change("code: kdx.m", "1", "2"),
    ]
    assert condition_changes([HERE], [HERE, newer])[0] == Change("torch", "2.12", ["2.12", "2.13"])
    assert Change("data", "d1", None) in condition_changes([HERE], [NOTHING])


def test_curves_are_compared_bit_for_bit():
    each = {"loss": curve({1: 1.0, 2: 0.5, 3: 0.25}), "lost": curve({1: 1.0})}
    other = {"loss": curve({1: 1.0, 2: 0.5 + 2**-53, 3: 0.5, 4: 0.0}), "new": curve({})}
    loss, lost, new = curve_differences(each, other)
    assert (loss.shared, loss.first, loss.largest, loss.at, loss.only_before, loss.only_after) == (3, 2, 0.25, 3, 0, 1)
    assert (lost.shared, lost.first, lost.largest, lost.only_before) == (0, None, None, 1)
    assert (new.name, new.shared) == ("new", 0)


def test_signs_of_zero_and_what_is_no_number_have_bits_too():
    ((zero),) = curve_differences({"x": curve({1: 0.0})}, {"x": curve({1: -0.0})})
    assert (zero.first, zero.largest) == (1, 0.0)
    nan = {"x": curve({1: math.nan, 2: math.inf})}
    ((same),) = curve_differences(nan, nan)
    assert same.first is None and same.largest is None
    ((diverged),) = curve_differences(nan, {"x": curve({1: 1.0, 2: 1.0})})
    assert diverged.first == 1 and diverged.largest is None


points = st.dictionaries(st.integers(0, 20), st.floats(), max_size=10)


@given(points, points)
def test_a_curve_is_the_same_as_itself_and_differences_have_no_direction(each, other):
    ((same),) = curve_differences({"x": curve(each)}, {"x": curve(each)})
    assert same.first is None and same.only_before == same.only_after == 0
    ((there),) = curve_differences({"x": curve(each)}, {"x": curve(other)})
    ((back),) = curve_differences({"x": curve(other)}, {"x": curve(each)})
    assert (there.shared, there.first, there.largest, there.at) == (back.shared, back.first, back.largest, back.at)
    assert (there.only_before, there.only_after) == (back.only_after, back.only_before)


def test_scores_stand_beside_one_another_by_seed():
    second, lacking = RUN._replace(id=2, seed=1, test_score=3.0), RUN._replace(id=3, seed=2, state=RunState.FAILED)
    pairs = seed_pairs([RUN, second], [RUN._replace(id=4, test_score=2.5), lacking])
    assert [(pair.name, pair.before, pair.after, pair.before_run, pair.after_run) for pair in pairs] == [
        ("seed 0", 2.0, 2.5, 1, 4),
        ("seed 1", 3.0, None, 2, None),
        ("seed 2", None, None, None, 3),
    ]
