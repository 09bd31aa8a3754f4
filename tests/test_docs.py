"""What the documents name is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRUST = (ROOT / "docs" / "trust.md").read_text()


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
