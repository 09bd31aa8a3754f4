"""What the documents name is there."""

import ast
import re
from pathlib import Path

import pytest

from tests.console_blocks import check, steps

ROOT = Path(__file__).parents[1]
TRUST = (ROOT / "docs" / "understand" / "trust.md").read_text()


def promise_tests(text: str) -> list[tuple[str, str]]:
    """(file, function) of each test that a document names."""
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)


@pytest.mark.parametrize(("file", "function"), promise_tests(TRUST), ids=[name for _, name in promise_tests(TRUST)])
def test_the_test_that_holds_a_promise_is_there(file, function):
    tree = ast.parse((ROOT / file).read_text())
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_its_test():
    promised = TRUST.partition("\n## ")[2].partition("\n## What kdx does not promise")[0]
    promises = re.findall(r"^- .*", promised, re.MULTILINE)
    assert len(promises) > 15
    assert [promise for promise in promises if not promise_tests(promise)] == []


def test_the_readme_leads_to_every_document():
    readme = (ROOT / "README.md").read_text()
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"](docs/{path.name})" not in readme] == []


BLOCKS = {path: steps(path) for path in sorted((ROOT / "docs").glob("*.md")) if steps(path)}


@pytest.mark.parametrize("path", BLOCKS, ids=[path.stem for path in BLOCKS])
def test_a_document_shows_what_happens(path, tmp_path):
    """All of its console blocks, in order, in one fresh folder."""
    for command, expected in BLOCKS[path]:
        check(command, expected, tmp_path)


def test_there_is_a_walk_through_of_a_part_of_ones_own():
    lines = re.search(r"^```console\n(.*?)^```", (ROOT / "docs" / "parts.md").read_text(), re.DOTALL | re.MULTILINE)
    assert lines is not None and ROOT / "docs" / "parts.md" in BLOCKS
