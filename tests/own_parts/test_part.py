"""A part is its source: what changes nothing of it leaves its hash, and nobody's paths lead out of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.own_parts.part import LARGEST, MOST_MODULES, OwnPart, absolute, are_sources, module_of, parsed

SOURCE = "class A:\n    x = 1\n"


def part(source: str = SOURCE, **sources: str) -> OwnPart:
    paths = {f"{name.replace('__', '/')}.py": text for name, text in sources.items()}
    return OwnPart("kernel", "a.py:A", "a", "A", {"a.py": source, **paths})


@pytest.mark.parametrize(
    "same", ["class A:\n\n    x = 1  # one\n", '"""A."""\nclass A:\n    """An A."""\n    x = 1\n', "class A: x = 1"]
)
def test_comments_docstrings_and_layout_leave_the_hash(same):
    assert part(same).sha256 == part().sha256


@pytest.mark.parametrize("other", ["class A:\n    x = 2\n", "class A:\n    y = 1\n", "class B:\n    x = 1\n"])
def test_a_statement_changes_the_hash_and_so_does_one_of_a_module_beside_it(other):
    assert part(other).sha256 != part().sha256
    assert part(b=other).sha256 != part(b=SOURCE).sha256 != part().sha256


def test_neither_deep_nesting_nor_a_huge_number_is_too_much():
    deep, huge = SOURCE + "y = x" + ".z" * 2500, SOURCE + f"y = 0x{'f' * 20_000}"
    assert len({part(one).sha256 for one in (deep, f"{deep}.z", huge, f"{huge}f")}) == 4


def test_it_comes_back_from_its_text():
    one = part(b="y = 'ä'\n")
    again = OwnPart.read(one.text)
    assert (again.sources, again.sha256, again.word) == (one.sources, one.sha256, "a.py:A")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"axis": 1}', "[" * 100_000])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(ValueError):
        OwnPart.read(text)


@pytest.mark.parametrize("path", ["../a.py", "/a.py", "a/../b.py", "a.txt", ".a.py", "a//b.py", "a\n.py", "~/a.py", ""])
def test_a_path_that_leads_elsewhere_is_no_source(path):
    assert not are_sources({path: SOURCE})
    plain = json.loads(part().text)
    plain["sources"][path] = SOURCE
    with pytest.raises(ValueError, match="no module has"):
        OwnPart.read(json.dumps(plain))


@given(st.text(max_size=30))
def test_no_path_of_a_source_leaves_its_folder(path):
    if are_sources({path: ""}):
        steps = path.split("/")
        assert path.endswith(".py") and ".." not in steps and "" not in steps and "\\" not in path


def test_too_much_is_refused():
    assert not are_sources({f"m{index}.py": "" for index in range(MOST_MODULES + 1)})
    assert not are_sources({"a.py": " " * (LARGEST + 1)})


def test_relative_imports_become_absolute():
    def names(text: str, path: str) -> list[str]:
        return [node.module for node in absolute(parsed(text, path), path).body]

    assert names("from .b import c\nfrom . import d\nfrom ..e import f", "p/q/a.py") == ["p.q.b", "p.q", "p.e"]
    assert names("from .b import c", "p/__init__.py") == ["p.b"]
    assert [module_of(path) for path in ("a.py", "p/a.py", "p/__init__.py")] == ["a", "p.a", "p"]


@pytest.mark.parametrize("text", ["class", "x = (" * 500, "\0"])
def test_what_is_no_python_is_a_syntax_error(text):
    with pytest.raises(SyntaxError):
        parsed(text, "a.py")


def test_it_knows_the_modules_of_kdx_that_it_imports():
    source = "from kdx.attention.kernels.rbf import RBF\nimport torch\n" + SOURCE
    assert "kdx.attention.kernels.rbf" in part(source).kdx_modules
    assert not [module for module in part(source).kdx_modules if not module.startswith("kdx.")]


def test_its_files_are_named_as_the_grid_names_them():
    one = OwnPart("kernel", "parts/a.py:A", "a", "A", {"a.py": SOURCE, "b.py": ""})
    assert [one.file("a"), one.file("b"), str(one.place("b", 3))] == ["parts/a.py", "parts/b.py", "parts/b.py:3:1"]


def test_the_class_is_made_from_the_text_and_keeps_no_trace_of_a_failure():
    assert part().load().x == 1
    with pytest.raises(ZeroDivisionError):
        part("1 / 0\n" + SOURCE).load()
    with pytest.raises(AttributeError):
        part("B = 1\n").load()
