"""Random cases with vectors computed by Eq. 2 as printed, pair by pair, in float64, without anything of kdx."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

STRIDE, SUMMARY = 3, 1


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


KERNELS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "linear": lambda q, k: q @ k,
    "polynomial": lambda q, k: (q @ k) ** 2,
    "exponential": lambda q, k: math.exp(q @ k / math.sqrt(len(q))),
    "rbf": lambda q, k: math.exp(-((q - k) @ (q - k)) / math.sqrt(len(q))),
    "laplacian": lambda q, k: math.exp(-np.abs(q - k).sum() / math.sqrt(len(q))),
    "student-t": lambda q, k: 1 / (1 + (q - k) @ (q - k) / math.sqrt(len(q))),
    "elu": lambda q, k: elu(q) @ elu(k),
    "relu-squared": lambda q, k: max(q @ k / math.sqrt(len(q)), 0.0) ** 2,
}
POSITIONS = ("none", "direct_sum", "lookup", "relative", "product")
VALUES = ("without", "with", "table")
MASKS: dict[str, Callable[[Generator, np.ndarray, np.ndarray], np.ndarray]] = {
    "full": lambda rng, i, j: i - j == i - j,
    "causal": lambda rng, i, j: j <= i,
    "strided": lambda rng, i, j: (j <= i) & ((i - j <= STRIDE) | ((i - j) % STRIDE == 0)),
    "fixed": lambda rng, i, j: (j <= i) & ((i // STRIDE == j // STRIDE) | (j % STRIDE >= STRIDE - SUMMARY)),
    "random": lambda rng, i, j: rng.random((i - j).shape) < 0.6,
}


def sinusoid(position: int, width: int) -> np.ndarray:
    angles = [position / 10000 ** (2 * (m // 2) / width) for m in range(width)]
    return np.array([math.cos(angle) if m % 2 else math.sin(angle) for m, angle in enumerate(angles)])


def drawn(rng: Generator) -> tuple[dict, dict[str, Tensor]]:
    """Return factors and arrays of a case: any kernel, symmetry, position, value, mask, size, memory and scale."""
    names = {"kernel": list(KERNELS), "position": POSITIONS, "value": VALUES, "mask": list(MASKS)}
    chosen = {axis: str(rng.choice(known)) for axis, known in names.items()}
    factors = {
        "kernel": chosen["kernel"],
        "symmetric": bool(rng.integers(2)),
        "position": chosen["position"],
        "value_position": chosen["value"] == "with",
        "value_table": chosen["value"] == "table",
        "clip": int(rng.integers(5)),
    }
    width, head_width = 2 * int(rng.integers(1, 17)), int(rng.integers(2, 17))
    queries, memory, start = (int(rng.integers(*ends)) for ends in ((1, 9), (0, 5), (0, 20)))
    i_q, i_k = start + memory + np.arange(queries), start + np.arange(memory + queries)
    f_k = rng.choice([0.5, 1.0, 2.0]) * rng.standard_normal((len(i_k), width))
    f_q = f_k[memory:]
    if rng.random() < 0.2:  # from another sequence
        f_q = rng.standard_normal((queries, width))
    arrays = {"f_q": f_q, "f_k": f_k, "i_q": i_q, "i_k": i_k, "mask": MASKS[chosen["mask"]](rng, i_q[:, None], i_k)}
    arrays |= {
        n: rng.standard_normal((width, head_width)) / math.sqrt(width) for n in ("W_q", "W_k", "W_v", "W_T", "W_R")
    }
    arrays |= {n: (not factors["symmetric"]) * rng.standard_normal(head_width) for n in "uv"}
    rows = 2 * factors["clip"] + 1
    arrays |= {n: rng.standard_normal((rows, head_width)) / math.sqrt(head_width) for n in ("a_K", "a_V")}
    arrays["weights"], arrays["output"] = eq_2(factors, arrays)
    return factors, {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def eq_2(factors: dict, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Weights (Tq, Tk) and output (Tq, D)."""
    width, head_width = arrays["W_q"].shape
    weights, output = np.zeros(arrays["mask"].shape), np.zeros((len(arrays["f_q"]), head_width))
    for row, i in enumerate(arrays["i_q"]):
        values = {}
        for column, j in enumerate(arrays["i_k"]):
            if arrays["mask"][row, column]:
                x, y, away = (
                    arrays["f_q"][row],
                    arrays["f_k"][column],
                    min(max(j - i, -factors["clip"]), factors["clip"]),
                )
                weights[row, column] = weight(factors, arrays, (x, i), (y, j), away + factors["clip"])
                values[column] = (y + factors["value_position"] * sinusoid(j, width)) @ arrays["W_v"]
                values[column] = values[column] + factors["value_table"] * arrays["a_V"][away + factors["clip"]]
        total = len(values) if factors["kernel"] == "relu-squared" else weights[row].sum()
        weights[row] /= total or 1
        output[row] = sum((weights[row, column] * value for column, value in values.items()), np.zeros(head_width))
    return weights, output


def weight(factors: dict, arrays: dict[str, np.ndarray], query: tuple, key: tuple, away: int) -> float:
    (x, i), (y, j), (width, head_width) = query, key, arrays["W_q"].shape
    if factors["position"] == "direct_sum":
        x, y = x + sinusoid(i, width), y + sinusoid(j, width)
    q, k, factor = x @ arrays["W_q"], y @ arrays["W_q" if factors["symmetric"] else "W_k"], 0.0
    if factors["position"] == "lookup":
        factor = q @ arrays["a_K"][away]
    elif factors["position"] == "product":
        factor = (sinusoid(i, width) @ arrays["W_T"]) @ (sinusoid(j, width) @ arrays["W_T"])
    elif factors["position"] == "relative":
        factor = (q + arrays["v"]) @ (sinusoid(i - j, width) @ arrays["W_R"])
        q = q + arrays["u"]
    return KERNELS[factors["kernel"]](q, k) * math.exp(factor / math.sqrt(head_width))
