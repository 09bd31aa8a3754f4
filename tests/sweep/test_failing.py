"""Which failures are alike, and what pauses a cell or ends a worker."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.store.failures import FailureRecord
from kdx.sweep.failing import ALIKE, IN_A_ROW, failing_machines, paused_cells, signature


def raised(error: Exception) -> str:
    try:
        raise error
    except Exception:
        return traceback.format_exc()


def failure(run_id: int, cell: str = "a", owner: str = "one", ended: float = 1.0, error: str = "E") -> FailureRecord:
    return FailureRecord(run_id, cell, owner, ended, error, None)


def test_an_exception_is_its_type_and_its_place():
    one, other = raised(ValueError("no 12 at 0x7f00ab")), raised(ValueError("no 13 at 0x7f11cd\nin two lines"))
    assert signature("ValueError: no 12", one) == signature("x", other) == "ValueError in raised (test_failing.py)"
    assert signature("", raised(TypeError("no"))) == "TypeError in raised (test_failing.py)"


def test_of_a_chain_of_exceptions_the_last_one_counts():
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise KdxError("outer", place="here", hint="do") from inner
    except KdxError:
        text = traceback.format_exc()
    function = "test_of_a_chain_of_exceptions_the_last_one_counts"
    assert signature("outer", text) == f"KdxError in {function} (test_failing.py)"


@pytest.mark.parametrize(
    ("error", "trace", "expected"),
    [
        ("killed by SIGSEGV", "killed by SIGSEGV", "killed by SIGSEGV"),
        ("hung: no sign of life for 600 s", None, "hung: no sign of life for … s"),
        ("incomplete metrics: 3 of 17 rows\nof 0xff", None, "incomplete metrics: … of … rows"),
    ],
)
def test_where_nothing_was_raised_the_line_without_numbers_counts(error, trace, expected):
    assert signature(error, trace) == expected


@given(st.text(max_size=200), st.none() | st.text(max_size=200))
def test_any_error_has_one_line(error, trace):
    found = signature(error, trace)
    assert "\n" not in found and signature(error, trace) == found


def test_a_cell_is_paused_once_runs_of_it_failed_alike():
    assert paused_cells([failure(1), failure(2, cell="b")]) == {}
    assert paused_cells([failure(1, error="this"), failure(2, error="that")]) == {}
    found = paused_cells([failure(1, error="step 3"), failure(2, error="step 4"), failure(3, cell="b")])
    assert found.keys() == {"a"} and found["a"].runs == ALIKE == 2
    assert str(found["a"]) == "2 runs of its cell failed alike: step …"


def test_a_machine_fails_where_so_many_runs_failed_since_its_last_success():
    failed = [failure(number, ended=float(number)) for number in range(1, IN_A_ROW + 1)]
    assert failing_machines(failed[1:], {}) == {}
    assert failing_machines(failed, {}) == {"one": failed}
    assert failing_machines(failed, {"one": 1.0}) == {}, "the first came before its success"
    assert failing_machines(failed, {"other": 9.0}) == {"one": failed}
    assert failing_machines([one._replace(owner=str(one.run_id)) for one in failed], {}) == {}


def test_processes_of_one_machine_count_together():
    failed = [failure(number, owner=f"one/boot/{number}", ended=float(number)) for number in range(1, IN_A_ROW + 1)]
    assert failing_machines(failed, {}) == {"one": failed}
    assert failing_machines(failed, {"one/boot/9": 1.0, "one/boot/8": 0.5}) == {}
    assert failing_machines(failed, {"other/boot/9": 9.0}) == {"one": failed}
