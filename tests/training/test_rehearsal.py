"""A component is rehearsed in a child process, on an attention and a corpus of a cell."""

from dataclasses import astuple

import pytest

from kdx.components.apart import ask_apart
from kdx.components.registry import components_of
from kdx.errors import KdxError, Place
from kdx.grid.load import load_grid

ENDLESS = """import faulthandler, sys
        faulthandler.dump_traceback_later(1, exit=True, file=sys.__stderr__)
        while True:
            pass
        """
"""It has no end; of its time, a second is left."""


def tried(folder) -> dict:
    """The problem and the place of the fault in the components of a grid; empty if there is none."""
    specs = [cell.spec for cell in load_grid(folder / "grid.yaml").cells]
    components = {component.word: component for spec in specs for component in components_of(spec.components)}
    cells = [spec.text for spec in specs]
    try:
        ask_apart("kdx.training.rehearsal", components.values(), {"cells": cells}, within=120, limit=300)
    except KdxError as fault:
        place = list(astuple(fault.place)) if isinstance(fault.place, Place) else fault.place
        return {"problem": fault.problem, "place": place}
    return {}


@pytest.mark.slow
def test_a_part_that_works_has_no_fault_whatever_it_prints(own_kernel):
    file = own_kernel / "my_kernels.py"
    file.write_text("print('{}')\n" + file.read_text())
    assert tried(own_kernel) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("return 1 / (1 +", "return (1 +", None, None),
        ("return 1 / (1 +", "return absent / (1 +", 18, "NameError: name 'absent' is not defined"),
        (
            "return 1 / (1 +",
            f"{ENDLESS}return 1 / (1 +",
            21,
            "does not come to an end",
        ),
        ('gives = "weight"', "", None, "its class says that it gives a logarithm, and weight gives numbers"),
        ('"""Kernels of one\'s own."""', "raise SystemExit(1)", 1, "SystemExit"),
        ("return 1 /", "return query.mean(-1) /", None, "fails: "),
    ],
)
def test_a_fault_is_told_at_its_line(own_kernel, old, new, line, problem):
    file = own_kernel / "my_kernels.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    fault = tried(own_kernel)
    if problem is None:
        assert fault == {}
    else:
        assert problem in fault["problem"]
        assert line is None or fault["place"][0] == "my_kernels.py"
        assert line is None or abs(fault["place"][1] - line) <= 1  # of a loop, either of its lines


@pytest.mark.slow
def test_a_kernel_that_extends_one_with_a_map_of_its_own_is_tried_on_heads(own_kernel):
    (own_kernel / "mine.py").write_text("from kdx.attention.kernels.favor import FAVOR\nclass Mine(FAVOR): pass\n")
    grid = "task: answer\ndata: {corpus: copy}\nkernel: mine.py:Mine\nmodel: {width: 16, heads: 2}\n"
    for maps in ("", "maps: differential\n"):
        (own_kernel / "grid.yaml").write_text(grid + maps)
        assert tried(own_kernel) == {}


@pytest.mark.slow
def test_an_attention_of_any_space_is_tried(own_kernel):
    (own_kernel / "mine.py").write_text(
        "from kdx.attention.interfaces import KernelFunction\n"
        "class Mine(KernelFunction):\n"
        "    def log_weight(self, query, key):\n"
        "        return (query - query.mean(0, keepdim=True)) @ key.transpose(-2, -1)\n"
    )
    grid = "task: graph\ndata: {corpus: relation}\nkernel: mine.py:Mine\nmodel: {width: 16, heads: 2}\n"
    (own_kernel / "grid.yaml").write_text(grid)
    assert "depends on the other rows of the batch" in tried(own_kernel)["problem"]


@pytest.mark.slow
def test_a_corpus_is_asked_for_an_example(own_kernel):
    (own_kernel / "twice.py").write_text(
        "from kdx.data.corpora.copy import Copy\n"
        "class Twice(Copy):\n    def draw(self, random):\n        return 1 / 0\n"
    )
    (own_kernel / "grid.yaml").write_text("task: answer\ndata: {corpus: 'twice.py:Twice'}\n")
    assert tried(own_kernel)["place"] == ["twice.py", 4, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "problem"),
    [
        ("torch.set_default_dtype(torch.float64)", "when it is imported, its default dtype"),
        ("torch.set_num_threads(2)", "when it is imported, its number of threads from 1 to 2"),
        ("torch.use_deterministic_algorithms(False)", "when it is imported, its deterministic algorithms"),
        ("TABLE = torch.rand(3)", "it draws from torch's random numbers when it is imported"),
    ],
)
def test_a_part_that_changes_torch_is_refused(own_kernel, before, problem):
    file = own_kernel / "my_kernels.py"
    file.write_text(f"import torch\n\n{before}\n{file.read_text()}")
    fault = tried(own_kernel)
    assert problem in fault["problem"] and fault["place"][:2] == ["my_kernels.py", 13]
