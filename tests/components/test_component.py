"""A component is its source: what changes nothing of it leaves its hash, and it is run from the text that was read."""

import pickle
import sys
import traceback
from types import ModuleType

import pytest

from kdx.words.component import Component, module_of, tree_of

SOURCE = "class A:\n    x = 1\n"


def component(source: str = SOURCE, **sources: str) -> Component:
    paths = {f"{name.replace('__', '/')}.py": text for name, text in sources.items()}
    return Component("kernel", "a.py:A", "A", "a.py", {"a.py": source, **paths})


@pytest.mark.parametrize(
    "same", ["class A:\n\n    x = 1  # one\n", '"""A."""\nclass A:\n    """An A."""\n    x = 1\n', "class A: x = 1"]
)
def test_comments_docstrings_and_layout_leave_the_hash(same):
    assert component(same).sha256 == component().sha256


@pytest.mark.parametrize("other", ["class A:\n    x = 2\n", "class A:\n    y = 1\n", "class B:\n    x = 1\n"])
def test_a_statement_changes_the_hash_and_so_does_one_of_a_module_beside_it(other):
    assert component(other).sha256 != component().sha256
    assert component(b=other).sha256 != component(b=SOURCE).sha256 != component().sha256


def test_a_file_that_is_renamed_has_the_same_hash_and_a_module_that_it_imports_has_not():
    def hashed(file: str, helper: str) -> str | None:
        return Component("kernel", f"{file}:A", "A", file, {file: SOURCE, helper: "y = 1\n"}).sha256

    assert hashed("a.py", "h.py") == hashed("b.py", "h.py") != hashed("a.py", "i.py")


def test_neither_deep_nesting_nor_a_huge_number_is_too_much():
    deep, huge = SOURCE + "y = x" + ".z" * 2500, SOURCE + f"y = 0x{'f' * 20_000}"
    assert len({component(source).sha256 for source in (deep, f"{deep}.z", huge, f"{huge}f")}) == 4


def test_it_knows_the_modules_of_kdx_that_it_imports():
    source = "from kdx.attention.kernels.rbf import RBF\nimport torch\n" + SOURCE
    assert "kdx.attention.kernels.rbf" in component(source).kdx_modules
    assert not [module for module in component(source).kdx_modules if not module.startswith("kdx.")]


def test_its_files_are_named_as_the_grid_names_them():
    one = Component("kernel", "parts/a.py:A", "A", "a.py", {"a.py": SOURCE, "b.py": ""})
    assert [one.file("a"), one.file("b"), str(one.class_place)] == ["parts/a.py", "parts/b.py", "parts/a.py:1:1"]


def test_the_class_is_made_from_the_text_and_keeps_no_trace_of_a_failure():
    assert component().load().x == 1
    with pytest.raises(ZeroDivisionError):
        component("1 / 0\n" + SOURCE).load()
    with pytest.raises(AttributeError):
        component("B = 1\n").load()


def imported(**texts: str) -> ModuleType:
    """The module `a` among these, whose names have `__` for `/`; `p__init` is the package `p`."""
    paths = {name.replace("__", "/").replace("/init", "/__init__") + ".py": text for name, text in texts.items()}
    paths["a.py"] = f"{paths['a.py']}\nclass Loaded: pass\n"
    return sys.modules[Component("kernel", "a.py:Loaded", "Loaded", "a.py", paths).load().__module__]


def test_modules_import_each_other_in_every_way():
    a = imported(
        a="import b\nfrom b import one\nimport p.c\nimport p.d as d2\nfrom p import c, d as other\n"
        "from p.c import three\ndef late():\n    import e\n    return e.five\n",
        b="one = 1",
        p__init="from .c import three\nfrom . import d",
        p__c="three = 3",
        p__d="from .c import three\nfour = three + 1",
        e="five = 5",
    )
    assert (a.one, a.b.one, a.p.c.three, a.c.three, a.other.four, a.three, a.late()) == (1, 1, 3, 3, 4, 3, 5)
    assert a.d2 is a.other


def test_a_folder_without_an_init_is_a_package_too():
    assert imported(a="import n.m\nfrom n import m\nseen = n.m.x + m.x", n__m="x = 2").seen == 4


def test_two_components_have_helpers_of_the_same_name():
    texts = ("x = 1", "x = 2")
    assert [imported(a="from helpers import x", helpers=text).x for text in texts] == [1, 2]
    assert "helpers" not in sys.modules


def test_what_is_not_among_them_comes_from_the_interpreter():
    assert imported(a="import math, os.path\nseen = math.pi, os.path.sep").seen[0] > 3
    with pytest.raises(ModuleNotFoundError, match="No module named 'nothing_of_the_kind'"):
        imported(a="import nothing_of_the_kind")


def test_a_module_that_raises_is_not_kept_and_its_lines_are_shown():
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            imported(a="import b", b="x = 1\nraise KeyError(x)  # here")
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == ("b.py", 2, "raise KeyError(x)  # here")


def test_dataclasses_and_pickled_names_find_their_module():
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n"
    )
    result = imported(a=text).A
    assert result().x == 1 and sys.modules[result.__module__].A is result
    assert pickle.loads(pickle.dumps(result(2))) == result(2)


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
