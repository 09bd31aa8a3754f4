"""What is known of a name is what its class says, and it is known without importing the class."""

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from each import each

from kdx.attention.families import FAMILIES
from kdx.attention.kernels import KERNELS
from kdx.errors import KdxError
from kdx.grid.fields import CellFields
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.words.component import Component
from kdx.words.family import Definition
from kdx.words.literals import NOT_LITERAL, read_source
from kdx.words.option import Option, options_of

WORDS = [(family, word) for family in (*FAMILIES, DIFFICULTIES, TASKS) for word in family]
PARTS = [(family, word) for family, word in WORDS if family not in (DIFFICULTIES, TASKS)]


def place(asked):
    family, word = asked
    return f"{family.axis} {word}"


@each("asked", WORDS, told=place)
def test_a_definition_is_what_its_class_says(asked):
    family, word = asked
    known, result = family.definition(word), family[word]
    assert known.word == word
    assert result.name == word
    assert known.title and known.title == result.__doc__.partition("\n")[0].removesuffix(".")
    for field in type(known).__dataclass_fields__.keys() - {"word", "title", "options"}:
        assert getattr(known, field) == getattr(result, field), field
    assert {option.name: replace(option, title="") for option in known.options} == options_of(result)
    assert all(option.title for option in known.options)


@each("asked", PARTS, told=place)
def test_every_part_of_an_attention_has_a_formula_and_its_options_are_keys_of_a_cell(asked):
    family, word = asked
    known: Definition = family.definition(word)
    assert known.formula
    assert set(known.takes) <= CellFields.model_fields.keys()
    assert not set(known.option_names) & CellFields.model_fields.keys()


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (
            "metrics = {'loss': 'min'}",
            "`metrics` is something else than a mapping of texts to tuples (direction: max | min, scale: percent |",
        ),
        ("metrics = [1]", "`metrics` is something else than a mapping of texts to tuples (direction: max | min,"),
        (
            "metrics = {'bleu': ('max', 'percent', 'text')}",
            "class `Mine`: `metrics` lacks `loss`, by which a run is seen to diverge",
        ),
        (
            "metrics = {'loss': ('min', 'nats', 'token'), '$': ('max', 'other', 'class')}",
            "class `Mine`: metric `$` is no name of a-z, 0-9 and _",
        ),
        ("only_test = {'loss': ('min', 'nats', 'token')}", "class `Mine`: `only_test` has `loss`, which `metrics` has"),
        ("attentions = ('mine',)", "`attentions` is something else than a tuple of words of encoder-self,"),
        ("attentions = ()", "class `Mine`: `attentions` is empty"),
        ("settings = ('training.steps',)", "`settings` is something else than a tuple of words of memory,"),
        ("slicings = (('a', 'b'),)", "`slicings` is something else than a tuple of tuples (respect, title, metrics)"),
        ("slicings = (('a', 'b', ('c',)),)", "class `Mine`: `slicings` has the metric `c`, which the test has not"),
        ("head_divisor = True", "`head_divisor` is something else than a whole number"),
        ("head_divisor = 0", "class `Mine`: `head_divisor` is 0; allowed: from 1 on"),
        ("reads = 'films'", "class `Mine`: `reads` is `films`; allowed: parallel text, plain text, labelled text,"),
    ],
)
def test_what_a_task_says_is_of_its_kind_and_fits_together(fact, told):
    source = f"from kdx.training.examples.set import SetModule\nclass Mine(SetModule):\n    {fact}\n"
    with pytest.raises(KdxError) as caught:
        TASKS.define(Component("task", "mine.py:Mine", "Mine", "mine.py", {"mine.py": source}))
    assert caught.value.problem.startswith(told)
    assert caught.value.place.line == (2 if told.startswith("class") else 3)


def test_an_option_takes_what_it_says_and_gives_it_as_a_cell_holds_it():
    number, count = Option(1.0, above=0, below=2, name="x"), Option(3, minimum=0, also=("none",), name="n")
    word, share = Option("a", words=("a", "b"), name="w"), Option(1.0, above=0, maximum=1, name="s")
    even = Option(2, minimum=2, multiple_of=2, name="e")
    assert share.value(1) == 1.0 and even.value(4) == 4
    with pytest.raises(ValueError, match="e: 3; allowed: a whole number from 2 on, a multiple of 2"):
        even.value(3)
    assert (number.value(1), type(number.value(1)), count.value(0), word.value("b")) == (1.0, float, 0, "b")
    assert count.value(None) == count.value("none") == "none"
    assert [option.allowed for option in (number, count, word, share)] == [
        "a number above 0, below 2",
        "a whole number from 0 on, or none",
        "a, b",
        "a number up to 1, above 0",
    ]


@pytest.mark.parametrize(
    ("option", "given"),
    [
        (Option(1.0, above=0, name="x"), value)
        for value in (0, -1.5, "1", True, None, float("nan"), float("inf"), 2**60, [1.0])
    ]
    + [(Option(1.0, maximum=1, name="x"), value) for value in (1.01, 2)]
    + [(Option(3, minimum=1, name="x"), value) for value in (0, 1.5, 2.0, "none", 2**60)]
    + [(Option("a", words=("a", "b"), name="x"), value) for value in ("c", None, 1, ["a"])],
)
def test_an_option_refuses_everything_else(option, given):
    with pytest.raises(ValueError, match=r"^x: .*; allowed: "):
        option.value(given)


def test_an_option_is_that_of_the_nearest_class():
    """A class says of itself what its base classes say, unless it says otherwise; nothing of it is run."""
    source = (
        "from kdx.attention.kernels.rbf import RBF as Base\n"
        "raise SystemExit('run')\n"
        "class Mine(Base):\n"
        "    '''Mine.'''\n"
        "    temperature = option(3.0, above=0)\n"
        "    '''How hot\n    it is.'''\n"
    )
    known = KERNELS.define(Component("kernel", "spelled.py:Mine", "Mine", "spelled.py", {"spelled.py": source}))
    assert (known.title, known.formula) == ("Mine", KERNELS.definition("rbf").formula)
    assert known.options == (Option(3.0, above=0, name="temperature", title="How hot it is."),)


def kernel(source: str) -> Definition:
    """The definition of the class `Mine` in a source."""
    return KERNELS.define(Component("kernel", "mine.py:Mine", "Mine", "mine.py", {"mine.py": source}))


def test_of_several_base_classes_the_one_counts_that_counts_in_python():
    source = (
        "from kdx.attention.interfaces import KernelFunction\n"
        "from kdx.attention.kernels.tempered import Tempered\n"
        "class Stated(KernelFunction):\n    formula = 'stated'\n"
        "class Mine(Tempered, Stated): pass\n"
    )
    assert (kernel(source).formula, kernel(source).option_names) == ("stated", ("temperature",))


@pytest.mark.parametrize(
    ("source", "problem", "line"),
    [
        ("class Other: pass\n", "no class `Mine`", 1),
        ("class Mine: pass\n", "class `Mine` is no KernelFunction, as every kernel is", 3),
        ("class Mine(Mine): pass\n", "class `Mine` is no KernelFunction, as every kernel is", 3),
        (
            "class Mine(RBF):\n    formula = f()\n",
            "`formula` is not a literal, so it cannot be read without running the source",
            4,
        ),
        ("class Mine(RBF):\n    formula = option(1.0)\n", "`formula` is not a literal, so it cannot be read", 4),
        (
            "class Mine(RBF):\n    x = option(f())\n",
            "`x` is not a literal, so it cannot be read without running the source",
            4,
        ),
        ("class Mine(RBF):\n    x = option(1.0, above=1)\n", "option `x` does not allow its default; allowed: a", 4),
        ("class Mine(RBF):\n    x = option('a')\n", "option `x`: the default is a number, or one of the words", 4),
        ("class Mine(RBF):\n    x = option(1.0, of='a')\n", "option `x`: option() got an unexpected keyword", 4),
        ("class Mine(RBF):\n    x = option('a', words='ab')\n", "option `x`: words are a tuple of texts", 4),
        ("class Mine(RBF):\n    x = option(1, maximum='2')\n", "option `x`: minimum, maximum, above and below", 4),
        ("class Mine(RBF):\n    x = option(1, also='a')\n", "option `x`: also are a tuple of texts", 4),
        ("class Mine(RBF):\n    takes = 'norm'\n", "`takes` is something else than a tuple of texts", 4),
        ("class Mine(RBF):\n    formula = '\\x1b[2J'\n", "`formula` is something else than a text of one line", 4),
        ("class Mine(KernelFunction, RBF): pass\n", "class `Mine`: Cannot create a consistent method resolution", 3),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_line(source, problem, line):
    imports = "from kdx.attention.interfaces import KernelFunction\nfrom kdx.attention.kernels.rbf import RBF\n"
    with pytest.raises(KdxError) as caught:
        kernel(imports + source)
    assert caught.value.problem.startswith(problem)
    assert caught.value.place.line == line


@pytest.mark.parametrize("text", ["f()", "1 + x", "[f()]", "not 1", "'a' 'b'.upper()"])
def test_what_is_no_literal_is_known_as_such(text):
    classes, _ = read_source(ast.parse(f"class A:\n    x = {text}\n"), "a.py")
    assert classes["A"].assigned == {"x": NOT_LITERAL}


A_KERNEL = '''from kdx.attention.interfaces import KernelFunction


class Cauchy(KernelFunction):
    """A heavy tail."""

    name = "cauchy"
    formula = "k(q, k) = 1 / (1 + |q - k|²)"
'''


def test_a_new_kernel_is_one_file(tmp_path):
    root = Path(__file__).parents[1]
    for folder in ("kdx", "tests"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.db"))
    (tmp_path / "kdx/attention/kernels/cauchy.py").write_text(A_KERNEL)
    show = "from kdx.attention.kernels import KERNELS; print([*KERNELS][-1], KERNELS.definition('cauchy').title)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for arguments in (["-m", "tests.words_table"], ["-c", show]):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "cauchy A heavy tail\n"
