"""What decides a run's bits beside its cell and its seed; each resume checkpoint has it, for comparison on resuming.

Measured on five steps of a small network: 1, 2 and 4 threads give three results, each of them repeatable, and so do the
vector instructions of AVX2 and of none. What decides and has no name, such as the instructions that a library chose, is
in the canary, see `kdx.training.canary`.
"""

from collections.abc import Mapping
from typing import Any

# No bit depends on these. The code has a fingerprint of its own.
_NO_MATTER = ("host", "gpu", "cores", "kdx", "commit")
_SHORT = 8
"""Number of characters of a hash that messages show."""


def conditions(environment: Mapping[str, Any], data_fingerprint: str, code: Mapping[str, str]) -> dict[str, str]:
    """By name, as plain text; each module of the code is a condition of its own, such as `code kdx.training.run`."""
    facts = {name: str(fact) for name, fact in environment.items() if name not in _NO_MATTER}
    return facts | {"data": data_fingerprint} | {f"code {module}": sha256 for module, sha256 in code.items()}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return what differs, such as `torch 2.12.0 → 2.13.0, threads 1 → 2`; None if nothing does."""
    differing = [
        f"{name} {_shown(name, before)} → {_shown(name, now)}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    return ", ".join(differing) or None


def _shown(name: str, facts: Mapping[str, str]) -> str:
    fact = facts.get(name, "not recorded")
    return fact[:_SHORT] if name.partition(" ")[0] in ("data", "code") else fact
