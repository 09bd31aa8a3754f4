"""What is wrong with a file that is no YAML, in words of what stands there: its encoding, its tabs, its indentation.

The parser speaks of tokens and of states of its own. What it found is kept; only where the text around that place does
not say more is the parser itself quoted.
"""

import yaml

from kdx.errors import KdxError, Place

_CLOSED_BY = {"{": "}", "[": "]"}


def not_utf8(name: str, raw: bytes) -> KdxError | None:
    """Return the fault of bytes that are no text in UTF-8; None if they are."""
    try:
        raw.decode("utf-8-sig")
        at, problem = raw.find(0), "this is no text"
    except UnicodeDecodeError as error:
        at, problem = error.start, f"byte 0x{raw[error.start]:02x} is not UTF-8"
    if at < 0:
        return None
    place = Place(name, raw[:at].count(b"\n") + 1, at - (raw.rfind(b"\n", 0, at) + 1) + 1)
    return KdxError(problem, place=place, hint="save the file as text in UTF-8")


def forbidden_character(name: str, text: str, error: yaml.reader.ReaderError) -> KdxError:
    """Return the fault of a text with a character that no file may have, where it stands."""
    lines = text.partition(chr(error.character))[0].split("\n")
    place = Place(name, len(lines), len(lines[-1]) + 1)
    return KdxError(f"control character U+{error.character:04X}", place=place, hint="remove it")


def not_yaml(name: str, text: str, error: yaml.MarkedYAMLError) -> KdxError:
    """Return the fault of a text that the parser refuses, where it does so."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return KdxError(f"not YAML: {error.problem}", place=name)
    # The parser and an editor count the same line ends.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    began = error.context_mark
    explained = _in_words(lines, mark.line, mark.column, error.problem or "", began)
    problem, hint = explained or (" ".join(filter(None, (error.context, error.problem))), None)
    return KdxError(f"not YAML: {problem}", place=Place(name, mark.line + 1, mark.column + 1), hint=hint)


def _in_words(
    lines: list[str], at: int, column: int, problem: str, began: yaml.Mark | None
) -> tuple[str, str | None] | None:
    """Return what is wrong at a line and column, both from 0, and what to do; None if the parser says it best."""
    line = lines[at] if at < len(lines) else ""
    sign = line[column : column + 1]
    if "\t" in line[: len(line) - len(line.lstrip())] or sign == "\t":
        return "the line is indented by a tab", "YAML is indented with spaces; `expand -t 2` makes spaces of tabs"
    opened = lines[began.line][began.column : began.column + 1] if began is not None and began.line < len(lines) else ""
    if opened in _CLOSED_BY and "expected" in problem and began is not None:
        close = _CLOSED_BY[opened]
        return f"the `{opened}` of line {began.line + 1} is not closed before this", f"write `{close}`, or a `,`"
    if "end of stream" in problem and began is not None and opened in ("'", '"'):
        return f"the quotation mark of line {began.line + 1} is not closed", f"write the closing {opened}"
    if "cannot start any token" in problem:
        return f"`{sign}` cannot begin a value", f"write the value in quotes, such as '{sign}…'"
    above = next((number for number in range(at - 1, -1, -1) if _has_text(lines[number])), None)
    if "mapping values are not allowed" in problem:
        if ": " in line[:column].lstrip():
            return "a second `: ` on one line", "write a text that has a colon in quotes"
        if above is not None and ":" not in lines[above]:
            return f"line {above + 1} is no key with a value", "write a colon and a space after the key"
        if above is not None and _indent(lines[above]) < _indent(line):
            problem = f"the line is indented deeper than line {above + 1}, which has its value already"
            return problem, f"begin it in column {_indent(_item(lines[above])) + 1}, as line {above + 1}"
    if "<document start>" in problem and above is not None:
        first = next(number for number, text in enumerate(lines) if _has_text(text))
        if _indent(lines[first]) > _indent(line):
            column, other = _indent(line) + 1, _indent(lines[first]) + 1
            problem = f"the line begins in column {column}, line {first + 1} in column {other}"
            return problem, f"begin line {first + 1} in column {column}"
    if "expected key" in problem and line.lstrip().startswith("- "):
        return "an item of a list among keys", "indent the list below its key, or remove it"
    known = _levels(lines[:at], _indent(line))
    if known and _indent(line) not in known:
        problem = f"the line begins in column {_indent(line) + 1}, where no mapping around it does"
        return problem, f"begin it in column {' or '.join(str(level + 1) for level in known)}"
    return None


def _levels(lines: list[str], indent: int) -> list[int]:
    """Return the columns, from 0, in which a key below these lines may begin: those of the mappings that are open."""
    levels: list[int] = []
    for line in reversed([line for line in lines if _has_text(line)]):
        level = _indent(_item(line))
        if not levels or level < levels[-1]:
            levels.append(level)
        if level < indent:
            break
    return levels[::-1]


def _has_text(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _item(line: str) -> str:
    """Return the line with a blank for the dash of a list."""
    return line.replace("- ", "  ", 1) if line.lstrip().startswith("- ") else line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
