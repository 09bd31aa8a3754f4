"""flex_attention gives what Eq. 2 as printed gives, where it is to be had, and is not taken elsewhere."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.nn.attention import flex_attention

from kdx.attention import KernelAttention, flex, smoother
from kdx.attention.filters.window import Window
from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.row_sum import RowSum

pytestmark = pytest.mark.slow

TOKENS = 384  # more pairs than a bias or a mask is made whole for
WIDTH, HEADS = 32, 2


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def on_a_cpu(monkeypatch) -> None:
    """Takes a CPU for a GPU, for which torch has the plain formula of flex_attention and its gradient."""
    monkeypatch.setattr(flex, "DEVICE", "cpu")
    monkeypatch.setattr(flex, "FORMATS", (torch.float32, torch.bfloat16))
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *rows: None)


class Graphs:
    """A compiler that makes nothing, and knows what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, graph: GraphModule, inputs: Any) -> Callable[..., Any]:
        self.seen.append(str(graph.graph))
        return graph.forward

    @property
    def flex(self) -> bool:
        return any("flex_attention" in graph for graph in self.seen)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def attention(**choices: Any) -> KernelAttention:
    torch.manual_seed(0)
    made = KernelAttention(WIDTH, HEADS, **choices)
    for name, parameter in made.named_parameters():
        # Sinks begin at 0 and biases too, where nothing would be seen of them.
        if "sink" in name or name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return made


def results(run: Callable[..., Tensor], module: KernelAttention, x: Tensor, **where: Any) -> list[Tensor]:
    """The output, and the gradients of the input and of every parameter."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    output = run(x, **where)
    (output * draw(*output.shape, seed=1)).sum().backward()
    return [
        output.detach(),
        x.grad,
        *(torch.zeros(()) if one.grad is None else one.grad for one in module.parameters()),
    ]


def assert_alike(module: KernelAttention, graphs: Graphs, x: Tensor, **where: Any) -> None:
    compiled = torch.compile(module, backend=graphs)
    module.path = "fused"
    found = results(compiled, module, x, **where)
    module.path = "literal"
    for one, other in zip(found, results(module, module, x, **where), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * max(1.0, float(other.abs().max())))


BIASES = ["t5", "kerple-log", "kerple-power", "sandwich", "alibi"]
SPARSE: list[dict[str, Any]] = [
    {"filter": "window", "left": 100, "right": 30},
    {"filter": "window", "left": 40, "dilation": 3, "right": 20},
    {"filter": "window", "left": 40, "sinks": 4},
    {"filter": "strided", "stride": 48},
    {"filter": "fixed", "stride": 48, "summary": 3},
]


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("position", BIASES)
def test_a_bias_by_distance(position, filter):
    # Under a causal filter that of ALiBi is a column of the keys, for torch's own kernels.
    graphs = Graphs()
    assert_alike(attention(positions=(position,), filter=filter), graphs, draw(2, TOKENS, WIDTH))
    assert graphs.flex is ((position, filter) != ("alibi", "causal"))


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("reach", ["past", "both"])
@pytest.mark.parametrize("sparse", SPARSE, ids=str)
def test_a_sparse_filter(sparse, reach):
    graphs = Graphs()
    assert_alike(attention(reach=reach, **sparse), graphs, draw(2, TOKENS, WIDTH))
    assert graphs.flex


TOGETHER: list[dict[str, Any]] = [
    {"positions": ("t5", "rotary", "product"), "filter": "window", "left": 60},
    {"positions": ("kerple-log", "alibi"), "filter": "strided", "stride": 48, "kernel": "rbf"},
    {"positions": ("t5", "direct-sum"), "filter": "causal", "normaliser": "learned-sink"},
    {"filter": "window", "left": 60, "kernel": "rbf", "normaliser": "softmax-plus-one"},
    {"positions": ("t5",), "maps": "differential", "head_width": 32, "kv_heads": 1},
    {"positions": ("alibi",), "filter": "window", "left": 60, "qk_norm": "rms"},
]


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("choices", TOGETHER, ids=str)
def test_both_with_what_else_there_is(choices):
    graphs = Graphs()
    assert_alike(attention(**choices), graphs, draw(2, TOKENS, WIDTH))
    assert graphs.flex


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("choices", [{"positions": ("t5",)}, SPARSE[0], {"positions": ("t5",), "filter": "causal"}])
def test_padding_is_hidden_and_a_row_of_nothing_else_gives_zero(choices):
    padding = torch.zeros(3, TOKENS, dtype=torch.bool)
    padding[1, 130:], padding[2, :] = True, True
    graphs, module = Graphs(), attention(**choices)
    assert_alike(module, graphs, draw(3, TOKENS, WIDTH), key_padding=padding)
    assert graphs.flex
    module.path = "fused"
    smooth = torch.compile(module.smooth, backend=Graphs())
    assert not smooth(draw(3, TOKENS, WIDTH), key_padding=padding)[2].any()


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("choices", [{"positions": ("t5",), "filter": "causal"}, SPARSE[2]], ids=str)
def test_a_memory_is_seen_before_the_tokens(choices):
    graphs = Graphs()
    module = attention(memory_length=256, **choices)
    assert_alike(module, graphs, draw(2, 256, WIDTH), memory=draw(2, 256, WIDTH, seed=2))
    assert graphs.flex


@pytest.mark.usefixtures("on_a_cpu")
def test_rows_of_other_lengths_are_compiled_once_for_all():
    graphs, module = Graphs(), attention(positions=("t5",), filter="window", left=60)
    for tokens in (384, 512, 640, 768):
        assert_alike(module, graphs, draw(1, tokens, WIDTH))
    assert len(graphs.seen) == 2 and graphs.flex


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
def test_layers_with_the_same_filter_have_one_mask_of_blocks():
    def sorts(layers: int) -> int:
        def forward(graph: GraphModule, inputs: Any) -> Any:
            found.append(str(graph.graph).count("aten.sort"))
            return graph

        found: list[int] = []
        model = nn.Sequential(*(attention(**SPARSE[0]) for _ in range(layers)))
        compiler = aot_autograd(fw_compiler=forward, partition_fn=min_cut_rematerialization_partition)
        torch._dynamo.reset()
        torch.compile(model, backend=compiler)(draw(1, TOKENS, WIDTH))
        return found[0]

    assert sorts(2) == sorts(1) > 0


class Gradient(Exception):
    """What a compiler was given to compute the gradient."""


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("position", ["t5", pytest.param("kerple-power", marks=pytest.mark.long)])
def test_the_real_compiler_is_asked_for_the_gradient_of_a_bias(position, dynamic):
    """The formula of a CPU gives none in what is divided into forward and backward, so it is not run."""

    def backward(graph: GraphModule, inputs: Any) -> Any:
        raise Gradient(graph)

    compiler = aot_autograd(fw_compiler=lambda graph, inputs: graph, bw_compiler=backward)
    module = attention(positions=(position,), filter="causal")
    x = draw(2, TOKENS, WIDTH).requires_grad_()
    output = torch.compile(module, backend=compiler, dynamic=dynamic)(x)
    with pytest.raises(Gradient) as asked:
        output.sum().backward()
    graph = asked.value.args[0].graph
    assert "flex_attention_backward" in str(graph)
    (gradients,) = graph.output_node().args
    assert sum(one is not None for one in gradients) == 1 + len([*module.parameters()])


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("choices", [{"positions": ("t5",), "filter": "causal"}, SPARSE[3]], ids=str)
@torch.no_grad()
def test_half_precision(choices):
    graphs, module, x = Graphs(), attention(**choices), draw(2, TOKENS, WIDTH)
    compiled = torch.compile(module.smooth, backend=graphs)
    module.path = "literal"
    expected = module.smooth(x)
    module.path = "fused"
    with torch.autocast("cpu", torch.bfloat16):
        found = compiled(x)
    assert graphs.flex and found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.0, atol=2**-6 * float(expected.abs().max()))


ELSEWHERE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a short row": ({"tokens": 256}, {"positions": ("t5",)}),
    "a length that blocks do not divide": ({"tokens": 400}, {"positions": ("t5",)}),
    "narrow heads": ({}, {"positions": ("t5",), "head_width": 8}),
    "wide columns": ({}, {"positions": ("t5", "product"), "head_width": 160}),
    "dropout": ({}, {"positions": ("t5",), "dropout": 0.1}),
    "nothing but causal": ({}, {"filter": "causal"}),
    "a bias of the query": ({}, {"positions": ("lookup",)}),
    "a bias of both positions": ({}, {"positions": ("fire",)}),
    "a kernel without a dot product": ({}, {"positions": ("t5",), "kernel": "laplacian"}),
    "a value of the pair": ({}, {"positions": ("t5",), "value": "table"}),
    "a mask": ({"mask": torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()}, {"positions": ("t5",)}),
    "keys from elsewhere": ({"keys": draw(1, TOKENS, WIDTH)}, {"positions": ("t5",)}),
    "positions": ({"query_positions": torch.arange(TOKENS)}, {"positions": ("t5",)}),
}


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("name", ELSEWHERE)
@torch.no_grad()
def test_it_is_not_taken_for(name):
    where, choices = ELSEWHERE[name]
    x = draw(1, where.get("tokens", TOKENS), WIDTH)
    graphs = Graphs()
    torch.compile(attention(**choices), backend=graphs)(
        x, **{key: one for key, one in where.items() if key != "tokens"}
    )
    assert graphs.seen and not graphs.flex


@pytest.mark.usefixtures("on_a_cpu")
@torch.no_grad()
def test_it_is_taken_only_in_what_is_compiled_for_a_gpu_and_never_in_exact_arithmetic(monkeypatch):
    module, x = attention(positions=("t5",)), draw(1, TOKENS, WIDTH)

    def taken() -> bool:
        graphs = Graphs()
        torch._dynamo.reset()
        torch.compile(module, backend=graphs)(x)
        return graphs.flex

    assert taken()
    monkeypatch.setattr(flex, "fused_by_pair", None)
    module(x)
    torch.use_deterministic_algorithms(True)
    try:
        assert not taken()
    finally:
        torch.use_deterministic_algorithms(False)
    monkeypatch.setattr(flex, "DEVICE", "cuda")
    assert not taken()


@pytest.mark.long
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("padded", [False, True])
@torch.no_grad()
def test_machine_code_gives_the_same(padded):
    settings = Settings(WIDTH, HEADS, WIDTH // HEADS)
    query, key, value = (draw(2, HEADS, TOKENS, WIDTH // HEADS, seed=seed) for seed in range(3))
    table, window = draw(HEADS, 2 * TOKENS - 1, seed=3), Window(settings, left=60, sinks=2)
    padding = torch.arange(TOKENS) >= torch.tensor([[TOKENS], [200]])

    @torch.compile
    def compiled(query: Tensor, key: Tensor, value: Tensor, table: Tensor, padding: Tensor | None) -> Tensor:
        return flex.fused_by_pair(
            (query, key), value, by_distance=table, visible=window.visible, padding=padding, width=WIDTH // HEADS
        )

    i, j = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
    log_weight = query @ key.mT / (WIDTH // HEADS) ** 0.5 + table[:, j - i + TOKENS - 1]
    visible = window.visible(i, j) & ~padding[:, None, None, :] if padded else window.visible(i, j)
    expected = smoother.literal(log_weight, None, RowSum(settings), value, visible=visible)
    found = compiled(query, key, value, table, padding if padded else None)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("tokens", [384, 512])
@pytest.mark.parametrize(
    "choices",
    [*({"positions": (word,), "filter": "causal"} for word in BIASES), *SPARSE, *TOGETHER],
    ids=str,
)
def test_a_gpu_gives_the_same(choices, tokens):
    """In bf16, no farther from Eq. 2 in 64 bits than twice as far as the uncompiled way is, or a little."""
    module = attention(**choices).cuda()
    x = draw(2, tokens, WIDTH).cuda()

    def in_bf16(run: Callable[..., Tensor]) -> list[Tensor]:
        with torch.autocast("cuda", torch.bfloat16):
            return [one.double() for one in results(run, module, x)]

    found, uncompiled = in_bf16(torch.compile(module)), in_bf16(module)
    module.double().path = "literal"
    for one, other, exact in zip(found, uncompiled, results(module, module, x.double()), strict=True):
        bound = 2 * (other - exact).abs().max() + 2**-8 * exact.abs().max() + 2**-8
        assert (one - exact).abs().max() <= bound
