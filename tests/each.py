"""One rule that is asked of each of many things, as one case; those that break it are told together."""

import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import pytest


def each(name: str, things: Iterable[Any], told: Callable[[Any], str] = str) -> Callable[[Callable], Callable]:
    """Gives a test its parameter `name` as `pytest.mark.parametrize` does, but all in one case, fixtures and all.

    For what is cheap to ask, where a case of its own would take longer than the question. A failure tells of every
    thing that is at fault what is wrong; `told` is what a thing is called there.
    """
    things = list(things)

    def decorated(test: Callable) -> Callable:
        kept = [one for one in signature(test).parameters.values() if one.name != name]

        @wraps(test)
        def of_all(**fixtures: Any) -> None:
            assert things, f"no {name} to ask it of"
            faults = {}
            for thing in things:
                try:
                    test(**fixtures, **{name: thing})
                except (Exception, pytest.fail.Exception) as fault:
                    # From the test on, as a case of its own would show it.
                    of_test = fault.__traceback__ and fault.__traceback__.tb_next
                    faults[told(thing)] = "".join(traceback.format_exception(type(fault), fault, of_test))
            if faults:
                head = f"{len(faults)} of {len(things)} are at fault: {', '.join(faults)}"
                pytest.fail("\n".join([head, *(f"\n{one}:\n{what}" for one, what in faults.items())]), pytrace=False)

        of_all.__signature__ = signature(test).replace(
            parameters=[one.replace(kind=Parameter.KEYWORD_ONLY) for one in kept]
        )
        return of_all

    return decorated
