"""Sets what was written as a reader would, with pdfTeX."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def set_by_latex(body: str, folder: Path) -> str:
    """The text of the pages; skips the test where there is no LaTeX, and fails it in CI.

    Raises:
        AssertionError: it does not compile.
    """
    if shutil.which("pdflatex") is None:
        reason = "no pdflatex here (Debian: texlive-latex-base, texlive-latex-recommended)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    document = "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n%s\n\\end{document}\n"
    (folder / "document.tex").write_text(document % body)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "document.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout
