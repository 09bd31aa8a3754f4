"""Small grids that really run, and what wrong ones are refused with."""

import textwrap
from pathlib import Path

import pytest

from kdx.components.registry import know
from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.words.component import Component

TINY = """
name: tiny
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: %(steps)s, batch_tokens: 300, warmup: 5, validate_every: 20, learning_rate: 1e-2}
select: {metric: loss}
seeds: %(seeds)s
"""

# One cell learns, one no machine has the memory for, one leaves all bounds.
MIXED = """
name: mixed
task: prediction
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 30, batch_tokens: 512, length: 32, warmup: 5, validate_every: 10, learning_rate: 1e-2}
approaches:
  learns: {position: product}
  fails: {position: lookup, clip: 1000000000000}
  diverges: {training: {learning_rate: 1.0e+30, clip: null}}
"""

# The cell of TINY under another name, beside one that no machine has the memory for.
FAILING = """
extends: tiny.yaml
name: failing
approaches:
  learns: {}
  fails: {position: lookup, clip: 1000000000000}
"""

# Long enough to be stopped several times.
LONG = """
name: long one
task: prediction
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 800, batch_tokens: 256, length: 32, warmup: 5, validate_every: 800}
seeds: 2
"""

PLANTED = """\
name: planted
task: translation
data: {corpus: synthetic-translation}
kernel: rfb
model: {width: 65}
training: {steps: no}
"""


def written(folder: Path, text: str, name: str = "grid.yaml") -> Path:
    """A grid in a file."""
    file = folder / name
    file.write_text(textwrap.dedent(text))
    return file


def faults_of(folder: Path, text: str, **options) -> list[str]:
    """What the grid is refused with, in the order of its places; paths are those below the folder."""
    with pytest.raises(Faults) as refusal:
        load_grid(written(folder, text), **options)
    return [str(fault).replace(f"{folder}/", "") for fault in refusal.value.faults]


def recorded(axis: str, word: str, source: str) -> str:
    """Make a component known as a database does that has it; return the hash of its source.

    Args:
        word: FILE.py:Class; or the name of a package's class, which is the name with a capital.
    """
    path, _, name = word.rpartition(":")
    component = Component(axis, word, name.capitalize(), path or "a.py", {path or "a.py": source}, recorded=True)
    know([component])
    return component.sha256


TSALLIS = """
from kdx.attention.interfaces import KernelFunction
from kdx.words import option


class Tsallis(KernelFunction):
    formula = "k"
    gives = "weight"
    power: float = option(0.5, above=0, %s)
"""
"""A kernel whose option has further bounds."""
