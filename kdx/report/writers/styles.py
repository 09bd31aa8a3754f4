"""The colours of states and of verdicts on a terminal; each word says by itself what it means."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {
    "completed": "green",
    "holds, confounded": "yellow",
    "does not hold, confounded": "yellow",
    "holds": "green",
    "failed": "red",
    "diverged": "red",
    "does not hold": "red",
    "running": "yellow",
    "paused": "yellow",
    "interrupted": "yellow",
    "cannot tell": "yellow",
}
"""State or verdict → its style."""
BARS = {
    "bar.complete": STYLES["running"],
    "bar.pulse": STYLES["running"],
    "bar.finished": STYLES["completed"],
    "progress.percentage": "none",
    "progress.download": "none",
    "progress.data.speed": "none",
    "progress.elapsed": "none",
    "progress.remaining": "none",
}
"""Styles of rich's bars: the same colours, and none for numbers."""
_WORDS = "|".join(STYLES)
SHOWN = re.compile(rf"^(?:{_WORDS})(?![^\s,])|(?<=\d )(?:{_WORDS})\b|(?<=[,:] )(?:{_WORDS})(?=$|[,:]| \(| by )")
"""A state at the start of a line or alone, behind a number, or where a title has the verdict or the state."""


def styled(text: str) -> "Text":
    """Return a text in which states and verdicts have their styles, and nothing else has any."""
    # Help and pipes do without rich.
    from rich.text import Text

    shown = Text(text)
    shown.highlight_regex(SHOWN, STYLES.__getitem__)
    return shown
