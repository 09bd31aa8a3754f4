"""What a sweep may be called: what a command line takes for the name of a sweep, and shows as it is."""

import unicodedata

LONGEST_NAME = 100  # characters
ALLOWED = (
    f"a line of at most {LONGEST_NAME} characters without blanks at its ends, which does not begin with `-`, "
    "does not end in .yaml or .yml, and is no number"
)
"""What `is_sweep_name` allows, in words."""
PATTERN = r"^(?!-)(?!.*\.ya?ml$)(?![0-9]+$)\S(.*\S)?$"
"""The same for JSON Schema, but for its length and for signs that no terminal shows."""

_ACTIVE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Signs that no terminal shows as they are: control and format characters, lone surrogates, breaks of lines."""


def is_sweep_name(name: str) -> bool:
    """Whether a sweep may have the name: it is no option, no file of a grid and no number of a run."""
    active = any(unicodedata.category(sign) in _ACTIVE for sign in name)
    other = name.startswith("-") or name.endswith((".yaml", ".yml")) or (name.isascii() and name.isdigit())
    return 0 < len(name) <= LONGEST_NAME and name == name.strip() and not active and not other
