"""Attention agrees with vectors that other programs computed pair by pair in float64.

One head, no batch, no output projection. A case has factors (`kernel`, `symmetric`, `position`, `value_position`,
`value_table`, `clip`) and arrays: features f_q (Tq, M) and f_k (Tk, M), integer positions i_q and i_k, mask (Tq, Tk)
True where visible, matrices W_q, W_k, W_v, W_T, W_R (M, D), u and v (D,), tables a_K and a_V (2·clip + 1, D), and the
expected weights (Tq, Tk) and output (Tq, D).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.verification.rounding import ROUNDINGS, condition, roundings
from kdx.vocabulary import Symmetry
from tests.attention.drawn_vectors import drawn

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
# Parameter → array; matrices are transposed, since a linear layer multiplies from the left.
MATRICES = {
    "query.weight": "W_q",
    "key.weight": "W_k",
    "value.weight": "W_v",
    "positions.product.projection.weight": "W_T",
    "positions.relative.projection.weight": "W_R",
}
ROWS = {
    "positions.relative.u": "u",
    "positions.relative.v": "v",
    "positions.lookup.table.weight": "a_K",
    "value_function.table.weight": "a_V",
}


class Case(NamedTuple):
    factors: Mapping[str, Any]
    arrays: Mapping[str, Tensor]

    def module(self, **choices: Any) -> KernelAttention:
        """Return an attention with the matrices of the case, in float64; `choices` are further arguments of it."""
        width, head_width = self.arrays["W_q"].shape
        value = "with-position" if self.factors["value_position"] else "without-position"
        module = KernelAttention(
            width,
            heads=1,
            head_width=head_width,
            bias=False,
            kernel=self.factors["kernel"],
            symmetry=Symmetry.SYMMETRIC if self.factors["symmetric"] else Symmetry.ASYMMETRIC,
            positions=(str(self.factors["position"]).replace("_", "-"),),
            value="table" if self.factors.get("value_table") else value,
            clip=self.factors.get("clip"),
            **choices,
        ).double()
        state = {"output.weight": torch.zeros(width, head_width, dtype=torch.float64)}
        for name in module.state_dict():
            if name in MATRICES:
                state[name] = self.arrays[MATRICES[name]].T
            elif name in ROWS:
                state[name] = self.arrays[ROWS[name]].unsqueeze(0)
        module.load_state_dict(state)
        return module.eval()


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Case]:
    """Every case of the file of vectors, by name."""
    archive = np.load(shared / "golden" / "attention.npz")
    arrays: dict[str, dict[str, Tensor]] = {}
    for key in archive.files:
        case, _, name = key.partition("/")
        arrays.setdefault(case, {})[name] = torch.from_numpy(archive[key])
    factors = json.loads((shared / "golden" / "attention.json").read_text())
    return {name: Case(factors[name], arrays[name]) for name in factors}


@torch.no_grad()
def misses(case: Case) -> Iterator[str]:
    """Yield each path and number format in which the output, or on the literal path the weights, are off."""
    module = case.module()
    features = [case.arrays[name].unsqueeze(0) for name in ("f_q", "f_k")]
    where = {
        "query_positions": case.arrays["i_q"],
        "key_positions": case.arrays["i_k"],
        "mask": case.arrays["mask"],
    }
    results: dict[str, Callable[..., Tensor]] = {
        "output": lambda module, *features: module.smooth(*features, **where)[0, 0],
        "weights": lambda module, *features: module.weights(*features, **where)[0, 0],
    }
    module.path = "literal"
    units = {name: condition(result, module, *features) for name, result in results.items()}
    for dtype in (torch.float64, torch.float32):
        module.to(dtype)
        for path, name in (("literal", "output"), ("literal", "weights"), ("fused", "output")):
            module.path = path
            computed = results[name](module, *(array.to(dtype) for array in features))
            if not roundings(computed, case.arrays[name], units[name]) <= ROUNDINGS:
                yield f"{name}, {path} {str(dtype).removeprefix('torch.')}"


def test_every_vector_of_the_file_holds_on_both_paths_and_in_both_formats(cases: dict[str, Case]) -> None:
    assert len(cases) == 182
    assert {name: missed for name, case in cases.items() if (missed := list(misses(case)))} == {}


def test_a_wrong_number_is_found(cases: dict[str, Case]) -> None:
    case = cases["exponential-asym-product-fv-causal"]
    for name, error, expected in (
        ("output", 1e-12, ["output, literal float64", "output, fused float64"]),
        ("weights", 1e-3, ["weights, literal float64", "weights, literal float32"]),
    ):
        wrong = case.arrays[name].clone()
        wrong[2, 1] += error
        assert list(misses(Case(case.factors, {**case.arrays, name: wrong}))) == expected
    assert len(list(misses(Case({**case.factors, "kernel": "rbf"}, case.arrays)))) == 6


def missed_of_drawn(rng: np.random.Generator, count: int) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Return the factors and the misses of every case that fails among `count` random ones."""
    drawn_cases = [Case(*drawn(rng)) for _ in range(count)]
    return [(case.factors, missed) for case in drawn_cases if (missed := list(misses(case)))]


def test_drawn_vectors_hold_on_both_paths_and_in_both_formats() -> None:
    assert missed_of_drawn(np.random.default_rng(0), 100) == []


@pytest.mark.long
def test_of_twenty_thousand_drawn_vectors_none_is_missed(series) -> None:
    rng = np.random.default_rng(series.getrandbits(64))
    assert [missed for _ in range(200) for missed in missed_of_drawn(rng, 100)] == []


@torch.no_grad()
def test_vectors_hold_with_the_filter_and_the_memory_of_the_case(cases: dict[str, Case]) -> None:
    """Without their masks and positions, which the tests above give."""
    for name, case in cases.items():
        kind = name.rpartition("-")[2]
        memory = MEMORY if kind == "memory" else 0
        module = case.module(filter=FILTERS[kind], memory_length=memory, stride=3, summary=1)
        visible = module.filter.visible(case.arrays["i_q"].unsqueeze(-1), case.arrays["i_k"].unsqueeze(-2))
        assert case.arrays["mask"].all() if visible is None else torch.equal(visible, case.arrays["mask"]), name

        def compute(module: KernelAttention, queries: Tensor, keys: Tensor, kind: str = kind) -> Tensor:
            if kind == "memory":
                return module.smooth(queries, memory=keys[:, :MEMORY])[0, 0]
            return module.smooth(queries, keys if kind == "cross" else None)[0, 0]

        features = [case.arrays[array].unsqueeze(0) for array in ("f_q", "f_k")]
        unit = condition(compute, module, *features)
        for module.path in ("literal", "fused"):
            error = roundings(compute(module, *features), case.arrays["output"], unit)
            assert error <= ROUNDINGS, (name, module.path)
