"""Quotes names in commands that a user is to type: no shell expands them, and kdx takes none for an option."""

import shlex


def shell_word(text: str) -> str:
    """Return `text` quoted for bash and zsh, on one line of printable characters."""
    if not text.isprintable():
        # $'…' in shells has the escapes of C. Names of files may have bytes that are not UTF-8.
        return f"$'{''.join(sign if sign.isprintable() and sign not in _QUOTES else _bytes(sign) for sign in text)}'"
    # This is easier to read than a quotation mark within quotation marks.
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def kdx_command(verb: str, *names: str, options: str = "") -> str:
    """Return the shell command that calls kdx with these names, which may have any characters.

    Args:
        verb: verb of kdx, such as `resume` or `db backup`.
        names: arguments that are not options.
        options: options as a shell takes them, with a blank before each, such as ` --slurm`.
    """
    words = "".join(f" {shell_word(name)}" for name in names)
    if any(name.startswith("-") for name in names):
        return f"kdx {verb}{options} --{words}"
    return f"kdx {verb}{words}{options}"


_QUOTES = "'\\!"  # what ends the quotes, what escapes, what an interactive shell expands even there


def _bytes(sign: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogateescape"))
