"""The name of this machine in records."""

import hashlib
import os
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Return the hash that stands for this machine."""
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
    except OSError:
        name = os.uname().nodename
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]
