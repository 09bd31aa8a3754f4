"""A component is its source: what changes nothing of it leaves its hash."""

import pytest

from kdx.components.component import Component

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
    assert len({component(one).sha256 for one in (deep, f"{deep}.z", huge, f"{huge}f")}) == 4


def test_it_comes_back_from_its_text():
    one = component(b="y = 'ä'\n")
    again = Component.read(one.text)
    assert (again.sources, again.sha256, again.word) == (one.sources, one.sha256, "a.py:A")


def test_it_knows_the_modules_of_kdx_that_it_imports():
    source = "from kdx.attention.kernels.rbf import RBF\nimport torch\n" + SOURCE
    assert "kdx.attention.kernels.rbf" in component(source).kdx_modules
    assert not [module for module in component(source).kdx_modules if not module.startswith("kdx.")]


def test_its_files_are_named_as_the_grid_names_them():
    one = Component("kernel", "parts/a.py:A", "A", "a.py", {"a.py": SOURCE, "b.py": ""})
    assert [one.file("a"), one.file("b"), str(one.place("b", 3))] == ["parts/a.py", "parts/b.py", "parts/b.py:3:1"]


def test_the_class_is_made_from_the_text_and_keeps_no_trace_of_a_failure():
    assert component().load().x == 1
    with pytest.raises(ZeroDivisionError):
        component("1 / 0\n" + SOURCE).load()
    with pytest.raises(AttributeError):
        component("B = 1\n").load()
