"""Attention forward and backward on a CPU in fp32: batch 2, 8 heads of 64, one thread.

The projections, which every path has in common, are included unless a measure says otherwise.

Of each pair that is compared, both run in turn and the faster of the rounds counts: read the ratios. Times are those of
the processor, which other programs disturb less.
"""

import itertools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from tests.benchmarks import matrix_peak

WIDTH, HEADS, BATCH = 512, 8, 2
SHORT, MIDDLE, LONG = 512, 1024, 4096  # tokens
LENGTHS = (32, 150, 512, 1024, 4096)
ROUNDS = 2

# Softmax-form and positive: to be twice as fast as Eq. 2 as printed.
POSITIVE: dict[str, dict[str, Any]] = {
    "exponential": {},
    "rbf": {"kernel": "rbf"},
    "cosine": {"kernel": "cosine"},
    "direct-sum": {"positions": ["direct-sum"]},
    "lookup": {"positions": ["lookup"]},
    "lookup, table": {"positions": ["lookup"], "value": "table"},
    "relative": {"positions": ["relative"]},
    "product": {"positions": ["product"]},
    "alibi": {"positions": ["alibi"]},
    "t5": {"positions": ["t5"]},
    "kerple-log": {"positions": ["kerple-log"]},
    "kerple-power": {"positions": ["kerple-power"]},
    "rotary": {"positions": ["rotary"]},
}
# No softmax: not to be slower.
OTHERS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "polynomial"},
    # Positive, but nearly all its time goes into distances that no product gives.
    "laplacian": {"kernel": "laplacian"},
    "student-t": {"kernel": "student-t"},
    "elu": {"kernel": "elu"},
    "relu-squared": {"kernel": "relu-squared"},
}
# Kernels that run without pairs.
FEATURE_MAPS = ("linear", "elu", "favor", "hedgehog", "cosformer")
LINEAR_IN_MEMORY = ["exponential", "rbf", "direct-sum", "product", "lookup", "relative", "polynomial", "linear"]


class Theirs(nn.Module):
    """torch's own module."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


def measure() -> dict[str, object]:
    """Ratios of time at SHORT, MIDDLE and LONG, and MiB of extra memory at MIDDLE, twice as many tokens and LONG.

    Memory is linear from twice MIDDLE on: up to MIDDLE what backward needs of the pairs is kept.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {
            "extra MiB": {name: _memory(name) for name in LINEAR_IN_MEMORY},
            f"literal over fused at {MIDDLE}, without the projections": _paths(MIDDLE),
            f"literal over fused at {MIDDLE}": {
                "positive": _literal_over_fused(POSITIVE, MIDDLE),
                "positive, causal": _literal_over_fused(POSITIVE, MIDDLE, filter="causal", rounds=1),
                "others": _literal_over_fused(OTHERS, MIDDLE),
            },
            "literal over fused, by tokens, the lowest first": _by_tokens(),
            "share of the matrix peak, by tokens": {
                filter: {str(length): _share_of_peak(_attention(filter=filter), length) for length in LENGTHS}
                for filter in ("full", "causal")
            },
            f"over nn.MultiheadAttention at {SHORT}": _ratios(
                {"theirs": _pass(Theirs(), SHORT), "exponential": _pass(_attention(), SHORT)}, "theirs"
            ),
            f"over exponential at {SHORT}": _ratios(
                {
                    name: _pass(_attention(**POSITIVE[name]), SHORT)
                    for name in ("exponential", "lookup", "relative", "product", "alibi")
                },
                "exponential",
            ),
            f"over causal at {LONG}": _ratios(
                {
                    name: _pass(_attention(filter=name, stride=128, summary=8, left=256, sinks=4), LONG)
                    for name in ("causal", "strided", "fixed", "window")
                },
                "causal",
            ),
            f"feature maps over causal softmax at {LONG}": _ratios(
                {
                    kernel: _pass(_attention(filter="causal", kernel=kernel, horizon=2 * LONG), LONG)
                    for kernel in ("exponential", *FEATURE_MAPS)
                },
                "exponential",
            ),
            f"over causal at {LONG}, without the projections": _ratios(
                {name: _smoothing(_attention(filter=name, left=256), LONG) for name in ("causal", "window")}, "causal"
            ),
            f"over causal at {LONG}, with lookup": _ratios(
                {
                    name: _pass(_attention(filter=name, stride=128, summary=8, positions=["lookup"]), LONG)
                    for name in ("causal", "strided", "fixed")
                },
                "causal",
                rounds=1,
            ),
        }
    finally:
        torch.set_num_threads(threads)


def _attention(heads: int = HEADS, **arguments: Any) -> KernelAttention:
    torch.manual_seed(0)
    return KernelAttention(WIDTH, heads, head_width=WIDTH // HEADS, **arguments)


def _pass(module: nn.Module, length: int) -> Callable[[], None]:
    x = torch.randn(BATCH, length, WIDTH, requires_grad=True)

    def forward_and_backward() -> None:
        torch.autograd.backward(module(x).sum())
        x.grad = None
        module.zero_grad()

    return forward_and_backward


def _seconds(passes: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    fastest = dict.fromkeys(passes, float("inf"))
    for _ in range(rounds):
        for name, run in passes.items():
            start = time.process_time()
            run()
            fastest[name] = min(fastest[name], time.process_time() - start)
    return fastest


def _ratios(passes: dict[str, Callable[[], None]], base: str, rounds: int = ROUNDS) -> dict[str, float]:
    seconds = _seconds(passes, rounds)
    return {name: round(value / seconds[base], 2) for name, value in seconds.items() if name != base}


def _share_of_peak(module: KernelAttention, length: int) -> float:
    """Return the operations of the literal path per time of the fused one; causal or not, all pairs count."""
    run = _pass(module, length)
    module.path = "literal"
    count = matrix_peak.operations(run)
    module.path = "fused"
    shares = []
    for _ in range(4 * ROUNDS):
        peak, start = matrix_peak.seconds_at_peak(count), time.process_time()
        run()
        shares.append(peak / (time.process_time() - start))
    return round(median(shares), 2)


def _literal_over_fused(
    variants: dict[str, dict[str, Any]], length: int, rounds: int = ROUNDS, **more: Any
) -> dict[str, float]:
    ratios: dict[str, float] = {}
    for name, arguments in variants.items():
        fused, literal = _attention(**arguments, **more), _attention(**arguments, **more)
        literal.path = "literal"
        ratios |= _ratios({"fused": _pass(fused, length), name: _pass(literal, length)}, "fused", rounds)
    return ratios


def _by_tokens() -> dict[str, dict[str, float]]:
    """Return the ratios of every component at each length, after the lowest of all."""
    ratios = {str(length): _lowest_first(length) for length in LENGTHS}
    lowest = {f"{name} at {length}": ratio for length, each in ratios.items() for name, ratio in [*each.items()][:1]}
    minimum = min(lowest, key=lowest.__getitem__)
    return {"minimum": {minimum: lowest[minimum]}, **ratios}


def _lowest_first(length: int) -> dict[str, float]:
    """Return the ratios, full and causal, the lowest first; long rows have fewer heads, to fit into memory."""
    components: dict[str, dict[str, Any]] = {
        **{kernel: {"kernel": kernel, "horizon": LONG} for kernel in KERNELS},
        **{position: {"positions": [position]} for position in POSITIONS},
        **{normaliser: {"normaliser": normaliser} for normaliser in NORMALISERS},
        "table": {"value": "table"},
        "lookup, table": {"positions": ["lookup"], "value": "table"},
    }
    heads = min(max(HEADS * MIDDLE**2 // length**2, 1), HEADS)
    ratios = {
        f"{name} {filter}": ratio
        for filter in ("full", "causal")
        for name, ratio in _literal_over_fused(
            components, length, max(2 * MIDDLE // length, ROUNDS), filter=filter, heads=heads
        ).items()
    }
    return dict(sorted(ratios.items(), key=lambda one: one[1]))


def _paths(length: int) -> dict[str, float]:
    """Return the ratios of Definition 1 alone, from given queries, keys and values of each head."""
    ratios: dict[str, float] = {}
    for name, arguments in POSITIVE.items():
        fused, literal = _attention(**arguments), _attention(**arguments)
        literal.path = "literal"
        ratios |= _ratios({"fused": _smoothing(fused, length), name: _smoothing(literal, length)}, "fused")
    return ratios


def _smoothing(module: KernelAttention, length: int) -> Callable[[], None]:
    with torch.no_grad():
        projected = module._project(torch.randn(BATCH, length, WIDTH), None)

    def forward_and_backward() -> None:
        # A direct sum and a rotation are part of the projections; other positions weigh the raw query.
        raw, query, key, value = (part.detach().requires_grad_() for part in projected[:4])
        smoothed = module._smoothed(projected._replace(raw=raw, query=query, key=key, value=value))
        torch.autograd.backward(smoothed.sum())
        module.zero_grad()

    return forward_and_backward


def _memory(name: str) -> list[int]:
    """MiB held at most at MIDDLE, twice as many tokens and LONG, causal, beyond inputs and weights.

    The last doubles the one before where memory is linear.

    What is allocated, not the resident memory, which the heap's holes make up to three times as large.
    """
    arguments = {**POSITIVE, **OTHERS}[name]
    return [
        _peak(_pass(_attention(**arguments, filter="causal"), length)) >> 20 for length in (MIDDLE, 2 * MIDDLE, LONG)
    ]


def _peak(run: Callable[[], None]) -> int:
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return max(itertools.accumulate(changes))
