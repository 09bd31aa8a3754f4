"""A part is tried in a process of its own, on an attention and a corpus of a cell."""

import json
import subprocess
import sys

import pytest

from kdx.grid.identity import canonical
from kdx.grid.load import load_grid
from kdx.own_parts.registry import texts_of


def tried(folder, within: int = 20) -> dict:
    specs = [cell.spec for cell in load_grid(folder / "grid.yaml").cells]
    parts = [text for spec in specs for text in texts_of(spec.parts)]
    asked = {"parts": parts, "cells": [canonical(spec) for spec in specs], "within": within}
    done = subprocess.run(
        [sys.executable, "-m", "kdx.training.trial"], input=json.dumps(asked), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_part_that_works_has_no_fault_whatever_it_prints(own_kernel):
    file = own_kernel / "my_kernels.py"
    file.write_text("print('{}')\n" + file.read_text())
    assert tried(own_kernel) == {}


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("return 1 / (1 +", "return (1 +", None, None),
        ("return 1 / (1 +", "return absent / (1 +", 18, "NameError: name 'absent' is not defined"),
        ("return 1 / (1 +", "while True:\n            pass\n        return 1 / (1 +", 19, "does not come to an end"),
        ('gives = "weight"', "", None, "its class says that it gives a logarithm, and weight gives numbers"),
        ('"""Kernels of one\'s own."""', "raise SystemExit(1)", 1, "SystemExit"),
        ("return 1 /", "return query.mean(-1) /", None, "fails: "),
    ],
)
def test_a_fault_is_told_at_its_line(own_kernel, old, new, line, problem):
    file = own_kernel / "my_kernels.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    fault = tried(own_kernel, within=3)
    if problem is None:
        assert fault == {}
    else:
        assert problem in fault["problem"]
        assert line is None or fault["place"][0] == "my_kernels.py"
        assert line is None or abs(fault["place"][1] - line) <= 1  # of a loop, either of its lines


@pytest.mark.parametrize("kernel", ["favor", "hedgehog", "cosformer"])
def test_a_kernel_of_kdx_beside_a_part_is_not_the_part_that_is_tried(own_kernel, kernel):
    (own_kernel / "mine.py").write_text("from kdx.data.corpora.copy import Copy\nclass Mine(Copy): pass\n")
    (own_kernel / "grid.yaml").write_text(
        f"task: answer\nkernel: {kernel}\nmodel: {{width: 16, heads: 2, decoder_layers: 1}}\n"
        "data: {corpus: 'mine.py:Mine'}\n"
    )
    assert tried(own_kernel) == {}


def test_a_kernel_that_extends_one_with_a_map_of_its_own_is_tried_on_heads(own_kernel):
    (own_kernel / "mine.py").write_text("from kdx.attention.kernels.favor import FAVOR\nclass Mine(FAVOR): pass\n")
    grid = "task: answer\ndata: {corpus: copy}\nkernel: mine.py:Mine\nmodel: {width: 16, heads: 2}\n"
    for maps in ("", "maps: differential\n"):
        (own_kernel / "grid.yaml").write_text(grid + maps)
        assert tried(own_kernel) == {}


def test_a_corpus_is_asked_for_an_example(own_kernel):
    (own_kernel / "twice.py").write_text(
        "from kdx.data.corpora.copy import Copy\n"
        "class Twice(Copy):\n    def draw(self, random):\n        return 1 / 0\n"
    )
    (own_kernel / "grid.yaml").write_text("task: answer\ndata: {corpus: 'twice.py:Twice'}\n")
    assert tried(own_kernel)["place"] == ["twice.py", 4, 1]
