"""Which machine this is, in words that may leave it."""

import hashlib
import os
from pathlib import Path


def machine() -> str:
    """This machine, as a hash."""
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
    except OSError:
        name = os.uname().nodename
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]
