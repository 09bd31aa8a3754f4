"""Runs the blocks of a document, in order, in one folder, and compares what they print with what the document shows.

- A block of any language whose first line is `# NAME`, with an ending, is saved under that name.
- A block of `sh` is run by bash, one of `python` by Python. It has to succeed, unless its last line ends in
  `# exits with N`. A block of `text` after it is what it prints, both streams together.
- `<!-- not run: why -->` on the line before a block leaves it out.

A line `…` stands for any lines, and `…` in a line for any text. Whole numbers have to be the same; a decimal number may
be off by 2% of the largest in its line, since another processor rounds in another order (a spread changes more than its
mean). What differs on each machine has no fixed value: an amount with a unit of time or storage, a date, a time of day,
a hash.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

RUN = {"sh": ["bash", "-ec"], "python": [sys.executable, "-c"]}


@dataclass
class Block:
    """A block that is saved or run."""

    line: int
    language: str
    text: str
    output: str | None = None
    """What the document shows of what it prints; None if nothing."""

    @property
    def file(self) -> str | None:
        """The name under which it is saved; None if it is run."""
        name = re.match(r"# ([\w.-]+\.\w+)\n", self.text)
        return name[1] if name else None

    @property
    def status(self) -> int:
        """Its exit status."""
        status = re.search(r"# exits with (\d+)\n\Z", self.text)
        return int(status[1]) if status else 0


FENCE = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(document: Path) -> list[Block]:
    """Those that are saved or run."""
    text = document.read_text(encoding="utf-8")
    result: list[Block] = []
    for fence in FENCE.finditer(text):
        left_out, language, content = fence.groups()
        if left_out:
            continue
        block = Block(text.count("\n", 0, fence.start()) + 1, language, content)
        if language == "text":
            assert result and result[-1].output is None, f"{document}:{block.line}: the output of which block?"
            result[-1].output = content
        else:
            assert block.file or language in RUN, f"{document}:{block.line}: no `# NAME` in its first line"
            result.append(block)
    return result


UNIT = r"(?:s|ms|min|h|days?|bytes|[kMGT]i?B)\b"
VARIES = re.compile(
    rf"""(?P<amount>\d+(?:[.,]\d+)*\ {UNIT})
    |(?P<date>\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)
    |(?P<time>\b\d\d?:\d\d(?::\d\d)?\b)
    |(?P<hash>\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,}}\b)
    |(?P<decimal>(?<![\w.])[-−+]?\d+\.\d+(?:e[-+]\d+)?(?![\w.]*\w))
    |(?P<any>…)""",
    re.VERBOSE,
)
AGAIN = {
    "amount": rf"\d+(?:[.,]\d+)* {UNIT}",
    "date": r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?",
    "time": r"\d\d?:\d\d(?::\d\d)?",
    "hash": r"[0-9a-f]{7,}",
    "decimal": r"([-−+]?\d+\.\d+(?:e[-+]\d+)?)",
    "any": r"[^\n]*",
}


def _words(text: str) -> str:
    """A pattern of text, in which blanks may be wider or narrower, as columns are."""
    return r"[ ]+".join(re.escape(word) for word in re.split(" +", text))


def pattern(expected: str) -> tuple[re.Pattern[str], list[tuple[str, float]]]:
    """What matches the output, and for each of its groups the decimal number and how far off it may be."""
    lines: list[str] = []
    decimals: list[tuple[str, float]] = []
    for line in expected.splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*?")
            continue
        parts, start, numbers = [], 0, []
        for varying in VARIES.finditer(line.rstrip()):
            kind = varying.lastgroup
            parts += [_words(line[start : varying.start()]), AGAIN[kind]]
            if kind == "decimal":
                numbers.append(varying[0])
            start = varying.end()
        tolerance = 0.02 * max((abs(value(number)) for number in numbers), default=0.0)
        decimals += [(number, max(tolerance, last_place(number))) for number in numbers]
        lines.append("".join([*parts, _words(line.rstrip()[start:])]) + r"[ ]*\n")
    return re.compile("".join(lines)), decimals


def value(number: str) -> float:
    return float(number.replace("−", "-"))


def last_place(number: str) -> float:
    """One in the last place of a decimal number."""
    return 10.0 ** -len(number.partition(".")[2].partition("e")[0])


def run(document: Path, folder: Path) -> None:
    """Saves and runs the blocks of a document in a folder."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("KDX_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KDX_DATA": str(folder / "data"),
        "COLUMNS": "100",
    }
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    for block in blocks(document):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
            continue
        command = [*RUN[block.language], block.text]
        done = subprocess.run(command, cwd=folder, env=environment, text=True, check=False, **both)
        place = f"{document.name}:{block.line}"
        assert done.returncode == block.status, f"{place} exits with {done.returncode}:\n{done.stdout}"
        if block.output is not None:
            compare(block.output, done.stdout, place)


def compare(shown: str, printed: str, place: str) -> None:
    """Fails with both texts if what was printed is not what the document shows."""
    expected, decimals = pattern(shown)
    match = expected.fullmatch(printed)
    both = f"{place} prints:\n{printed}\n--- the document shows:\n{shown}"
    assert match, both
    for (number, tolerance), other in zip(decimals, match.groups(), strict=True):
        assert value(other) == pytest.approx(value(number), rel=0, abs=1.01 * tolerance), both
