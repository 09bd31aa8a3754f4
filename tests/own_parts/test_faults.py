import pytest

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
