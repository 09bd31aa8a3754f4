"""Comparison with vectors that another program computed: one head, no batch, no output projection, float64.

A file of vectors is an `.npz` of arrays `CASE/NAME`, with a `.json` of the same name that has each case's factors
(`kernel`, `symmetric`, `position`, `value_position`, `value_table`, `clip`). Arrays of a case: features f_q (Tq, M) and
f_k (Tk, M), integer positions i_q and i_k, mask (Tq, Tk) True where visible, matrices W_q, W_k, W_v, W_T, W_R (M, D),
u and v (D,), tables a_K and a_V (2·clip + 1, D), and the expected weights (Tq, Tk) and output (Tq, D).
"""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kdx.attention.module import KernelAttention
from kdx.attention.verification.cases import Finding
from kdx.attention.verification.rounding import condition, largest, roundings
from kdx.errors import KdxError
from kdx.vocabulary import Symmetry

PATHS: tuple[Literal["literal", "fused"], ...] = ("literal", "fused")
_FACTORS = ("kernel", "symmetric", "position", "value_position", "value_table", "clip")
# Parameter → array; matrices are transposed, since a linear layer multiplies from the left.
_MATRICES = {
    "query.weight": "W_q",
    "key.weight": "W_k",
    "value.weight": "W_v",
    "positions.product.projection.weight": "W_T",
    "positions.relative.projection.weight": "W_R",
}
_ROWS = {
    "positions.relative.u": "u",
    "positions.relative.v": "v",
    "positions.lookup.table.weight": "a_K",
    "value_function.table.weight": "a_V",
}


def agreements(vectors: Path, device: str = "cpu") -> Iterator[Finding]:
    """Compare every case on both paths, in float64 and float32.

    Raises:
        KdxError: the files are not vectors of this format.
    """
    for case, factors, arrays in _cases(vectors):
        try:
            yield from compared(case, factors, arrays, device)
        except (KeyError, TypeError, ValueError, RuntimeError) as fault:
            problem = f"`{fault.args[0]}` is missing" if isinstance(fault, KeyError) else str(fault).splitlines()[0]
            raise KdxError(f"case `{case}`: {problem}", place=str(vectors)) from fault


@torch.no_grad()
def compared(
    case: str, factors: Mapping[str, Any], arrays: Mapping[str, Tensor], device: str = "cpu"
) -> Iterator[Finding]:
    """Compare one case on both paths, in float64 and float32: the output, and on the literal path the weights.

    Raises:
        KeyError, TypeError, ValueError, RuntimeError: the case lacks an array, or has one that is not allowed.
    """
    module = module_of(factors, arrays).to(device)
    symmetry = "symmetric" if factors["symmetric"] else "asymmetric"
    position = str(factors["position"]).replace("_", "-")
    variant = f"{factors['kernel']}, {symmetry}, {position}, {_value(factors)}"
    queries, keys = (arrays[name].to(device, torch.float64).unsqueeze(0) for name in ("f_q", "f_k"))
    where: Any = {
        "query_positions": arrays["i_q"].to(device),
        "key_positions": arrays["i_k"].to(device),
        "mask": arrays["mask"].to(device),
    }
    results: dict[str, Callable[..., Tensor]] = {
        "output": lambda module, *features: module.smooth(*features, **where)[0, 0],
        "weights": lambda module, *features: module.weights(*features, **where)[0, 0],
    }
    module.path = "literal"
    conditions = {name: condition(result, module, queries, keys) for name, result in results.items()}
    for dtype in (torch.float64, torch.float32):
        module = module.to(dtype)
        for module.path in PATHS:
            errors = [
                roundings(result(module, queries.to(dtype), keys.to(dtype)), arrays[name].to(device), conditions[name])
                for name, result in results.items()
                if name == "output" or module.path == "literal"
            ]
            check = f"{module.path} {str(dtype).removeprefix('torch.')}"
            yield Finding(check, variant, largest(errors), case=case)


def module_of(factors: Mapping[str, Any], arrays: Mapping[str, Tensor], **choices: Any) -> KernelAttention:
    """Return the attention of a case with its matrices, in float64.

    Args:
        choices: further arguments of `KernelAttention`.
    """
    width, head_width = arrays["W_q"].shape
    module = KernelAttention(
        width,
        heads=1,
        head_width=head_width,
        bias=False,
        kernel=factors["kernel"],
        symmetry=Symmetry.SYMMETRIC if factors["symmetric"] else Symmetry.ASYMMETRIC,
        positions=(str(factors["position"]).replace("_", "-"),),
        value=_value(factors),
        clip=factors.get("clip"),
        **choices,
    ).double()
    state = {"output.weight": torch.zeros(width, head_width, dtype=torch.float64)}
    for name in module.state_dict():
        if name in _MATRICES:
            state[name] = arrays[_MATRICES[name]].T
        elif name in _ROWS:
            state[name] = arrays[_ROWS[name]].unsqueeze(0)
    module.load_state_dict(state)
    return module.eval()


def _value(factors: Mapping[str, Any]) -> str:
    if factors.get("value_table"):
        return "table"
    return "with-position" if factors["value_position"] else "without-position"


def _cases(vectors: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Tensor]]]:
    beside = vectors.with_name(f"{vectors.stem}.json")
    try:
        cases = json.loads(beside.read_text())
        with np.load(vectors, allow_pickle=False) as archive:
            arrays: dict[str, dict[str, Tensor]] = {}
            for key in archive.files:
                case, _, name = key.partition("/")
                arrays.setdefault(case, {})[name] = torch.from_numpy(archive[key])
        unlisted = arrays.keys() - cases.keys()
    except OSError as error:
        place = str(error.filename or vectors)
        allowed = "FILE.npz beside FILE.json"
        raise KdxError(f"cannot read the vectors: {error.strerror or error}", place=place, allowed=allowed) from error
    except (ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise KdxError(f"these are no vectors: {error}".splitlines()[0], place=str(vectors)) from error
    if unlisted:
        raise KdxError(f"case `{min(unlisted)}` of {vectors.name} has no factors", place=str(beside))
    for case, factors in cases.items():
        for name in factors:
            if name not in _FACTORS:
                raise KdxError(f"case `{case}`: unknown factor `{name}`", place=str(beside), allowed=_FACTORS)
        yield case, factors, arrays.get(case, {})
