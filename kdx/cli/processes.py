"""The process that claimed a run, as commands show it."""

from typing import Any

from kdx.store.machine import machine


def process_of(owner: str | None) -> dict[str, Any]:
    """Its machine, as a hash, and its number there; both None where another kdx claimed the run, or nobody did.

    Args:
        owner: see `kdx.sweep.lease_holder`.
    """
    parts = (owner or "").split("/")
    known = len(parts) == 6
    return {
        "machine": parts[0] if known else None,
        "process": int(parts[3]) if known and parts[3].isascii() and parts[3].isdigit() else None,
    }


def process_in_words(owner: str | None) -> str | None:
    """The same in words, such as `process 7 here`; None where it is not known."""
    process = process_of(owner)
    if process["machine"] is None:
        return None
    place = "here" if process["machine"] == machine() else f"on machine {process['machine'][:8]}"
    return f"process {process['process']} {place}"
