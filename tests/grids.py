"""Small grids that really run, and what wrong ones are refused with."""

import copy
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from kdx.components.registry import know
from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
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


def cell(task: str = "translation", **settings: Any) -> CellSpec:
    """A cell of a task, of some text."""
    if task == "prediction":
        settings = {"training": {"batch_tokens": 1280}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


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


GOOD: dict[str, Any] = {
    "name": "good",
    "description": "Everything that a grid can say",
    "seeds": [0, 7],
    "tasks": {
        "translation": {"data": {"corpus": "synthetic-translation", "vocabulary": "bpe", "vocabulary_size": 300}},
        "prediction": {"data": {"corpus": "synthetic-language"}, "training": {"batch_tokens": 1024, "length": 64}},
    },
    "model": {"width": 64, "heads": 4, "dropout": 0.1},
    "training": {"steps": 10, "betas": [0.9, 0.98], "clip": None, "learning_rate": 1e-3},
    "filter": {"encoder-self": "causal"},
    "select": {"metric": "loss", "direction": "min"},
    "approaches": {
        "None": {"position": "none"},
        "Eq. 9": {"position": ["product"], "placement": ["decoder-self"], "symmetry": "symmetric"},
    },
    "axes": {"kernel": ["exponential", "rbf"], "training.warmup": [0, 5]},
    "tables": [{"name": "t", "caption": "c", "rows": ["approach", "kernel"], "columns": ["task", "training.warmup"]}],
}
WORDS = ["none", "full", "rbf", "direct-sum", "test/bleu", "valid/loss", "word", "bpe", "null", "../..", "a b", "", "×"]
TROUBLE = ["\x1b[2J", "\u202e", "\x00", "\ud7ff", "\U0001f600" * 40, "{problem} %s {0}", "!tag", "*alias", "&x", "\n\n"]


def deep(levels: int) -> Any:
    value: Any = "end"
    for level in range(levels):
        value = [value] if level % 2 else {"inner": value}
    return value


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(WORDS + TROUBLE),
    st.text(max_size=20),
)
wild = st.one_of(
    scalars,
    st.sampled_from([deep(10), deep(60), {}, [], [[]], [{}], ["rbf"] * 3]),
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
).map(copy.deepcopy)  # what is drawn is changed later


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for step, inner in pairs for found in ((*path, step), *places(inner, (*path, step)))]


@st.composite
def any_grid(draw: st.DrawFn) -> str:
    """A good grid with one to three things changed, removed or added, and perhaps a few characters of it."""
    grid = copy.deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        found = places(grid)
        if not found:
            break
        *path, last = draw(st.sampled_from(found))
        inner: Any = grid
        for step in path:
            inner = inner[step]
        match draw(st.sampled_from(["change", "change", "remove", "add"])):
            case "change":
                inner[last] = draw(wild)
            case "remove":
                del inner[last]
            case "add" if isinstance(inner, dict):
                inner[draw(st.sampled_from([*WORDS, *TROUBLE, "task", "extends", "kernel"]))] = draw(wild)
            case "add":
                inner.append(draw(wild))
    text = yaml.safe_dump(grid, allow_unicode=draw(st.booleans()), sort_keys=False)
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from([*TROUBLE, ":", "[", "}", "- ", "  ", "\t", "? ", "'"])) + text[at:]
    return text
