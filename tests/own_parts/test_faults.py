import pytest

from kdx.errors import KdxError, PartError
from kdx.own_parts.faults import fault_of
from kdx.own_parts.part import OwnPart


@pytest.mark.parametrize(
    ("source", "place", "problem"),
    [
        ("def f():\n    return 1 / 0\nf()\nclass A: pass\n", "a.py:2:1", "ZeroDivisionError: division by zero"),
        ("import absent\nclass A: pass\n", "a.py:1:1", "ModuleNotFoundError: No module named 'absent'"),
        ("import json\njson.loads('{')\nclass A: pass\n", "a.py:2:1", "JSONDecodeError"),
    ],
)
def test_an_error_is_told_at_the_last_line_of_the_part_that_it_went_through(source, place, problem):
    part = OwnPart("kernel", "a.py:A", "a", "A", {"a.py": source})
    with pytest.raises(Exception) as caught:
        part.load()
    fault = fault_of(caught.value, part.word, [part])
    assert str(fault.place) == place and problem in fault.problem and "`a.py:A` fails" in fault.problem


def test_an_error_from_elsewhere_has_no_place():
    assert fault_of(KeyError("x"), "a.py:A", []).place is None


TWO = [
    OwnPart("kernel", f"{name}.py:A", name, "A", {f"{name}.py": "import json\n\n\nclass A:\n    pass\n"})
    for name in "ab"
]


def test_an_error_that_went_through_no_part_is_told_at_the_class_that_was_tried():
    fault = fault_of(ValueError("shapes differ"), "b.py:A", TWO)
    assert (str(fault.place), fault.problem) == ("b.py:4:1", "`b.py:A` fails: ValueError: shapes differ")
    assert fault_of(ValueError("shapes differ"), "a.py:A, b.py:A", TWO).place is None


def test_what_a_check_finds_is_told_at_the_class_in_which_it_was_found():
    error = PartError("gives no numbers", part=TWO[1].load(), allowed="numbers", hint="give some")
    fault = fault_of(error, "a.py:A, b.py:A", TWO)
    assert str(fault) == "b.py:4:1: `b.py:A`: gives no numbers\n  allowed: numbers\n  hint: give some"
    assert str(fault_of(PartError("changes torch"), "a.py:A", TWO)) == "a.py:4:1: `a.py:A`: changes torch"


def test_an_error_that_has_a_place_keeps_it():
    error = KdxError("no such corpus", place="data.corpus")
    assert fault_of(error, "a.py:A", TWO) is error
