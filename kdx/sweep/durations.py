"""Formats lengths of time."""


def in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that leaves two digits: `49 s`, `12 min`, `31 h`, `8 days`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 100 * 3600 else f"{seconds / 86400:.0f} days"
