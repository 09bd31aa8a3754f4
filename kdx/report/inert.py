"""Names from grids, made harmless: no terminal escape, no line break, no reordering of the text around them."""

import unicodedata

# Control and formatting characters (ESC, bidirectional overrides, zero-width ones) and lone surrogates.
_ACTIVE = frozenset({"Cc", "Cf", "Cs"})


def inert(text: str) -> str:
    """`text` on one line, its white space collapsed and its active characters spelled out, ESC as `\\x1b`."""
    line = " ".join(text.split())
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _ACTIVE else character
        for character in line
    )
