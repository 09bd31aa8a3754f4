"""Every benchmark runs, at a size that tells nothing of speed: what it asks of kdx must be there."""

import importlib.machinery
import math
import sys
import tarfile
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.benchmarks import (
    attention,
    decoding,
    looking,
    overhead,
    peers,
    planning,
    report,
    run_cost,
    scale,
    searching,
    startup,
    text,
    throughput,
)
from tests.benchmarks.__main__ import PARTS
from tests.benchmarks.orchestration.__main__ import TOOLS
from tests.benchmarks.orchestration.__main__ import measure as compare

pytestmark = pytest.mark.slow

SHORT_GRID = """
preset: prediction-mini
data: {corpus: synthetic-language, train_lines: 500}
model: {width: 32, heads: 2, decoder_layers: 1, inner: 32}
"""
ONE_RUN_AN_APPROACH = (
    report.GRID.replace("kernel: [linear, polynomial, exponential, rbf, cosine]", "kernel: [rbf]")
    .replace("symmetry: [asymmetric, symmetric]", "symmetry: [symmetric]")
    .replace("norm: [post, pre]", "norm: [post]")
)
# Part → its module, and what makes it small.
SMALL: dict[str, tuple[ModuleType, dict[str, Any]]] = {
    "startup": (startup, {"ROUNDS": 1}),
    "planning": (planning, {"ROUNDS": 1, "LIMIT": 100.0}),
    "run_cost": (run_cost, {"RUNS": 2}),
    "attention": (
        attention,
        {
            "WIDTH": 16,
            "HEADS": 2,
            "SHORT": 16,
            "MIDDLE": 16,
            "LONG": 32,
            "LENGTHS": (4, 8),
            "ROUNDS": 1,
            "LINEAR_IN_MEMORY": ["rbf", "lookup", "linear"],
        },
    ),
    "peers": (
        peers,
        {"WIDTH": 16, "HEADS": 2, "SHORT": 16, "XL_WIDTH": 16, "XL_HEADS": 2, "XL_LENGTHS": (5,), "ROUNDS": 1},
    ),
    "throughput": (throughput, {"WARM": 1, "STEPS": 1, "ROUNDS": 1, "PAIRS": 400, "STREAM": 10_000}),
    "text": (text, {"TOKENS": 500, "DISTINCT": 50, "HELD_OUT": {"valid": 100, "test": 100}, "BATCHED": (50,)}),
    "decoding": (decoding, {"BEAMS": (1, 2), "SENTENCES": 4, "ALONE": 2, "ROUNDS": 1}),
    "overhead": (overhead, {"BLOCK": 1, "WARM": 1, "STEPS": 4, "CALLS": 10, "GRIDS": {"prediction": SHORT_GRID}}),
    "report": (
        report,
        {
            "GRID": ONE_RUN_AN_APPROACH,
            "CELLS": 5,
            "SEEDS": 2,
            "ROWS": 20,
            "ROUNDS": 1,
            "MANY_SEEDS": 3,
            "FEW_ROWS": 20,
        },
    ),
    "looking": (
        looking,
        {
            "STEPS": 1,
            "WIDTHS": 1,
            "SEEDS": 2,
            "SWEEPS": 2,
            "SEEDS_OF_OTHERS": 2,
            "ROWS": 20,
            "ROUNDS": 1,
            "COMMANDS": {
                "help": ["--help"],
                "plan": ["plan", "large.yaml", "--seeds", "1"],
                "status": ["status"],
                "show": ["show", "5"],
                "diff": ["diff", "1", "2"],
            },
            "COMPLETIONS": {"sweeps": ["status", ""]},
        },
    ),
    "searching": (searching, {"SEARCHES": 2, "TRIALS": 6}),
    "scale": (
        scale,
        {
            "WORKERS": (4,),
            "ROUNDS": 1,
            "WARM": 1.0,
            "SECONDS": 2.0,
            "ENDS": 4.0,
            "ALONE": 2,
            "RATES": (20,),
            "RATED_WORKERS": 2,
            "RATED_SECONDS": 1.0,
            "PROCESSES": 2,
        },
    ),
}
STAGES = {"text": "real_text", "peers": "stand_ins", "overhead": "data_home", "run_cost": "data_home"}


def test_every_part_has_a_small_size():
    assert SMALL.keys() == PARTS.keys()


SLOW = ("run_cost", "scale")
"""Parts that start so many processes that even the small ones take long."""


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part in SLOW else []) for part in SMALL]
)
def test_a_part_measures(part, monkeypatch, request):
    if part in STAGES:
        request.getfixturevalue(STAGES[part])
    module, sizes = SMALL[part]
    for name, size in sizes.items():
        monkeypatch.setattr(module, name, size)
    found = numbers(PARTS[part]())
    assert found and all(map(math.isfinite, found))


def numbers(found: Any) -> list[float]:
    """All that was measured; every part of it was."""
    if isinstance(found, dict):
        return [number for one in found.values() for number in numbers(one)]
    if isinstance(found, list):
        return [number for one in found for number in numbers(one)]
    assert not isinstance(found, str), found
    return [] if found is None else [float(found)]


@pytest.fixture
def real_text(tmp_path, monkeypatch) -> None:
    """The archive of pairs that the benchmark makes more of."""
    folder = tmp_path / "data"
    folder.mkdir()
    with tarfile.open(folder / "iwslt14.tar.xz", "w:xz") as archive:
        for split in ("train", "valid", "test"):
            for suffix, words in {"de": "ein kleines Haus steht dort", "en": "a small house stands there"}.items():
                path = tmp_path / f"{split}.{suffix}"
                path.write_text(f"{words}\n" * 5)
                archive.add(path, f"iwslt14/{path.name}")
    monkeypatch.setenv("KDX_SHARED", str(tmp_path))
    # Set by the benchmark, and again what it was after this test.
    monkeypatch.setenv("KDX_DATA", str(tmp_path / "home"))


@pytest.fixture
def stand_ins(tmp_path, monkeypatch) -> None:
    """Modules with as much of the peers as is asked of them."""
    monkeypatch.setenv("KDX_TRANSFORMER_XL", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("proj_adaptive_softmax", "log_uniform_sampler"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    kept = {
        "mem_transformer": [PositionalEmbedding, RelPartialLearnableMultiHeadAttn],
        "x_transformers": [],
        "x_transformers.x_transformers": [Attention, AlibiPositionalBias, RelativePositionBias, RotaryEmbedding],
    }
    for name, classes in kept.items():
        module = ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update({one.__name__: one for one in classes})
        monkeypatch.setitem(sys.modules, name, module)


class PositionalEmbedding(nn.Module):
    """All sines, then all cosines: integers (T,) to (T, 1, M)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, distances: Tensor) -> Tensor:
        angles = distances[:, None] * 10_000 ** -(torch.arange(0, self.width, 2) / self.width)
        return torch.cat([angles.sin(), angles.cos()], -1)[:, None]


class RelPartialLearnableMultiHeadAttn(nn.Module):
    """Eq. (A) to (D) of Dai et al. 2019, distance by distance, the batch in the second place."""

    def __init__(self, heads: int, width: int, head_width: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv_net = nn.Linear(width, 3 * heads * head_width, bias=False)
        self.r_net = nn.Linear(width, heads * head_width, bias=False)
        self.o_net = nn.Linear(heads * head_width, width, bias=False)
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, distances: Tensor, u: Tensor, v: Tensor, hidden: Tensor, memory: Tensor) -> Tensor:
        tokens = torch.cat([memory, x])
        query, key, value = (part.unflatten(-1, (self.heads, -1)) for part in self.qkv_net(tokens).chunk(3, -1))
        relative = self.r_net(distances)[:, 0].unflatten(-1, (self.heads, -1))
        query = query[len(memory) :]
        # The last of `distances` is 0, of a token to itself; what is beyond comes later, and is hidden.
        away = len(memory) + torch.arange(len(x))[:, None] - torch.arange(len(tokens))
        of_pairs = relative[(len(distances) - 1 - away).clamp(max=len(distances) - 1)]
        weights = torch.einsum("ibhd,jbhd->ijbh", query + u, key) + torch.einsum("ibhd,ijhd->ijbh", query + v, of_pairs)
        weights = (weights / query.size(-1) ** 0.5).masked_fill(hidden[..., None], -math.inf).softmax(1)
        found = torch.einsum("ijbh,jbhd->ibhd", weights, value).flatten(2)
        return self.layer_norm(x + self.o_net(found))


class Attention(nn.Linear):
    def __init__(self, width: int, heads: int, dim_head: int, **arguments: bool) -> None:
        super().__init__(width, width)

    def forward(self, x: Tensor, rel_pos: nn.Module | None, rotary_pos_emb: Tensor | None) -> Tensor:
        return super().forward(x)


class AlibiPositionalBias(nn.Module):
    def __init__(self, heads: int) -> None:
        super().__init__()


class RelativePositionBias(nn.Module):
    def __init__(self, scale: float, causal: bool, heads: int) -> None:
        super().__init__()


class RotaryEmbedding(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

    def forward_from_seq_len(self, length: int) -> Tensor:
        return torch.zeros(length)


def test_kdx_is_compared_with_a_loop(data_home):
    tools = tuple(tool for tool in TOOLS if tool.name in ("loop in one process", "kdx, one worker"))
    table = compare(tools, runs=2, rounds=1)
    by_tool = {line.split(" | ")[0].strip("| "): line.split(" | ")[3:6] for line in table.splitlines()[2:4]}
    # The loop begins anew; kdx has both results without a run more than it was killed in.
    assert by_tool["loop in one process"][1] == "2"
    assert by_tool["kdx, one worker"][1] in ("0", "1") and by_tool["kdx, one worker"][2] == "2"
