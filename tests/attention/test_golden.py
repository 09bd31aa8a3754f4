"""Agreement with golden vectors that an independent program computed pair by pair in float64 (see their README)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.axes import Filter, Kernel, Position, Symmetry, Value

CASES = 182
KINDS = {
    "full": Filter.FULL,
    "cross": Filter.FULL,
    "causal": Filter.CAUSAL,
    "memory": Filter.CAUSAL,
    "strided": Filter.STRIDED,
    "fixed": Filter.FIXED,
}
STRIDE, SUMMARY = 3, 1
POSITIONS = {
    "none": (),
    "direct_sum": (Position.DIRECT_SUM,),
    "lookup": (Position.LOOKUP,),
    "relative": (Position.RELATIVE,),
    "product": (Position.PRODUCT,),
}
MATRICES = {"query": "W_q", "key": "W_k", "value": "W_v", "positions.product.projection": "W_T",
            "positions.relative.projection": "W_R"}  # fmt: skip
ROWS = {
    "positions.relative.u": "u",
    "positions.relative.v": "v",
    "positions.lookup.table.weight": "a_K",
    "value_function.table.weight": "a_V",
}


def kind_of(case: str) -> str:
    return case.rpartition("-")[2]


def arrays_of(archive: np.lib.npyio.NpzFile, case: str) -> dict[str, Tensor]:
    return {
        key.partition("/")[2]: torch.from_numpy(archive[key]) for key in archive.files if key.startswith(f"{case}/")
    }


def value_of(factors: dict) -> Value:
    if factors.get("value_table"):
        return Value.TABLE
    return Value.WITH_POSITION if factors["value_position"] else Value.WITHOUT_POSITION


def loaded(case: str, factors: dict, arrays: dict[str, Tensor]) -> KernelAttention:
    """The case's attention, with its matrices."""
    width, head_width = arrays["W_q"].shape
    module = KernelAttention(
        width,
        heads=1,
        head_width=head_width,
        bias=False,
        kernel=Kernel(factors["kernel"]),
        symmetry=Symmetry.SYMMETRIC if factors["symmetric"] else Symmetry.ASYMMETRIC,
        positions=POSITIONS[factors["position"]],
        value=value_of(factors),
        filter=KINDS[kind_of(case)],
        memory_length=4 if kind_of(case) == "memory" else 0,
        clip=factors["clip"],
        stride=STRIDE,
        summary=SUMMARY,
    ).double()
    state = {f"{name}.weight": arrays[matrix].T for name, matrix in MATRICES.items()}
    state |= {name: arrays[rows].unsqueeze(0) for name, rows in ROWS.items()}
    state["output.weight"] = torch.zeros(width, head_width)
    module.load_state_dict({name: state[name] for name in module.state_dict()})
    return module


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)], ids=str)
def test_golden_vectors(shared: Path, dtype: torch.dtype, tolerance: float) -> None:
    folder = shared / "golden"
    archive = np.load(folder / "attention.npz")
    cases = json.loads((folder / "attention.json").read_text())
    assert len(cases) == CASES
    for case, factors in cases.items():
        arrays = arrays_of(archive, case)
        module = loaded(case, factors, arrays).to(dtype)
        allowed = tolerance * arrays["weights"].abs().sum(-1, keepdim=True).clamp(min=1)
        inputs = [arrays[name].to(dtype).unsqueeze(0) for name in ("f_q", "f_k")]
        ways = [(inputs, {"query_positions": arrays["i_q"], "key_positions": arrays["i_k"]})]
        if kind_of(case) == "memory":
            ways.append(([inputs[0]], {"memory": inputs[1][:, :4]}))
        elif kind_of(case) == "cross":
            ways.append((inputs, {}))
        else:
            ways.append(([inputs[0]], {}))
        for arguments, where in ways:
            weights = module.weights(*arguments, **where)[0, 0]
            assert ((weights - arrays["weights"]).abs() <= allowed).all(), case
            for module.path in ("literal", "fused"):
                output = module.smooth(*arguments, **where)[0, 0]
                assert ((output - arrays["output"]).abs() <= allowed).all(), (case, module.path, where)


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
