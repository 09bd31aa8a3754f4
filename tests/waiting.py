"""Waiting for what a test has set going."""

import time
from collections.abc import Callable
from pathlib import Path

GIVE_UP = 300.0
"""Seconds after which a test gives up: a machine may be slow, and no result depends on how many these are."""


def wait_until(true: Callable[[], object], still: Callable[[], object] = lambda: True) -> None:
    """Waits for a condition; fails as soon as the second one, without which it cannot come true, no longer holds."""
    deadline = time.monotonic() + GIVE_UP
    while True:
        holds = still()  # before the condition, which may come true as this ends
        if true():
            return
        assert holds, "it will never happen"
        assert time.monotonic() < deadline, f"it did not happen within {GIVE_UP:.0f} s"
        time.sleep(0.05)


def has_begun(files: Path) -> bool:
    """Whether a run trains, by its log: rows are recorded a second later or more, when a short run may be over."""
    return any("step 1 " in log.read_text() for log in files.glob("*/log.txt"))
