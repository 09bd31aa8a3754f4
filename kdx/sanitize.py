"""Makes names from grids harmless: no terminal escapes, no line breaks, no reordering of the text around them."""

import unicodedata

# Control and formatting characters (ESC, bidirectional overrides, zero-width ones) and lone surrogates.
_ACTIVE = frozenset({"Cc", "Cf", "Cs"})


def sanitize(text: str) -> str:
    """Return `text` on one line, its white space collapsed and its active characters spelled out, ESC as `\\x1b`."""
    return spelled_out(" ".join(text.split()))


def sanitize_lines(text: str) -> str:
    """Return each line sanitized; the line breaks and indentation stay."""
    lines = text.split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + sanitize(line) for line in lines)


def spelled_out(text: str, *, keep: str = "") -> str:
    """Return `text` with its active characters spelled out, except those in `keep`; white space stays."""
    if text.isprintable():  # nearly all names are: no control or format characters, and no surrogates
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _ACTIVE and character not in keep
        else character
        for character in text
    )
