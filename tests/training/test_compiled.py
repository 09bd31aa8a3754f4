"""The loss that fast arithmetic compiles on a GPU, here compiled on a CPU: what it gives, and how often it compiles."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from runs import STEPS, cell, run, save_every_step
from torch import Tensor
from torch._dynamo.utils import counters

from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.data.batching import ParallelBatch
from kdx.data.corpus import load_corpus
from kdx.data.vocabulary import PADDING, SPECIAL
from kdx.errors import KdxError
from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training import compiled as compiling
from kdx.training import module as modules
from kdx.training.compiled import compiled, compiler_failures, compiles
from kdx.training.determinism import reseed
from kdx.training.finite import ArithmeticFault
from kdx.training.module import TaskModule
from kdx.vocabulary import Arithmetic

pytestmark = pytest.mark.slow

# Divides forward and backward into the same operations as the real compiler, and makes no machine code of them, which
# takes most of the time.
TRACED = partial(torch.compile, backend="aot_eager_decomp_partition")


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    # As `compiled` says, which only the real compiler can be told.
    with torch._inductor.config.patch(fallback_random=True):
        yield
    torch._dynamo.reset()


@pytest.fixture
def on_a_cpu(monkeypatch) -> None:
    """Takes a CPU for what compiles."""
    monkeypatch.setattr(compiling, "DEVICE", "cpu")
    monkeypatch.setattr(modules, "compiled", TRACED)


def graphs() -> int:
    return counters["stats"]["unique_graphs"]


def modules_of(spec: CellSpec, home) -> tuple[TaskModule, TaskModule, Any]:
    """Two alike, and the batches of training."""
    corpus = load_corpus(spec.task, spec.data, home)
    task = TASKS[spec.task]
    one, other = task.of(spec, corpus), task.of(spec, corpus)
    other.load_state_dict(one.state_dict())
    return one.train(), other.train(), task.batches(spec, corpus, 0).train


def gradients(module: TaskModule, loss: Any, batch: Any, step: int, bf16: bool = False) -> tuple[Tensor, list[Tensor]]:
    module.zero_grad()
    reseed(0, "train", step)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        value = loss(batch)
    value.backward()
    return value.detach(), [torch.zeros(()) if one.grad is None else one.grad for one in module.parameters()]


def assert_alike(spec: CellSpec, home, batches: list[Any] | None = None, steps: int = 3, compile: Any = TRACED) -> None:
    """The same loss and gradient as the loss as it is written, with dropout, within rounding."""
    written, other, train = modules_of(spec, home)
    loss = compile(other.loss)
    bf16 = spec.training.precision == "bf16"
    rounding = 2**-7 if bf16 else 2**-16
    for step, batch in enumerate(batches or [train.batch(step) for step in range(steps)]):
        expected, of_expected = gradients(written, written.loss, batch, step, bf16)
        found, of_found = gradients(other, loss, batch, step, bf16)
        torch.testing.assert_close(found, expected, rtol=rounding, atol=0.0)
        largest = max(float(one.abs().max()) for one in of_expected)
        for here, there in zip(of_found, of_expected, strict=True):
            torch.testing.assert_close(here, there, rtol=rounding, atol=rounding * largest)


def pairs(count: int, size: int, tokens: int = 256) -> list[ParallelBatch]:
    """Batches of as many tokens, each of another shape, as those of a long text are."""
    generator = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(count):
        source, target = torch.randint(3, 40, (2,), generator=generator).tolist()
        rows = tokens // max(source, target)
        texts = [torch.randint(SPECIAL, size, (rows, length), generator=generator) for length in (source, target)]
        padding = torch.zeros(rows, source, dtype=torch.bool)
        padding[1:, -1] = True
        texts[0][padding], out = PADDING, texts[1].clone()
        out[0, -1] = PADDING
        batches.append(ParallelBatch(texts[0], padding, texts[1], out, torch.arange(rows)))
    return batches


@pytest.mark.parametrize("word", Arithmetic)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_only_fast_arithmetic_compiles_and_only_on_a_gpu(word, device):
    assert compiles(Training(arithmetic=word), torch.device(device)) is (word == "fast" and device == "cuda")


@pytest.mark.parametrize("word", Arithmetic)
def test_a_run_computes_every_step_with_what_is_compiled_if_it_compiles(word, on_a_cpu, home, tmp_path):
    done = run(cell("prediction", arithmetic=word), tmp_path, home)
    assert done.outcome.step == STEPS
    assert (counters["frames"]["ok"] > 0) is (word == "fast")


def test_it_is_the_run_of_the_loss_as_it_is_written(on_a_cpu, home, tmp_path):
    one = run(cell("prediction", arithmetic="fast"), tmp_path / "fast", home)
    other = run(cell("prediction"), tmp_path / "exact", home)
    assert graphs() > 0
    assert one.column("train/loss") == pytest.approx(other.column("train/loss"), rel=1e-4)
    assert one.column("valid/loss") == pytest.approx(other.column("valid/loss"), rel=1e-4)


def test_a_run_with_a_memory_is_stopped_and_resumed_and_compiles_anew(on_a_cpu, home, tmp_path, monkeypatch):
    save_every_step(monkeypatch)
    spec = cell("prediction", arithmetic="fast", axes={"memory": 8, "position": "relative"})
    stopped = run(spec, tmp_path, home, stop_after=7)
    torch._dynamo.reset()
    before = graphs()
    resumed = run(spec, tmp_path, home)
    assert stopped.outcome is None and resumed.outcome.step == STEPS and graphs() > before
    whole = run(spec, tmp_path / "whole", home)
    losses = stopped.column("train/loss") | resumed.column("train/loss")
    assert losses == pytest.approx(whole.column("train/loss"), rel=1e-4)


@pytest.mark.parametrize(
    "axes",
    [
        {"position": "lookup", "value": "table"},
        pytest.param({"position": "relative", "normaliser": "entmax"}, marks=pytest.mark.long),
        pytest.param({"position": "product"}, marks=pytest.mark.long),
        pytest.param({"position": "t5", "kernel": "laplacian"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_batches_of_thirty_shapes_compile_few_variants(axes, home):
    spec = cell("translation", axes=axes)
    size = load_corpus(spec.task, spec.data, home).target_vocabulary.size
    assert_alike(spec, home, pairs(30, size))
    # The shapes of the first batch, those of all others, and where a row is shorter than a head is wide.
    assert graphs() <= 4 and not counters["graph_break"]


@pytest.mark.parametrize(("axes", "most"), [({}, 2), ({"memory": 24, "position": "relative"}, 4)], ids=str)
def test_a_stream_compiles_few_variants(axes, most, home):
    assert_alike(cell("prediction", axes=axes), home, steps=30)
    # Where the stream begins, where it goes on, and while the memory fills.
    assert graphs() <= most and not counters["graph_break"]


@pytest.mark.parametrize("again", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_long_row_is_computed_in_blocks_and_again_for_the_gradient(again, home, monkeypatch):
    monkeypatch.setattr("kdx.attention.module.BLOCK", 1)
    monkeypatch.setattr("kdx.attention.module.SMALLEST_BLOCK", 8)
    if again:
        monkeypatch.setattr("kdx.attention.module.LARGEST_KEPT", 1)
    spec = cell("prediction", axes={"kernel": "laplacian", "position": "lookup"}, length=32)
    assert_alike(spec, home)


def test_clusters_of_rare_words_divide_the_graph_and_give_the_same(home):
    spec = cell("prediction", model={"cutoffs": (20, 40), "embeddings": "separate"})
    assert_alike(spec, home, steps=10)
    assert counters["graph_break"]


@pytest.mark.long
def test_half_precision_is_that_of_the_loss_as_it_is_written(home):
    assert_alike(cell("translation", precision="bf16"), home)
    assert_alike(cell("prediction", precision="bf16", axes={"memory": 8}), home)


def test_what_only_the_compiler_makes_nan_is_a_fault_of_arithmetic(on_a_cpu, home, tmp_path, monkeypatch):
    """Since the step is computed again as it is written."""
    monkeypatch.setattr(modules, "compiled", lambda loss: lambda batch: loss(batch) * torch.nan)
    message = "finite in float32 with plain attention: a fault of arithmetic .* set training.arithmetic to exact"
    with pytest.raises(ArithmeticFault, match=message):
        run(cell("prediction", arithmetic="fast"), tmp_path, home)


def failing(error: Exception) -> Any:
    def backend(graph: Any, inputs: Any) -> Any:
        raise error

    return partial(torch.compile, backend=backend)


def test_what_cannot_be_compiled_ends_the_run_with_one_message(on_a_cpu, home, tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "compiled", failing(RuntimeError("Failed to find C compiler.\nPlease specify")))
    message = (
        r"^torch\.compile failed, which needs Triton and a C compiler such as gcc \(RuntimeError: Failed to find C "
        r"compiler\.\); if both are there, set training\.arithmetic to exact$"
    )
    with pytest.raises(KdxError, match=message):
        run(cell("prediction", arithmetic="fast"), tmp_path, home)


def test_so_does_a_gradient_that_cannot_be_compiled(on_a_cpu, home, tmp_path, monkeypatch):
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.exc import BackendCompilerFailed

    def no_gradient(graph: Any, inputs: Any) -> Any:
        raise BackendCompilerFailed(no_gradient, ValueError("out of shared memory"), None)

    backend = aot_autograd(fw_compiler=lambda graph, inputs: graph, bw_compiler=no_gradient)
    monkeypatch.setattr(modules, "compiled", partial(torch.compile, backend=backend))
    with pytest.raises(KdxError, match=r"torch\.compile failed.*\(ValueError: out of shared memory\)"):
        run(cell("prediction", arithmetic="fast"), tmp_path, home)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), torch.OutOfMemoryError("of the GPU")])
def test_a_full_disk_or_memory_is_no_failure_of_the_compiler(error):
    loss = failing(error)(lambda batch: batch.sin())
    with pytest.raises(type(error)), compiler_failures():
        loss(torch.zeros(2))


def test_other_errors_are_what_they_are():
    with pytest.raises(ZeroDivisionError), compiler_failures():
        raise ZeroDivisionError


EVERY_WORD: list[dict[str, Any]] = [
    *({"kernel": word} for word in KERNELS),
    *({"position": word} for word in POSITIONS),
    *({"value": word} for word in VALUES),
    *({"filter": {"decoder-self": known.word}} for known in FILTERS.definitions() if not known.sees_later),
    *({"mixer": word} for word in MIXERS),
    *({"normaliser": word} for word in NORMALISERS),
]


@pytest.mark.long
@pytest.mark.parametrize("axes", EVERY_WORD, ids=str)
def test_every_word_is_compiled_alike(axes, home):
    """One after another, each with what else a cell has."""
    assert_alike(cell("prediction", axes={"position": "none"} | axes), home)
    assert not counters["graph_break"] and graphs() <= 2


@pytest.mark.long
@pytest.mark.parametrize(
    "spec",
    [cell("translation", axes={"position": "relative"}), cell("prediction", axes={"memory": 8, "kernel": "rbf"})],
    ids=["translation", "prediction"],
)
def test_machine_code_gives_the_same_with_the_same_dropout(spec, home):
    assert_alike(spec, home, compile=compiled)
