"""An outline has the literals of a source as Python has them, also after it was kept as JSON."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.outline import ClassOutline, NoLiteral, OptionCall, outline, read

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
LITERALS = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(SIMPLE | st.tuples(SIMPLE, SIMPLE), inner, max_size=4)
    ),
    max_leaves=8,
)


def class_in(body: str, head: str = "class A:") -> ClassOutline:
    source = head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return outline(json.loads(json.dumps(read(ast.parse(source))))).classes["A"]


@given(LITERALS)
def test_a_literal_is_what_it_is_in_python(value):
    (found,) = class_in(f"x = {value!r}").assigned
    assert (found.name, found.line, repr(found.value)) == ("x", 2, repr(value))


@pytest.mark.parametrize("text", ["f()", "1 + x", "[f()]", "not 1", "'a' 'b'.upper()"])
def test_what_is_no_literal_is_known_by_its_line(text):
    (found,) = class_in(f"x = {text}").assigned
    assert found.value == NoLiteral(2)


@pytest.mark.parametrize("text", ["b'a'", "{1, 2}", "1j", "..."])
def test_a_literal_of_a_kind_that_no_definition_has_equals_none_that_one_has(text):
    (found,) = class_in(f"x = {text}").assigned
    assert not isinstance(found.value, str | int | float | tuple | list | dict | None)


def test_an_option_has_its_arguments_and_the_text_below_it():
    (found,) = class_in("x: float = option(1.0, above=f(),\n    none=True)\n'''How hot\nit is.'''").assigned
    assert found.value == OptionCall([1.0], {"above": NoLiteral(2), "none": True}, "How hot it is.")


def test_a_class_has_its_line_its_bases_and_the_first_line_of_its_docstring():
    found = class_in("'''Mine.\n\nAnd more.'''\nx = 1\nx = 2\ny: int\na.b = 3", "import z\nclass A(B, c.D, C):")
    assert (found.name, found.line, found.bases, found.title) == ("A", 2, ["B", "C"], "Mine")
    assert [(one.name, one.value) for one in found.assigned] == [("x", 1), ("x", 2)]


def test_imports_are_known_by_the_names_that_they_have_here():
    source = "from a import b\nfrom c.d import e as f\nimport g\ndef h():\n    from i import j\nfrom . import k\n"
    assert outline(read(ast.parse(source))).imports == {"b": ("a", "b"), "f": ("c.d", "e"), "j": ("i", "j")}


def test_of_two_classes_of_one_name_the_last_counts():
    found = outline(read(ast.parse("class A:\n    x = 1\nclass A:\n    x = 2\n"))).classes["A"]
    assert [one.value for one in found.assigned] == [2]
