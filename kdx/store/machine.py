"""The name of this machine in records."""

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Return the hash that stands for this machine."""
    # Machines that were made of one image may share the id, and then differ in their names.
    name = os.uname().nodename
    with suppress(OSError):
        name += Path("/etc/machine-id").read_text().strip()
    # Databases are passed on, and a machine's id is not meant to leave it.
    return hashlib.sha256(f"kdx {name}".encode()).hexdigest()[:16]
