"""Agreement with golden vectors that an independent program computed pair by pair in float64 (see their README)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.axes import Filter, Kernel, Position, Symmetry, Value

KINDS = {"full": Filter.FULL, "cross": Filter.FULL, "causal": Filter.CAUSAL, "memory": Filter.CAUSAL}
POSITIONS = {"none": (), "direct_sum": (Position.DIRECT_SUM,), "product": (Position.PRODUCT,)}


def kind_of(case: str) -> str:
    return case.rpartition("-")[2]


def arrays_of(archive: np.lib.npyio.NpzFile, case: str) -> dict[str, Tensor]:
    return {
        key.partition("/")[2]: torch.from_numpy(archive[key]) for key in archive.files if key.startswith(f"{case}/")
    }


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
        value=Value.WITH_POSITION if factors["value_position"] else Value.WITHOUT_POSITION,
        filter=KINDS[kind_of(case)],
    ).double()
    matrices = {"query": "W_q", "value": "W_v", "output": None}
    matrices |= {} if factors["symmetric"] else {"key": "W_k"}
    matrices |= {"positions.product.projection": "W_T"} if factors["position"] == "product" else {}
    state = {
        f"{name}.weight": arrays[matrix].T if matrix else torch.zeros(width, head_width)
        for name, matrix in matrices.items()
    }
    module.load_state_dict(state)
    return module


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)], ids=str)
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kernel", Kernel)
def test_golden_vectors(shared: Path, kernel: Kernel, position: str, dtype: torch.dtype, tolerance: float) -> None:
    folder = shared / "golden"
    archive = np.load(folder / "attention.npz")
    cases = {
        case: factors
        for case, factors in json.loads((folder / "attention.json").read_text()).items()
        if factors["kernel"] == kernel and factors["position"] == position and kind_of(case) in KINDS
    }
    assert len(cases) >= 8
    for case, factors in cases.items():
        arrays = arrays_of(archive, case)
        module = loaded(case, factors, arrays).to(dtype)
        allowed = tolerance * arrays["weights"].abs().sum(-1, keepdim=True).clamp(min=1)
        inputs = [arrays[name].to(dtype).unsqueeze(0) for name in ("f_q", "f_k")]
        where = {"query_positions": arrays["i_q"], "key_positions": arrays["i_k"]}
        weights = module.weights(*inputs, **where)[0, 0]
        assert ((weights - arrays["weights"]).abs() <= allowed).all(), case
        for module.path in ("literal", "fused"):
            output = module.smooth(*inputs, **where)[0, 0]
            assert ((output - arrays["output"]).abs() <= allowed).all(), (case, module.path)


def test_golden_masks_are_those_of_the_filters(shared: Path) -> None:
    archive = np.load(shared / "golden" / "attention.npz")
    for key in archive.files:
        case, _, name = key.partition("/")
        if name == "mask" and kind_of(case) in KINDS:
            query, key_ = (torch.from_numpy(archive[f"{case}/{i}"]) for i in ("i_q", "i_k"))
            module = KernelAttention(2, 1, filter=KINDS[kind_of(case)])
            visible = module.filter.visible(query.unsqueeze(-1), key_.unsqueeze(-2))
            expected = torch.from_numpy(archive[key])
            assert expected.all() if visible is None else torch.equal(visible, expected), case
