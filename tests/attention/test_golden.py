"""Agreement with golden vectors that an independent program computed pair by pair in float64 (see their README)."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.verification.golden import module_of
from kdx.attention.verification.rounding import ROUNDINGS, condition, roundings

CASES = 182
KINDS = {
    "full": "full",
    "cross": "full",
    "causal": "causal",
    "memory": "causal",
    "strided": "strided",
    "fixed": "fixed",
}
STRIDE, SUMMARY = 3, 1


def kind_of(case: str) -> str:
    return case.rpartition("-")[2]


def arrays_of(archive: np.lib.npyio.NpzFile, case: str) -> dict[str, Tensor]:
    return {
        key.partition("/")[2]: torch.from_numpy(archive[key]) for key in archive.files if key.startswith(f"{case}/")
    }


def loaded(case: str, factors: dict, arrays: dict[str, Tensor]) -> KernelAttention:
    """The case's attention, with its matrices, its filter and its memory."""
    memory_length = 4 if kind_of(case) == "memory" else 0
    filter = KINDS[kind_of(case)]
    return module_of(factors, arrays, filter=filter, memory_length=memory_length, stride=STRIDE, summary=SUMMARY)


@torch.no_grad()
def test_golden_vectors(shared: Path) -> None:
    folder = shared / "golden"
    archive = np.load(folder / "attention.npz")
    cases = json.loads((folder / "attention.json").read_text())
    assert len(cases) == CASES
    for case, factors in cases.items():
        arrays = arrays_of(archive, case)
        formats = {dtype: loaded(case, factors, arrays).to(dtype) for dtype in (torch.float64, torch.float32)}
        queries, keys = (arrays[name].unsqueeze(0) for name in ("f_q", "f_k"))
        both = {"query_positions": arrays["i_q"], "key_positions": arrays["i_k"]}
        ways = [lambda run, queries, keys, both=both: run(queries, keys, **both)]
        if kind_of(case) == "memory":
            ways.append(lambda run, queries, keys: run(queries, memory=keys[:, :4]))
        elif kind_of(case) == "cross":
            ways.append(lambda run, queries, keys: run(queries, keys))
        else:
            ways.append(lambda run, queries, keys: run(queries))
        for way in ways:
            for result in ("weights", "smooth"):

                def compute(module: KernelAttention, *features: Tensor, way=way, result=result) -> Tensor:
                    return way(getattr(module, result), *features)[0, 0]

                expected = arrays["weights" if result == "weights" else "output"]
                unit = condition(compute, formats[torch.float64], queries, keys)
                for dtype, module in formats.items():
                    for module.path in ("literal", "fused") if result == "smooth" else ("literal",):
                        found = compute(module, queries.to(dtype), keys.to(dtype))
                        assert roundings(found, expected, unit) <= ROUNDINGS, (case, result, dtype, module.path)


def test_golden_masks_are_those_of_the_filters(shared: Path) -> None:
    archive = np.load(shared / "golden" / "attention.npz")
    for key in archive.files:
        case, _, name = key.partition("/")
        if name == "mask":
            query, key_ = (torch.from_numpy(archive[f"{case}/{i}"]) for i in ("i_q", "i_k"))
            module = KernelAttention(2, 1, filter=KINDS[kind_of(case)], stride=STRIDE, summary=SUMMARY)
            visible = module.filter.visible(query.unsqueeze(-1), key_.unsqueeze(-2))
            expected = torch.from_numpy(archive[key])
            assert expected.all() if visible is None else torch.equal(visible, expected), case
