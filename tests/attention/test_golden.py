"""Agreement with golden vectors that an independent program computed pair by pair in float64 (see their README)."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.verification.golden import module_of
from kdx.attention.verification.rounding import ROUNDINGS, condition, roundings

FILTERS = {
    "full": "full",
    "cross": "full",
    "causal": "causal",
    "memory": "causal",
    "strided": "strided",
    "fixed": "fixed",
}
"""The last word of a case's name → its filter."""
MEMORY = 4


@torch.no_grad()
def test_golden_vectors_hold_with_the_filter_and_the_memory_of_the_case(shared: Path) -> None:
    """Without their masks and positions, which `kdx verify --vectors` gives."""
    cases = json.loads((shared / "golden" / "attention.json").read_text())
    archive = np.load(shared / "golden" / "attention.npz")
    for case, factors in cases.items():
        names = [key.partition("/")[2] for key in archive.files if key.startswith(f"{case}/")]
        arrays = {name: torch.from_numpy(archive[f"{case}/{name}"]) for name in names}
        kind = case.rpartition("-")[2]
        choices = {
            "filter": FILTERS[kind],
            "memory_length": MEMORY if kind == "memory" else 0,
            "stride": 3,
            "summary": 1,
        }
        module = module_of(factors, arrays, **choices)
        visible = module.filter.visible(arrays["i_q"].unsqueeze(-1), arrays["i_k"].unsqueeze(-2))
        assert arrays["mask"].all() if visible is None else torch.equal(visible, arrays["mask"]), case

        def compute(module: KernelAttention, queries: Tensor, keys: Tensor, kind: str = kind) -> Tensor:
            if kind == "memory":
                return module.smooth(queries, memory=keys[:, :MEMORY])[0, 0]
            return module.smooth(queries, keys if kind == "cross" else None)[0, 0]

        features = [arrays[name].unsqueeze(0) for name in ("f_q", "f_k")]
        unit = condition(compute, module, *features)
        for module.path in ("literal", "fused"):
            error = roundings(compute(module, *features), arrays["output"], unit)
            assert error <= ROUNDINGS, (case, module.path)
