"""One rule checked on each of many things, as one test case whose failure names every offender."""

import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import pytest


def each(name: str, things: Iterable[Any], told: Callable[[Any], str] = str) -> Callable[[Callable], Callable]:
    """Parametrise a test like `pytest.mark.parametrize`, but as a single case.

    For cheap checks, where pytest's own cost of a case is larger. A failure has the traceback of each offender.

    Args:
        name: the parameter of the test.
        things: its values.
        told: the name of a value in the failure.
    """
    things = list(things)

    def decorated(test: Callable) -> Callable:
        fixtures_alone = [parameter for parameter in signature(test).parameters.values() if parameter.name != name]

        @wraps(test)
        def of_all(**fixtures: Any) -> None:
            assert things, f"no {name} to check"
            faults = {}
            for thing in things:
                try:
                    test(**fixtures, **{name: thing})
                except (Exception, pytest.fail.Exception) as fault:
                    # From the test on, as a case of its own would show it.
                    of_test = fault.__traceback__ and fault.__traceback__.tb_next
                    faults[told(thing)] = "".join(traceback.format_exception(type(fault), fault, of_test))
            if faults:
                head = f"{len(faults)} of {len(things)} fail: {', '.join(faults)}"
                pytest.fail(
                    "\n".join([head, *(f"\n{thing}:\n{fault}" for thing, fault in faults.items())]), pytrace=False
                )

        of_all.__signature__ = signature(test).replace(
            parameters=[parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in fixtures_alone]
        )
        return of_all

    return decorated
