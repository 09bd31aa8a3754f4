"""Names from grids, made harmless.

On a terminal: no escape, no line break, no reordering of the text around them. In a command that is shown for a user to
type: nothing that a shell expands, and no name that kdx would take for an option.
"""

import shlex
import unicodedata

# Control and formatting characters (ESC, bidirectional overrides, zero-width ones), lone surrogates, breaks of lines.
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def sanitize(text: str) -> str:
    """`text` on one line, its white space collapsed and its active characters spelled out, ESC as `\\x1b`."""
    return spelled_out(" ".join(text.split()))


def sanitize_lines(text: str) -> str:
    """`text` with its lines and blanks, its other active characters spelled out."""
    return spelled_out(text.replace("\t", " "), keep="\n")


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


def shell_word(text: str) -> str:
    """Return `text` as bash and zsh read it back, on one line of characters that a terminal shows as they are."""
    if not text.isprintable():
        # $'…' of shells has the escapes of C. Names of files may have bytes that are no UTF-8.
        return f"$'{''.join(sign if sign.isprintable() and sign not in _QUOTES else _bytes(sign) for sign in text)}'"
    # Easier to read than a quotation mark within quotation marks.
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def kdx_command(verb: str, *names: str, options: str = "") -> str:
    """Return the line of a shell that calls kdx with these names, whatever characters they have.

    Args:
        verb: such as `resume`, or `db backup`.
        names: arguments that are no options.
        options: as a shell takes them, with a blank before each, such as ` --failed`.
    """
    words = "".join(f" {shell_word(name)}" for name in names)
    if any(name.startswith("-") for name in names):
        return f"kdx {verb}{options} --{words}"
    return f"kdx {verb}{words}{options}"


_QUOTES = "'\\!"  # what ends the quotes, what escapes, what an interactive shell expands even there


def _bytes(sign: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogateescape"))
