"""Runs the console blocks of a document, and compares what comes out with what the document shows.

`$ ` begins a command and `> ` continues it; what follows is its output, both streams together. `…` stands for anything:
within a line, or, alone, for any lines.
"""

import os
import re
import subprocess
import sys
from pathlib import Path


def steps(document: Path) -> list[tuple[str, str]]:
    """(command, expected output) of each step."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif (line == ">" or line.startswith("> ")) and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def pattern(expected: str) -> str:
    lines = []
    for line in expected.splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(r"[^\n]*".join(re.escape(part.rstrip()) for part in line.split("…")) + r"[ ]*\n")
    return "".join(lines)


def check(command: str, expected: str, folder: Path) -> None:
    """Runs a command in a folder; its output must be what is expected."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("KDX_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KDX_DATA": str(folder / "data"),
        "COLUMNS": "100",
    }
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, **both)
    assert re.fullmatch(pattern(expected), done.stdout), f"{done.stdout}\n--- the document shows:\n{expected}"
