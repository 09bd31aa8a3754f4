"""Modules as text: their names and their syntax trees."""

import pytest

from kdx.components.source import module_of, tree_of


def test_relative_imports_become_absolute():
    def names(text: str, path: str) -> list[str]:
        return [node.module for node in tree_of(text, path).body]

    assert names("from .b import c\nfrom . import d\nfrom ..e import f", "p/q/a.py") == ["p.q.b", "p.q", "p.e"]
    assert names("from .b import c", "p/__init__.py") == ["p.b"]
    assert [module_of(path) for path in ("a.py", "p/a.py", "p/__init__.py")] == ["a", "p.a", "p"]


@pytest.mark.parametrize("text", ["class", "x = (" * 500, "\0"])
def test_what_is_no_python_is_a_syntax_error(text):
    with pytest.raises(SyntaxError):
        tree_of(text, "a.py")
