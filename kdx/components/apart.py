"""Runs custom components, or a few steps of a cell, in a child process, which may crash, print or loop without harm.

The child reads its request from standard input as JSON, and writes {"answer": …} or {"fault": …} as JSON.
"""

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, NoReturn

from kdx.components.registry import take
from kdx.errors import ComponentError, KdxError, Place
from kdx.words.component import Component

_TIMEOUT = "Timeout ("
"""The start of `faulthandler`'s traceback of a step that took too long."""
_FRAME = re.compile(r'  File "(.+)", line (\d+) in ')


def ask_apart(
    module: str, components: Iterable[Component], request: Mapping[str, Any], *, within: int, limit: float
) -> Any:
    """Return the answer of a child process that runs `module` as a program.

    Args:
        module: module that calls `answer`.
        components: components that the child adds to its known names.
        request: further arguments, as plain values.
        within: seconds for each step of the work, after which it counts as endless.
        limit: seconds for the whole work.

    Raises:
        KdxError: the work raises, does not end, or ends the process; the error has the line in a component's source if
            the work was in one.
    """
    components = tuple(components)
    sent = json.dumps({**request, "components": [component.text for component in components], "within": within})
    # -P: the current folder, which may have a module of the same name, is not searched.
    command = [sys.executable, "-P", "-m", module]
    try:
        done = subprocess.run(command, input=sent.encode(), capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise _ended(components, f"does not come to an end within {limit:g} s") from None
    try:
        answered = json.loads(done.stdout)
    except ValueError:
        printed = done.stderr.decode(errors="replace")
        if _TIMEOUT in printed:
            raise _ended(components, f"does not come to an end within {within} s", printed) from None
        lines = printed.strip().splitlines() or ["it printed nothing"]
        last = next((line for line in lines if line.startswith("Fatal Python error")), lines[-1])
        why = ", perhaps for lack of memory" if done.returncode == -signal.SIGKILL else ""
        problem = f"ended the process that tried it, with code {done.returncode}{why}: {last[-500:]}"
        raise _ended(components, problem, printed) from None
    if fault := answered.get("fault"):
        place = fault["place"]
        raise KdxError(**{**fault, "place": Place(*place) if isinstance(place, list) else place})
    return answered["answer"]


def answer(work: Callable[[Mapping[str, Any], Callable[[str], None]], Any]) -> NoReturn:
    """Do the work that standard input requests, answer, and end the process.

    Args:
        work: takes the request, and a function to call with the names of the components before each step, which starts
            the time limit of the step; returns plain values.
    """
    request = json.load(sys.stdin)
    # The answer has its own descriptor, so nothing that a component prints gets into it.
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    components = [Component.read(text) for text in request["components"]]
    trying = ", ".join(component.word for component in components)

    def step(words: str) -> None:
        nonlocal trying
        trying = words
        # This ends the process even if a component catches all exceptions, or never returns from C.
        faulthandler.dump_traceback_later(request["within"], exit=True, file=sys.__stderr__ or 2)

    faulthandler.enable(sys.__stderr__ or 2)  # prints where the process crashes
    try:
        take(request["components"])
        step(trying)
        answered = {"answer": work(request, step)}
    except BaseException as error:
        fault = fault_of(error, trying, components)
        place = astuple(fault.place) if isinstance(fault.place, Place) else fault.place
        answered = {"fault": {"problem": fault.problem, "place": place, "allowed": fault.allowed, "hint": fault.hint}}
    faulthandler.cancel_dump_traceback_later()
    with os.fdopen(out, "w") as file:
        json.dump(answered, file)
    # A thread of a component may still run.
    os._exit(0)


def _ended(components: Sequence[Component], problem: str, printed: str = "") -> KdxError:
    """Return the error of a process that gave no answer, at the line of a component where `faulthandler` saw it."""
    files = _files(components)
    frames = _FRAME.findall(printed.rpartition(_TIMEOUT)[2])  # the innermost first
    place = next((Place(file, int(line), 1) for file, line in frames if file in files), None)
    if place is None and len(components) == 1:
        place = components[0].class_place
    words = ", ".join(f"`{component.word}`" for component in components) or "it"
    return KdxError(f"{words} {problem}", place=place)


def fault_of(error: BaseException, word: str, components: Iterable[Component]) -> KdxError:
    """Return an error that a component raised, or that a check found in it, as one message at a line of its source.

    The line is the last one of a component in the traceback; else that of the class in which the error was found, or of
    the component that was tried.

    Args:
        word: name of the component that was tried, or names of several.
        components: components whose sources may be in the traceback; if empty, the error is that of the work itself.
    """
    if isinstance(error, KdxError) and error.place is not None:
        return error
    components = tuple(components)
    last = traceback.format_exception_only(error)[-1].strip()
    if not components:
        return error if isinstance(error, KdxError) else KdxError(last)
    files = _files(components)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    tried = _tried(error, word, components)
    place = None
    if isinstance(error, SyntaxError) and error.filename in files:
        place = Place(str(error.filename), error.lineno or 1, error.offset or 1)
    elif frames:
        place = Place(frames[-1].filename, frames[-1].lineno or 1, 1)
    elif tried is not None:
        place = tried.class_place
    if isinstance(error, KdxError):
        problem = f"`{tried.word if tried else word}`: {error.problem}"
        return KdxError(problem, place=place, allowed=error.allowed, hint=error.hint)
    return KdxError(f"`{word}` fails: {last}", place=place)


def _files(components: Iterable[Component]) -> set[str]:
    return {component.file(module) for component in components for module in component.paths}


def _tried(error: BaseException, word: str, components: tuple[Component, ...]) -> Component | None:
    """Return the component in which a check found an error, or else the one that was tried; None if several were."""
    kind = error.component if isinstance(error, ComponentError) else None
    for component in components:
        if component.word == word if kind is None else component.name == kind.__name__ and component.load() is kind:
            return component
    return None
