"""What sources say of factors is what the declarations themselves say."""

import subprocess
import sys

from kdx.grid.cell_selector import _words, factors
from kdx.grid.factor_words import factor_words


def test_factors_and_their_words_are_those_of_the_declarations():
    assert {name: set(words) for name, words in factor_words().items()} == {
        name: set(_words(name)) for name in factors()
    }
    assert "rbf" in factor_words()["kernel"] and factor_words()["training.steps"] == ()


def test_they_are_read_without_pydantic():
    script = "import sys, kdx.grid.factor_words as read; read.factor_words(); assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
