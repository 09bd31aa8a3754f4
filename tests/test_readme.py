"""Every console block of the README is run, in order, in one fresh folder; its output must be what the README shows."""

import re
import shutil
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest

from kdx.grid.sections import Evaluation, OneOf
from kdx.grid.spec import CellSpec
from tests import words
from tests.console_blocks import check, steps

ROOT = Path(__file__).parents[1]


STEPS = steps(ROOT / "README.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    shutil.copy(ROOT / "runs.db.example", folder)
    return folder


@pytest.mark.parametrize(("command", "expected"), STEPS, ids=[command.splitlines()[0] for command, _ in STEPS])
def test_the_readme_shows_what_happens(folder, command, expected):
    check(command, expected, folder)


def test_there_are_commands_to_run():
    assert len(STEPS) > 5


def words_of(annotation: Any) -> set[str]:
    """Those that it names, wherever in it."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return set(annotation)
    found = set(annotation.words) if isinstance(annotation, OneOf) else set()
    parts = (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    return found.union(*map(words_of, parts)) if parts else found


def test_every_word_of_a_cell_is_in_the_table_of_words():
    page = (ROOT / "docs" / "reference" / "grid-keys.md").read_text()
    fields = CellSpec.model_fields | Evaluation.model_fields
    wanted = {
        *fields,
        *(word for field in fields.values() for part in (field.annotation, *field.metadata) for word in words_of(part)),
    }
    assert wanted - set(re.findall(r"`([^`]+)`", page)) == set()


def test_the_page_of_words_is_what_their_classes_say():
    assert words.FILE.read_text(encoding="utf-8") == words.text(), "make words"
