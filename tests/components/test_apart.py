"""A process that runs components answers once, whatever they do; what ends it is one message."""

import pytest
from waiting import GIVE_UP

from kdx.components.apart import ask_apart, fault_of
from kdx.components.find import find
from kdx.components.registry import add
from kdx.errors import ComponentError, KdxError
from kdx.words.component import Component

OVER_SOON = "import faulthandler, sys; faulthandler.dump_traceback_later(1, exit=True, file=sys.__stderr__)\n"
"""Begins what has no end: of its time, a second is left."""

# What takes long to import comes before the first step.
PROGRAM = """import kdx.attention.interfaces
from kdx.components import apart
from kdx.components.registry import at_hand

def work(asked, step):
    for component in at_hand():
        step(component.word)
        component.load()
    return asked["number"] + 1

apart.answer(work)
"""


@pytest.fixture
def ask(own_kernel, monkeypatch):
    """Has a process import a kernel whose helper is this text, and add one to 7."""

    def ask(helpers: str, limit: float = GIVE_UP) -> int:
        (own_kernel / "helpers.py").write_text(f"squared_distance = None\n{helpers}\n")
        (own_kernel / "program.py").write_text(PROGRAM)
        component = find("kernel", "my_kernels.py:Cauchy", own_kernel)
        add(component)
        monkeypatch.setenv("PYTHONPATH", str(own_kernel))
        return ask_apart("program", [component], {"number": 7}, within=120, limit=limit)

    return ask


@pytest.mark.slow
@pytest.mark.parametrize(
    "helpers",
    [
        "print('{')",
        "import os\nos.write(1, b'{')",
        "import sys\nsys.stderr.write('x' * 10**7)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9e9,)).start()",
    ],
)
def test_what_a_component_does_beside_is_no_answer(ask, helpers):
    assert ask(helpers) == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("helpers", "told"),
    [
        ("1 / 0", "helpers.py:2:1: `my_kernels.py:Cauchy` fails: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "helpers.py:2:1: `my_kernels.py:Cauchy` fails: SystemExit: 3"),
        (
            "import absent",
            "helpers.py:2:1: `my_kernels.py:Cauchy` fails: ModuleNotFoundError: No module named 'absent'",
        ),
        ("import os\nos._exit(7)", "`my_kernels.py:Cauchy` ended the process that tried it, with code 7"),
        ("import os\nos.kill(os.getpid(), 9)", "`my_kernels.py:Cauchy` ended the process that tried it, with code -9"),
        (
            f"{OVER_SOON}while True: pass",
            "helpers.py:3:1: `my_kernels.py:Cauchy` does not come to an end within 120 s",
        ),
        (
            f"{OVER_SOON}while True:\n    try:\n        while True: sum(range(9))\n    except BaseException: pass",
            "`my_kernels.py:Cauchy` does not come to an end within 120 s",
        ),
    ],
)
def test_what_ends_it_is_one_message(ask, helpers, told):
    with pytest.raises(KdxError) as caught:
        ask(helpers)
    assert told in str(caught.value)


@pytest.mark.slow
def test_a_process_whose_alarm_was_switched_off_ends_with_the_limit(ask):
    with pytest.raises(KdxError, match="does not come to an end within 6 s"):
        ask("import faulthandler, time\nfaulthandler.cancel_dump_traceback_later()\ntime.sleep(1e6)", limit=6)


@pytest.mark.parametrize(
    ("source", "place", "problem"),
    [
        ("def f():\n    return 1 / 0\nf()\nclass A: pass\n", "a.py:2:1", "ZeroDivisionError: division by zero"),
        ("import absent\nclass A: pass\n", "a.py:1:1", "ModuleNotFoundError: No module named 'absent'"),
        ("import json\njson.loads('{')\nclass A: pass\n", "a.py:2:1", "JSONDecodeError"),
    ],
)
def test_an_error_is_reported_at_the_last_line_of_the_part_that_it_went_through(source, place, problem):
    component = Component("kernel", "a.py:A", "A", "a.py", {"a.py": source})
    with pytest.raises(Exception) as caught:
        component.load()
    fault = fault_of(caught.value, component.word, [component])
    assert str(fault.place) == place and problem in fault.problem and "`a.py:A` fails" in fault.problem


TWO = [
    Component("kernel", f"{name}.py:A", "A", f"{name}.py", {f"{name}.py": "import json\n\n\nclass A:\n    pass\n"})
    for name in "ab"
]


def test_an_error_that_went_through_no_part_is_reported_at_the_class_that_was_tried():
    fault = fault_of(ValueError("shapes differ"), "b.py:A", TWO)
    assert (str(fault.place), fault.problem) == ("b.py:4:1", "`b.py:A` fails: ValueError: shapes differ")
    assert fault_of(ValueError("shapes differ"), "a.py:A, b.py:A", TWO).place is None


def test_what_a_check_finds_is_reported_at_the_class_in_which_it_was_found():
    error = ComponentError("gives no numbers", component=TWO[1].load(), allowed="numbers", hint="give some")
    fault = fault_of(error, "a.py:A, b.py:A", TWO)
    assert str(fault) == "b.py:4:1: `b.py:A`: gives no numbers\n  allowed: numbers\n  hint: give some"
    assert str(fault_of(ComponentError("changes torch"), "a.py:A", TWO)) == "a.py:4:1: `a.py:A`: changes torch"


def test_an_error_that_has_a_place_keeps_it():
    error = KdxError("no such corpus", place="data.corpus")
    assert fault_of(error, "a.py:A", TWO) is error
