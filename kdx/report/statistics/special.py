"""`scipy.special`, imported when one of its functions is first used: it takes 0.1 to 0.5 s, and few tables need it."""

from typing import Any


def __getattr__(name: str) -> Any:
    # late: that is the purpose of this file
    import scipy.special

    return getattr(scipy.special, name)
