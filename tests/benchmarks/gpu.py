"""What fast arithmetic gives on a GPU: milliseconds forward and backward in bf16, uncompiled, compiled, and with flex.

On a machine without a GPU nothing is measured. Of each row all ways run in turn, and the median of the rounds counts.
The first calls, which compile, are not in it; how long they take is a figure of its own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention, flex
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.training.compiled import compiled
from tests.benchmarks.throughput import preset_of

DEVICE = "cuda"
WIDTH, HEADS, BATCH = 512, 8, 8
LENGTHS = (512, 1024, 4096)  # tokens
WARM, ROUNDS = 5, 20
ATTENTIONS: dict[str, dict[str, Any]] = {
    "causal": {},
    "t5": {"positions": ["t5"]},
    "kerple-log": {"positions": ["kerple-log"]},
    "window": {"filter": "window", "left": 256},
    "window, t5": {"filter": "window", "left": 256, "positions": ["t5"]},
    "strided": {"filter": "strided", "stride": 128},
    "fixed": {"filter": "fixed", "stride": 128, "summary": 8},
}


def measure() -> dict[str, object]:
    """Milliseconds of an attention at each length, and of the loss of a mini preset."""
    if DEVICE == "cuda" and not torch.cuda.is_available():
        return {"skipped": "no GPU here"}
    return {
        "attention": {
            str(tokens): {name: _attention(choices, tokens) for name, choices in ATTENTIONS.items()}
            for tokens in LENGTHS
        },
        "loss": {"translation-mini": _translation(), "prediction-mini": _prediction()},
    }


def _attention(choices: dict[str, Any], tokens: int) -> dict[str, float]:
    torch.manual_seed(0)
    module = KernelAttention(WIDTH, HEADS, **{"filter": "causal"} | choices).to(DEVICE)
    x = torch.randn(BATCH, tokens, WIDTH, device=DEVICE, requires_grad=True)

    def loss(_: Any) -> Tensor:
        total: Tensor = module(x).sum()
        return total

    return _milliseconds(
        module, {"uncompiled": loss, "compiled without flex": compiled(loss), "compiled": compiled(loss)}
    )


def _translation() -> dict[str, float]:
    spec = preset_of("translation-mini")
    size, rows, tokens = spec.data.vocabulary_size or 0, 64, 32
    model = TranslationModel(spec, size).to(DEVICE)
    source, target = (torch.randint(4, size, (rows, tokens), device=DEVICE) for _ in range(2))
    padding = torch.zeros(rows, tokens, dtype=torch.bool, device=DEVICE)
    return _losses(model, lambda _: model.output.loss(model.hidden(source, padding, target), target))


def _prediction() -> dict[str, float]:
    spec = preset_of("prediction-mini")
    size, tokens = spec.data.vocabulary_size or 0, spec.training.length or 0
    model = LanguageModel(spec, size).to(DEVICE)
    text = torch.randint(4, size, (spec.training.batch_tokens // tokens, tokens), device=DEVICE)
    return _losses(model, lambda _: model.output.loss(model.hidden(text), text))


def _losses(model: nn.Module, loss: Callable[[Any], Tensor]) -> dict[str, float]:
    return _milliseconds(model, {"uncompiled": loss, "compiled": compiled(loss)})


@contextmanager
def _flex(allowed: bool) -> Iterator[None]:
    formats = flex.FORMATS
    flex.FORMATS = formats if allowed else ()
    try:
        yield
    finally:
        flex.FORMATS = formats


def _milliseconds(module: nn.Module, ways: dict[str, Callable[[Any], Tensor]]) -> dict[str, float]:
    # Else variants of what was measured before would count against torch's limit for one function.
    torch._dynamo.reset()
    first = {
        f"{name}, seconds of the first call": round(_seconds(module, name, loss), 1) for name, loss in ways.items()
    }
    for _ in range(WARM):
        for name, loss in ways.items():
            _seconds(module, name, loss)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, loss in ways.items():
            taken[name].append(_seconds(module, name, loss))
    return {name: round(1e3 * median(seconds), 3) for name, seconds in taken.items()} | first


def _seconds(module: nn.Module, name: str, loss: Callable[[Any], Tensor]) -> float:
    _wait()
    start = time.perf_counter()
    with _flex(name != "compiled without flex"), torch.autocast(DEVICE, torch.bfloat16):
        value = loss(None)
    torch.autograd.backward(value)
    _wait()
    elapsed = time.perf_counter() - start
    module.zero_grad()
    return elapsed


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
