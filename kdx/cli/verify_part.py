"""Checks a part of one's own in a process of its own, which may end, print or loop: `python -m kdx.cli.verify_part`.

Reads {"part": …, "device": …, "within": seconds} from standard input, and writes as JSON {"findings": [[proposition,
variant, error, tolerance], …]} or {"problem", "place": [file, line, column] or null}.
"""

import json
import os
import signal
import sys
from dataclasses import astuple
from types import FrameType
from typing import Any

from kdx.attention.verification.part import findings_of
from kdx.errors import KdxError
from kdx.own_parts.faults import fault_of
from kdx.own_parts.part import OwnPart
from kdx.own_parts.registry import add


def main() -> None:
    """Checks what standard input asks for."""
    asked = json.load(sys.stdin)
    # What a part prints, or writes to the descriptor, is none of the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGALRM, _end)
    part = OwnPart.read(asked["part"])
    add(part)
    told: dict[str, Any] = {"findings": []}
    try:
        signal.alarm(asked["within"])
        for one in findings_of(part.axis, part.word, asked["device"]):
            told["findings"].append([one.proposition, one.variant, one.error, one.tolerance])
            signal.alarm(asked["within"])
    except BaseException as error:
        found = error if isinstance(error, KdxError) else fault_of(error, part.word, [part])
        place = found.place if isinstance(found.place, str | None) else astuple(found.place)
        told = {"problem": found.problem, "place": place}
    signal.alarm(0)
    with answer:
        json.dump(told, answer)
    # A thread of the part may still run.
    os._exit(0)


def _end(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("a check of a few tokens does not come to an end")


if __name__ == "__main__":
    main()
