"""Seeds are functions of what they are for, and exact arithmetic repeats on every device."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from runs import cell, run
from test_examples import (
    ARMS,
    few_examples,  # noqa: F401  # it is for every test of this file
)
from test_examples import cell as example_cell
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kdx.attention import KernelAttention, running_sum
from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training.canary import canary
from kdx.training.determinism import deterministic, fix_arithmetic, seed_of
from kdx.vocabulary import Arithmetic, Maps, Optimiser, OutputGate, Precision, QKNorm

CPU, META = torch.device("cpu"), torch.device("meta")


def test_a_seed_is_the_same_in_every_process():
    script = "from kdx.training.determinism import seed_of; print(seed_of(3, 'train', 17))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == seed_of(3, "train", 17)


def test_seeds_of_neighbouring_steps_and_purposes_differ():
    seeds = {seed_of(seed, use, step) for seed in range(3) for use in ("train", "valid") for step in range(100)}
    assert len(seeds) == 600
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.fixture
def settings_left() -> Iterator[None]:
    """Leaves threads and arithmetic as they were."""
    threads, workspace = torch.get_num_threads(), os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    yield
    fix_arithmetic(Training(threads=threads))
    if workspace is None:
        del os.environ["CUBLAS_WORKSPACE_CONFIG"]
    else:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = workspace


@pytest.mark.parametrize("word", Arithmetic)
def test_arithmetic_is_what_the_cell_says_whatever_it_was_before(word, settings_left):
    exact = word is Arithmetic.EXACT
    torch.use_deterministic_algorithms(not exact, warn_only=not exact)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = exact
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":0:0"
    fix_arithmetic(Training(arithmetic=word, threads=2))
    assert torch.get_num_threads() == 2
    assert torch.are_deterministic_algorithms_enabled() is exact
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    # In any arithmetic 32 bits are 32, and no algorithm is chosen by the clock.
    assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cudnn.benchmark
    assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction is not exact
    # Torch refuses deterministic products on a GPU unless it is one of two values.
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize("before", [(False, False), (True, False), (True, True)])
def test_a_deterministic_block_leaves_what_was_before(before):
    mode, warning = before
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        torch.use_deterministic_algorithms(mode, warn_only=warning)
        with pytest.raises(ZeroDivisionError), deterministic():
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
            raise ZeroDivisionError
        result = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        assert result == before
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])


def floating(*tensors: Any) -> bool:
    return any(tensor.is_floating_point() for tensor in tensors if isinstance(tensor, Tensor))


def always(*arguments: Any, **named: Any) -> bool:
    return True


# What has no deterministic form on a GPU, and when: what `torch.use_deterministic_algorithms` says, and each call of
# `alertNotDeterministic` in aten/src/ATen/native/cuda but for most of images (pools, paddings, interpolation). Beside
# them the two other scans, for which torch gives no alarm.
NONDETERMINISTIC: dict[str, Callable[..., bool]] = {
    **dict.fromkeys(("cumsum", "cumsum_", "cumprod", "cumprod_", "logcumsumexp", "_logcumsumexp"), floating),
    "bincount": lambda counted, weights=None, *rest, **named: weights is not None,
    "scatter_reduce": lambda *arguments, **named: "prod" in arguments,
    "scatter_reduce_": lambda *arguments, **named: "prod" in arguments,
    "resize_": lambda tensor, *rest, **named: tensor.is_quantized,
    **dict.fromkeys(
        (
            "_embedding_bag_backward",
            "_embedding_bag_dense_backward",
            "histc",
            "index_reduce",
            "index_reduce_",
            "kthvalue",
            "median",
            "nanmedian",
            "nll_loss2d_backward",
            "nll_loss2d_forward",
            "put",
            "put_",
            "reflection_pad1d_backward",
        ),
        always,
    ),
}


class Operations(TorchDispatchMode):
    """The operations of a block, forward and backward, as a GPU would be asked for them.

    Those of a CPU are those of a GPU too, but for what kdx itself does otherwise there. So running sums are made as on
    a GPU, and what `Tensor.cpu` gave counts as being on a CPU. A tensor of the device `meta` shows the rest: it is on
    no CPU, and has no numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.nondeterministic: set[str] = set()
        self._moved: list[Tensor] = []
        """Kept, so that none has the identity of another."""

    def __enter__(self) -> "Operations":
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(running_sum, "_torch_refuses", lambda terms: True)
        cpu = Tensor.cpu

        def moved(tensor: Tensor) -> Tensor:
            self._moved.append(cpu(tensor).clone())
            return self._moved[-1]

        self._patch.setattr(Tensor, "cpu", moved)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._patch.undo()
        super().__exit__(*error)

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        name, named = function.overloadpacket.__name__, named or {}
        self.seen.add(name)
        here = any(argument is other for argument in arguments for other in self._moved if isinstance(argument, Tensor))
        if not here and name in NONDETERMINISTIC and NONDETERMINISTIC[name](*arguments, **named):
            self.nondeterministic.add(name)
        return function(*arguments, **named)


def test_an_operation_without_a_deterministic_form_is_found_forward_and_backward():
    given = torch.rand(1, 1, 6).requires_grad_()
    with Operations() as result:
        torch.nn.functional.pad(given, (1, 1), mode="reflect").cumsum(-1).sum().backward()
        torch.arange(4).cumsum(0)
        torch.bincount(torch.arange(4), torch.rand(4).cpu())
    assert result.nondeterministic == {"cumsum", "reflection_pad1d_backward"}
    with Operations() as result:
        torch.bincount(torch.arange(4), torch.rand(4))
    assert result.nondeterministic == {"bincount"}


def attentions() -> Iterator[dict[str, Any]]:
    """Every word of every axis that makes an attention."""
    both: tuple[dict[str, Any], ...] = ({"filter": "full"}, {"filter": "causal"})
    for filter in both:
        yield from ({"kernel": word} | filter for word in KERNELS)
        yield from ({"value": word, "encoding": "sinusoidal"} | filter for word in VALUES)
        yield from (
            {"positions": (known.word,)} | filter
            for known in POSITIONS.definitions()
            if filter["filter"] == "causal" or not known.past_only
        )
        for normaliser in NORMALISERS.definitions():
            for kernel in KERNELS.definitions():
                if kernel.gives in normaliser.kernels and (filter["filter"] == "causal" or not normaliser.past_only):
                    yield {"kernel": kernel.word, "normaliser": normaliser.word} | filter
    yield from ({"filter": word} for word in FILTERS)
    yield from ({"encoding": word, "positions": ("product", "direct-sum")} for word in ENCODINGS)
    yield from ({"normaliser": "entmax", "alpha": alpha} for alpha in (1.3, 1.5, 2.0))
    yield from ({"qk_norm": word} for word in QKNorm)
    yield from ({"output_gate": word} for word in OutputGate)
    yield from ({"maps": word} for word in Maps)
    yield {"kv_heads": 1}
    yield {"projection": "none", "value_projection": "keys"}
    yield {"smoother": "local-linear"}
    yield {"kernel": "rbf", "temperature": "learned"}


def named(choices: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in choices.items())


@pytest.fixture
def without_autocast(monkeypatch):
    """Which the device `meta` has not."""
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **named: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)


@pytest.mark.slow
@pytest.mark.usefixtures("without_autocast")
@pytest.mark.parametrize("choices", [*attentions()], ids=named)
def test_no_attention_asks_a_gpu_for_what_repeats_otherwise(choices):
    """Short, and so long that it is computed in blocks."""
    attention = KernelAttention(16, 2, dropout=0.1, **choices).to(META)
    with deterministic(), Operations() as result:
        for tokens in (6, 700):
            x = torch.empty(2, tokens, 16, device=META, requires_grad=True)
            attention(x, key_padding=torch.zeros(2, tokens, dtype=torch.bool, device=META)).sum().backward()
            # Without dropout, where sums over keys may take the place of pairs.
            attention.eval()(x).sum().backward()
            attention.train()
    assert len(result.seen) > 10 and not result.nondeterministic


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("word", MIXERS)
def test_nor_does_a_mixer(word, filter):
    if word == "attention":
        return
    mixer = MIXERS[word](16, filter=filter).to(META)
    x = torch.empty(2, 6, 16, device=META, requires_grad=True)
    with deterministic(), Operations() as result:
        mixer(x).sum().backward()
    assert result.seen and not result.nondeterministic


TEXT = {
    "translation": cell("translation", select=None, evaluation={"beam": 3}),
    "prediction": cell("prediction", axes={"memory": 8, "position": "relative"}),
    "adaptive": cell("prediction", model={"cutoffs": (20, 40), "embeddings": "separate"}),
    "classification": CellSpec.model_validate(
        {
            "task": "classification",
            "data": {"corpus": "synthetic-order", "train_lines": 200},
            "model": {"width": 16, "heads": 2, "encoder_layers": 1, "inner": 16},
            "training": {"steps": 3, "batch_tokens": 256, "warmup": 1},
        }
    ),
}


def test_every_task_is_among_those_that_are_watched():
    assert {spec.task for spec in TEXT.values()} | {arm["task"] for arm in ARMS.values()} == set(TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXT, *ARMS])
def test_no_task_asks_for_it_in_training_validation_and_test(name, home, tmp_path):
    spec = TEXT[name] if name in TEXT else example_cell(name)
    short = spec.training.model_copy(update={"steps": 3, "validate_every": 2, "average": 2})
    with Operations() as result:
        done = run(spec.model_copy(update={"training": short}), tmp_path, home)
    assert done.outcome.step == 3 and "_fused_adamw_" in result.seen
    assert not result.nondeterministic


@pytest.mark.parametrize("optimiser", Optimiser)
@pytest.mark.parametrize("precision", Precision)
def test_no_optimiser_asks_for_it_in_any_format(optimiser, precision, home, tmp_path):
    with Operations() as result:
        run(cell("prediction", optimiser=optimiser, precision=precision, steps=2), tmp_path, home)
    assert not result.nondeterministic


@pytest.mark.parametrize("precision", Precision)
def test_nor_does_the_canary(precision):
    with Operations() as result:
        canary(CPU, precision)
    assert "index_add" in result.seen and not result.nondeterministic
