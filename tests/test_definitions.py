"""What is known of a word is what its class says, and it is told without importing the class."""

import subprocess
import sys

import pytest

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.definitions import Definition
from kdx.grid.fields import CellFields

FAMILIES = (KERNELS, POSITIONS, VALUES, FILTERS, NORMALISERS, ENCODINGS, MIXERS)
WORDS = [pytest.param(family, word, id=f"{family.axis} {word}") for family in FAMILIES for word in family]


@pytest.mark.parametrize(("family", "word"), WORDS)
def test_what_is_told_of_a_word_is_what_its_class_says(family, word):
    known, found = family.definition(word), family[word]
    assert known.word == word
    assert known.title and known.title == found.__doc__.partition("\n")[0].removesuffix(".")
    for field in type(known).__dataclass_fields__.keys() - {"word", "title"}:
        assert getattr(known, field) == getattr(found, field), field


@pytest.mark.parametrize(("family", "word"), WORDS)
def test_every_word_has_a_formula_and_its_options_are_keys_of_a_cell(family, word):
    known: Definition = family.definition(word)
    assert known.formula
    assert set(known.options) <= CellFields.model_fields.keys()


def test_definitions_are_read_without_torch_and_without_running_the_class(tmp_path):
    script = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from kdx.attention.kernels import KERNELS\n"
        "print([known.formula for known in KERNELS.definitions()][3], 'kdx.attention.kernels.rbf' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "k(q, k) = exp(-|q - k|² / T√D) False\n", done.stderr


def test_a_word_of_no_family_has_no_definition():
    with pytest.raises(KeyError):
        KERNELS.definition("cauchy")
    assert "cauchy" not in KERNELS and "rbf" in KERNELS
