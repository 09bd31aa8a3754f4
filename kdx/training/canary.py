"""A hash of arithmetic: where it differs, a run's bits would differ too.

Libraries choose their instructions and their order of summation by the processor, by variables such as `MKL_CBWR`,
`ONEDNN_MAX_CPU_ISA` or `NVIDIA_TF32_OVERRIDE`, and by the number of threads, and do not report their choice. So a few
products, sums and functions of the kinds that training is made of are computed, forward and backward, and hashed.
"""

import hashlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from kdx.attention.running_sum import running_sum
from kdx.training.determinism import deterministic
from kdx.vocabulary import Precision

LENGTH = 8
"""Characters of the hash; it guards against no adversary."""

_PLACES = 400
_ROWS = 23


def _places() -> Tensor:
    """Rows of a table, each several times, whose gradients are added up."""
    return (torch.arange(_PLACES) * 7) % _ROWS


# What is done, and the shapes of what it is done to. Most sizes are no multiples of what a register or a block of a
# product holds; the largest are split among threads.
_OPERATIONS: tuple[tuple[Callable[..., Tensor], *tuple[tuple[int, ...], ...]], ...] = (
    (torch.matmul, (3, 5), (5, 7)),
    (torch.matmul, (33, 65), (65, 17)),
    (torch.matmul, (130, 67), (67, 259)),
    (torch.matmul, (65, 33), (33,)),
    (torch.matmul, (2, 3, 33, 17), (2, 3, 17, 40)),
    (lambda a, b: a @ b.transpose(-2, -1), (6, 33, 17), (6, 40, 17)),
    (lambda a, b: a.T @ b, (67, 130), (67, 31)),
    (F.linear, (4, 33, 64), (96, 64), (96,)),
    (lambda x, filters: F.conv1d(x, filters, padding=1), (4, 64, 33), (48, 64, 3)),
    (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[(2, 4, 33, 16)] * 3),
    (lambda x, weight, bias: F.layer_norm(x, (64,), weight, bias), (4, 33, 64), (64,), (64,)),
    *((function, (33, 259)) for function in (torch.exp, torch.sin, torch.cos, torch.tanh, F.softplus, F.gelu)),
    (lambda x: (x + 1.5).log(), (33, 259)),
    (lambda x: (x + 1.5) ** 1.7, (33, 259)),
    (lambda x: (x + 1.5).rsqrt(), (33, 259)),
    (lambda x: x.softmax(-1), (33, 259)),
    (lambda x: x.logsumexp(-1), (33, 259)),
    (lambda x: running_sum(x, -1), (33, 259)),
    (lambda x: x.sum(0), (33, 259)),
    (lambda x: x.mean(1), (33, 259)),
    (torch.sum, (2**16,)),
    (torch.linalg.vector_norm, (2**16,)),
    (lambda table: F.embedding(_places().to(table.device), table), (_ROWS, 64)),
    (lambda table, more: table.index_add(0, _places().to(table.device), more), (_ROWS, 64), (_PLACES, 64)),
    (lambda x: F.cross_entropy(x, _places().to(x.device), label_smoothing=0.1), (_PLACES, _ROWS)),
)


def canary(device: torch.device, precision: Precision) -> str:
    """The hash on `device`, in this process and with its thread count. No random number is drawn for it.

    What a run in bf16 computes in float32 all the same, such as the optimiser's step, is in it too. It is computed with
    deterministic algorithms whatever those of the run are, for a hash that never repeats says nothing.
    """
    digest = hashlib.sha256()
    for mixed in (False, True)[: 1 + (precision is Precision.BF16)]:
        with deterministic(), torch.enable_grad(), torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            for result in _results(device):
                digest.update(result.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:LENGTH]


def _results(device: torch.device) -> Iterator[Tensor]:
    for operation, *shapes in _OPERATIONS:
        given = [_numbers(shape, device).requires_grad_() for shape in shapes]
        result = operation(*given)
        yield result
        yield from torch.autograd.grad((result * result).sum(), given)
    weight = _numbers((67, 130), device).requires_grad_()
    optimizer = torch.optim.AdamW([weight], lr=1e-2, weight_decay=0.1, fused=True)
    for _ in range(3):
        weight.grad = weight.detach().clone()
        optimizer.step()
    yield weight


def _numbers(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return numbers in [-1, 1), made of integers, so that they are the same everywhere and with every torch."""
    # Knuth's multiplicative hash. A float32 holds 24 bits, so nothing is rounded.
    whole = (torch.arange(1, torch.Size(shape).numel() + 1) * 2654435761) % 2**32 // 2**8
    return (whole.float() / 2**23 - 1).view(shape).to(device)
