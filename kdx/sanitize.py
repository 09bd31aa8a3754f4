"""Names from grids, made harmless: no terminal escape, no line break, no reordering of the text around them."""

import unicodedata

# Control and formatting characters (ESC, bidirectional overrides, zero-width ones) and lone surrogates.
_ACTIVE = frozenset({"Cc", "Cf", "Cs"})


def sanitize(text: str) -> str:
    """`text` on one line, its white space collapsed and its active characters spelled out, ESC as `\\x1b`."""
    return spelled_out(" ".join(text.split()))


def sanitize_lines(text: str) -> str:
    """The same of each line; the lines and their indentation stay."""
    lines = text.split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + sanitize(line) for line in lines)


def spelled_out(text: str, *, keep: str = "") -> str:
    """`text` with its active characters spelled out, but for those of `keep`; white space stays."""
    if text.isprintable():  # as nearly all names are: no character of whatever kind of control, format or surrogate
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _ACTIVE and character not in keep
        else character
        for character in text
    )
