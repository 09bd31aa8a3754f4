"""A component becomes a word like any other, unless it is none."""

import pytest

from kdx.attention.kernels import KERNELS
from kdx.components.find import find
from kdx.components.registry import add, at_hand, components_of, take, texts_of
from kdx.errors import KdxError
from kdx.grid.words import known_options
from kdx.words.component import Component


def made(source: str, axis: str = "kernel", word: str = "a.py:A") -> Component:
    return Component(axis, word, "A", "a.py", {"a.py": source})


KERNEL = "from kdx.attention.interfaces import KernelFunction\nfrom kdx.words.family import option\n"


def test_a_component_is_a_word_with_its_options(own_kernel):
    component = find("kernel", "my_kernels.py:Cauchy", own_kernel)
    assert "bandwidth" not in known_options() and component.word not in KERNELS
    add(component)
    assert known_options()["bandwidth"].title == "b, in units of a feature."
    assert KERNELS[component.word].__name__ == "Cauchy" and list(KERNELS)[-1] == component.word
    assert KERNELS.modules(component.word) == component.kdx_modules


def test_a_later_source_of_the_same_word_takes_the_place_of_the_earlier(own_kernel):
    add(find("kernel", "my_kernels.py:Cauchy", own_kernel))
    first = KERNELS["my_kernels.py:Cauchy"]
    (own_kernel / "helpers.py").write_text("def squared_distance(query, key):\n    return 0\n")
    add(find("kernel", "my_kernels.py:Cauchy", own_kernel))
    assert KERNELS["my_kernels.py:Cauchy"] is not first and len(list(at_hand())) == 1


def test_it_goes_to_another_process_as_text(own_kernel):
    component = find("kernel", "my_kernels.py:Cauchy", own_kernel)
    add(component)
    hashes = {component.word: component.sha256, "other.py:A": "0" * 64}
    assert components_of(hashes) == (component,) and components_of({component.word: "0" * 64}) == ()
    take(texts_of(hashes))
    assert components_of(hashes)[0].sha256 == component.sha256


@pytest.mark.parametrize(
    ("source", "place", "problem"),
    [
        ("class B: pass\n", "a.py:1:1", "no class `A`\n  allowed: B"),
        ("\nfrom kdx.attention.filters.causal import Causal as B\nclass A(B): pass\n", "a.py:3:1", "no KernelFunction"),
        (
            "import kdx.attention.interfaces as i\nclass A(i.KernelFunction): pass\n",
            "a.py:2:1",
            "hint: base classes are read by their names: from kdx.attention.interfaces import KernelFunction",
        ),
        (
            KERNEL + "class A(KernelFunction):\n    temperature = option(9.0)\n",
            "a.py:3:1",
            "option `temperature` of `a.py:A` differs from that of `exponential`",
        ),
        (
            "from kdx.attention.interfaces import NormaliserFunction\nclass A(NormaliserFunction): pass\n",
            "a.py:2:1",
            "class `A` is no KernelFunction",
        ),
    ],
)
def test_what_is_no_part_of_its_axis_is_reported_at_its_line(components, source, place, problem):
    with pytest.raises(KdxError) as caught:
        add(made(source))
    assert str(caught.value.place) == place and problem in str(caught.value)
    assert not list(at_hand())


def test_what_every_word_of_an_axis_says_is_said(components):
    source = "from kdx.attention.interfaces import NormaliserFunction\nclass A(NormaliserFunction): pass\n"
    with pytest.raises(KdxError, match=r"a\.py:2:1: class `A` lacks `cancels`"):
        add(made(source, axis="normaliser"))


def test_a_word_of_kdx_is_taken(components):
    with pytest.raises(KdxError, match="kdx itself has a kernel `rbf`"):
        add(made(KERNEL + "class A(KernelFunction): pass\n", word="rbf"))
    for word, axis in (("rotary", "position"), ("copy", "corpus")):
        with pytest.raises(KdxError, match=f"kdx itself has a {axis} `{word}`"):
            add(made(KERNEL + "class A(KernelFunction): pass\n", word=word))


def test_it_may_be_a_variant_of_a_word_of_kdx_with_its_options(components):
    add(made("from kdx.attention.kernels.rbf import RBF\nclass A(RBF):\n    formula = 'mine'\n"))
    known = KERNELS.definition("a.py:A")
    assert (known.formula, known.options) == ("mine", KERNELS.definition("rbf").options)
