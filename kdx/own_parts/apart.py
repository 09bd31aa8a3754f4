"""Runs parts of one's own in a process of its own, which may end, print or loop without harm to the one that asks.

The process reads what it is asked from standard input as JSON, and writes {"answer": …} or {"fault": …} as JSON.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from types import FrameType
from typing import Any, NoReturn

from kdx.errors import KdxError, Place
from kdx.own_parts.faults import fault_of
from kdx.own_parts.part import OwnPart
from kdx.own_parts.registry import take

GRACE = 5
"""Seconds that a part has to end after it was stopped, before its process ends."""


def ask_apart(module: str, parts: Iterable[OwnPart], asked: Mapping[str, Any], *, within: int, limit: float) -> Any:
    """What another process answers, which runs `module` as a program.

    Args:
        module: one that calls `answer`.
        parts: which the process has as words.
        asked: further arguments, in plain values.
        within: seconds for each step of the work, after which it counts as endless.
        limit: seconds for all of it.

    Raises:
        KdxError: a part raises, does not end, or ends the process; at the line in its source where that is known.
    """
    parts = tuple(parts)
    words = ", ".join(f"`{part.word}`" for part in parts)
    sent = json.dumps({**asked, "parts": [part.text for part in parts], "within": within})
    # -P: no module is looked for in the folder of the user, where another one may have its name.
    command = [sys.executable, "-P", "-m", module]
    try:
        done = subprocess.run(command, input=sent.encode(), capture_output=True, timeout=limit)
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise KdxError(f"{words}: what tries them does not come to an end within {limit:g} s") from None
    except ValueError:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        problem = f"{words} ended the process that tried it, with code {done.returncode}: {last[-500:]}"
        raise KdxError(problem) from None
    if fault := found.get("fault"):
        place = fault["place"]
        raise KdxError(**{**fault, "place": Place(*place) if isinstance(place, list) else place})
    return found["answer"]


def answer(work: Callable[[Mapping[str, Any], Callable[[str], None]], Any]) -> NoReturn:
    """Does the work that standard input asks for, answers, and ends the process.

    Args:
        work: takes what is asked, and a function that it calls with the words of the parts before each step, which
            gives it the seconds of a step; gives the answer in plain values.
    """
    asked = json.load(sys.stdin)
    # What a part prints, or writes to the descriptor, is none of the answer.
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    parts = [OwnPart.read(text) for text in asked["parts"]]
    trying = ", ".join(part.word for part in parts)

    def end(found: Mapping[str, Any]) -> NoReturn:
        with os.fdopen(out, "w") as file:
            json.dump(found, file)
        # A thread of a part may still run.
        os._exit(0)

    def refuse(fault: KdxError) -> NoReturn:
        place = astuple(fault.place) if isinstance(fault.place, Place) else fault.place
        plain = {"problem": fault.problem, "place": place, "allowed": fault.allowed, "hint": fault.hint}
        end({"fault": plain})

    def stop(signum: int, frame: FrameType | None) -> None:
        # A part that catches whatever is raised goes on.
        signal.signal(signal.SIGALRM, stop_at_once)
        signal.alarm(GRACE)
        raise TimeoutError(f"it does not come to an end within {asked['within']} s")

    def stop_at_once(signum: int, frame: FrameType | None) -> None:
        slow = f"it does not come to an end within {asked['within']} s, and catches what would end it"
        refuse(KdxError(f"`{trying}` fails: {slow}"))

    def step(words: str) -> None:
        nonlocal trying
        trying = words
        signal.alarm(asked["within"])

    signal.signal(signal.SIGALRM, stop)
    try:
        take(asked["parts"])
        step(trying)
        found = work(asked, step)
    except BaseException as error:
        signal.alarm(0)
        refuse(fault_of(error, trying, parts))
    signal.alarm(0)
    end({"answer": found})
