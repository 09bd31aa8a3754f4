"""Checks a custom component in a child process: `python -m kdx.cli.verify_part`, started by `kdx verify --part`.

It takes {"device": …}, and answers [[proposition, variant, error, tolerance], …].
"""

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

from kdx.attention.verification.component import findings_of
from kdx.attention.verification.torch_state import set_otherwise_than_a_part_would, torch_left_alone
from kdx.components.apart import answer
from kdx.components.registry import at_hand


def main() -> None:
    """Checks what standard input asks for."""
    answer(_findings)


def _findings(request: Mapping[str, Any], step: Callable[[str], None]) -> list[Any]:
    (component,) = at_hand()
    set_otherwise_than_a_part_would()
    with torch_left_alone("when it is imported"):
        kind = component.load()
    found = []
    for one in findings_of(kind, request["device"]):
        found.append(astuple(one))
        step(component.word)
    return found


if __name__ == "__main__":
    main()
