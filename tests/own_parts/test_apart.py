"""A process that runs parts answers once, whatever they do; what ends it is one message."""

import pytest
from waiting import GIVE_UP

from kdx.errors import KdxError
from kdx.own_parts.apart import ask_apart
from kdx.own_parts.read import find
from kdx.own_parts.registry import add

pytestmark = pytest.mark.slow

OVER_SOON = "import signal; signal.alarm(1)\n"
"""Begins what has no end: of its time, a second is left."""

# What takes long to import comes before the first step.
PROGRAM = """import kdx.attention.interfaces
from kdx.own_parts import apart
from kdx.own_parts.registry import at_hand

apart.GRACE = 1

def work(asked, step):
    for part in at_hand():
        step(part.word)
        part.load()
    return asked["number"] + 1

apart.answer(work)
"""


@pytest.fixture
def ask(own_kernel, monkeypatch):
    """Has a process import a kernel whose helper is this text, and add one to 7."""

    def ask(helpers: str, limit: float = GIVE_UP) -> int:
        (own_kernel / "helpers.py").write_text(f"squared_distance = None\n{helpers}\n")
        (own_kernel / "program.py").write_text(PROGRAM)
        part = find("kernel", "my_kernels.py:Cauchy", own_kernel)
        add(part)
        monkeypatch.setenv("PYTHONPATH", str(own_kernel))
        return ask_apart("program", [part], {"number": 7}, within=120, limit=limit)

    return ask


@pytest.mark.parametrize(
    "helpers",
    [
        "print('{')",
        "import os\nos.write(1, b'{')",
        "import sys\nsys.stderr.write('x' * 10**7)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9e9,)).start()",
    ],
)
def test_what_a_part_does_beside_is_no_answer(ask, helpers):
    assert ask(helpers) == 8


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
            "helpers.py:3:1: `my_kernels.py:Cauchy` fails: TimeoutError: it does not come to an end",
        ),
        (
            f"{OVER_SOON}while True:\n    try:\n        while True: sum(range(9))\n    except BaseException: pass",
            "`my_kernels.py:Cauchy` fails: it does not come to an end within 120 s, and catches what would end it",
        ),
    ],
)
def test_what_ends_it_is_one_message(ask, helpers, told):
    with pytest.raises(KdxError) as caught:
        ask(helpers)
    assert told in str(caught.value)


def test_a_process_that_no_signal_reaches_ends_with_the_limit(ask):
    with pytest.raises(KdxError, match="does not come to an end within 6 s"):
        ask("import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(1e6)", limit=6)
