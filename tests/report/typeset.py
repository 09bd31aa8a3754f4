"""Sets what was written as a reader would, with pdfTeX."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdx.report.writers.latex import PREAMBLE

TOO_WIDE = re.compile(r"Overfull \\hbox \(([\d.]+)pt too wide\)|Overfull \\vbox \(([\d.]+)pt too high\)")
_DOCUMENT = "\\documentclass{article}\n%s\\begin{document}\n%s\n\\end{document}\n"


@dataclass(frozen=True)
class Pages:
    """A document as it was set."""

    text: str
    """Of all pages, a form feed after each, as the lines stand there."""
    overfull: float
    """By how much the worst line or page is too large, in points."""


def set_by_latex(body: str, folder: Path) -> Pages:
    """The pages, with the packages of the report's preamble; skips the test where there is no LaTeX, fails it in CI.

    Raises:
        AssertionError: it does not compile.
    """
    for program, packages in (
        ("pdflatex", "texlive-latex-base, texlive-latex-recommended"),
        ("pdftotext", "poppler-utils"),
    ):
        if shutil.which(program) is None:
            reason = f"no {program} here (Debian: {packages})"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
    (folder / "document.tex").write_text(_DOCUMENT % (PREAMBLE.removeprefix("% "), body))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "document.tex"]
    # A longtable finds its widths in the second run or the third.
    for _ in range(3):
        log = _ran(command, folder)
    text = _ran(["pdftotext", "-layout", "document.pdf", "-"], folder)
    overfull = [float(wide or high) for wide, high in TOO_WIDE.findall(log)]
    return Pages(text, max(overfull, default=0.0))


def _ran(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout
