"""Every console block of the README is run, in order, in one fresh folder; its output must be what the README shows.

`$ ` begins a command and `> ` continues it; what follows is its output, both streams together. `…` stands for anything:
within a line, or, alone, for any lines.
"""

import os
import re
import shutil
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest

from kdx.grid.sections import Evaluation, OneOf
from kdx.grid.spec import CellSpec
from tests import words

ROOT = Path(__file__).parents[1]


def steps() -> list[tuple[str, str]]:
    """(command, expected output) of each step."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> ") and not found[-1][1]:
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    shutil.copy(ROOT / "runs.db.example", folder)
    return folder


@pytest.mark.parametrize(("command", "expected"), steps(), ids=[command.splitlines()[0] for command, _ in steps()])
def test_the_readme_shows_what_happens(folder, command, expected):
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("KDX_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KDX_DATA": str(folder / "data"),
        "COLUMNS": "100",
    }
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, **both)
    assert re.fullmatch(pattern(expected), done.stdout), f"{done.stdout}\n--- the README shows:\n{expected}"


def test_there_are_commands_to_run():
    assert len(steps()) > 5


def words_of(annotation: Any) -> set[str]:
    """Those that it names, wherever in it."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return set(annotation)
    found = set(annotation.words) if isinstance(annotation, OneOf) else set()
    parts = (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    return found.union(*map(words_of, parts)) if parts else found


def test_every_word_of_a_cell_is_in_the_table_of_words():
    told = (ROOT / "README.md").read_text().partition("### The words of a grid")[2].partition("\n\n`kdx init`")[0]
    fields = CellSpec.model_fields | Evaluation.model_fields
    wanted = {
        *fields,
        *(word for field in fields.values() for part in (field.annotation, *field.metadata) for word in words_of(part)),
    }
    assert wanted - set(re.findall(r"`([^`]+)`", told)) == set()


def test_the_page_of_words_is_what_their_classes_say():
    assert words.FILE.read_text(encoding="utf-8") == words.text(), "make words"
