"""What every combination of kernel, symmetry, positions, value function and filter promises."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import Cache, KernelAttention
from kdx.attention.contracts import KernelFunction, PositionScheme
from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS, Product
from kdx.attention.positions import product as product_file
from kdx.attention.values import VALUES
from kdx.axes import Encoding, Filter, Kernel, Position, Symmetry, Value

WIDTH, HEADS = 8, 2
POSITION_LISTS = [(), *((scheme,) for scheme in POSITIONS), tuple(POSITIONS)]
VARIANTS = list(product(Kernel, Symmetry, POSITION_LISTS, Value, Filter))


def named(variant: tuple) -> str:
    kernel, symmetry, positions, value, filter = variant
    return f"{kernel}-{symmetry}-{'+'.join(positions) or 'none'}-{value}-{filter}"


every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=named)


def attention(variant: tuple, **others) -> KernelAttention:
    """In float64, with biases that are not zero, so that tying and padding are really put to the test."""
    torch.manual_seed(3)
    names = ("kernel", "symmetry", "positions", "value", "filter")
    module = KernelAttention(WIDTH, HEADS, **dict(zip(names, variant, strict=True)), **others).double()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.normal_()
    return module


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def outcome(module: KernelAttention, path: str, *inputs: Tensor, **where) -> list[Tensor]:
    """The output, and the gradients of all parameters and inputs."""
    module.path = path
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    output = module(*inputs, **where)
    leaves = [*inputs, *module.parameters()]
    (output * draw(*output.shape, seed=9)).sum().backward()
    gradients = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.clone() for leaf in leaves]
    module.zero_grad()
    return [output.detach(), *gradients]


@pytest.fixture(params=["bias", "columns"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both exact forms of the product factor, whatever the size."""
    if request.param == "columns":
        monkeypatch.setattr(product_file, "LARGEST_BIAS", 0)


def test_each_family_covers_its_words() -> None:
    assert set(KERNELS) == set(Kernel)
    assert set(POSITIONS) == set(Position) - {Position.NONE}
    assert set(ENCODINGS) == set(Encoding)
    assert set(VALUES) == set(Value)
    assert set(FILTERS) == set(Filter)


@every_variant
@pytest.mark.usefixtures("form")
def test_fused_path_equals_literal_path_with_its_gradients(variant: tuple) -> None:
    module = attention(variant)
    queries, keys = draw(2, 5, WIDTH), draw(2, 4, WIDTH, seed=1)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    for inputs, where in (((queries,), {}), ((queries, keys), {}), ((queries, keys), {"key_padding": padding})):
        fused, literal = (outcome(module, path, *inputs, **where) for path in ("fused", "literal"))
        assert fused[0].shape == queries.shape
        for one, other in zip(fused, literal, strict=True):
            assert one.isfinite().all()
            close(one, other)


@settings(deadline=None)  # a busy machine is no fault
@given(
    variant=st.sampled_from(VARIANTS),
    encoding=st.sampled_from(Encoding),
    lengths=st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    own=st.booleans(),
    data=st.data(),
)
def test_paths_agree_at_any_shape_padding_and_position(variant, encoding, lengths, own, data) -> None:
    rows, asked, seen = lengths
    seen = asked if own else seen
    module = attention(variant, encoding=encoding)
    inputs = (draw(rows, asked, WIDTH),) if own else (draw(rows, asked, WIDTH), draw(rows, seen, WIDTH, seed=1))
    where = {}
    if data.draw(st.booleans(), "padding"):
        where["key_padding"] = torch.tensor(data.draw(st.lists(st.lists(st.booleans(), min_size=seen, max_size=seen),
                                                               min_size=rows, max_size=rows)))  # fmt: skip
    if data.draw(st.booleans(), "positions"):
        where["query_positions"] = torch.tensor(
            data.draw(st.lists(st.lists(st.integers(0, 20), min_size=asked, max_size=asked),
                               min_size=rows, max_size=rows)))  # fmt: skip
    fused, literal = (outcome(module, path, *inputs, **where) for path in ("fused", "literal"))
    for one, other in zip(fused, literal, strict=True):
        assert one.isfinite().all()
        close(one, other)


@every_variant
def test_gradients_are_those_of_the_function(variant: tuple) -> None:
    module = attention(variant)
    queries, keys = draw(1, 2, WIDTH).requires_grad_(), draw(1, 3, WIDTH, seed=1).requires_grad_()
    for module.path in ("fused", "literal"):
        assert torch.autograd.gradcheck(module, (queries, keys), fast_mode=True)


@every_variant
def test_padding_on_either_side_changes_nothing(variant: tuple) -> None:
    module = attention(variant)
    x, junk = draw(2, 4, WIDTH), 5 * draw(2, 3, WIDTH, seed=1)
    for module.path in ("fused", "literal"):
        alone = module(x)
        padding = torch.zeros(2, 7, dtype=torch.bool)
        right = module(torch.cat([x, junk], 1), key_padding=padding.index_fill(1, torch.arange(4, 7), True))
        close(right[:, :4], alone)
        left = module(
            torch.cat([junk, x], 1),
            query_positions=torch.tensor([0, 0, 0, 0, 1, 2, 3]),
            key_padding=padding.index_fill(1, torch.arange(3), True),
        )
        close(left[:, 3:], alone)


@every_variant
def test_a_row_of_padding_gives_zero_and_no_nan(variant: tuple) -> None:
    module = attention(variant)
    x = draw(2, 3, WIDTH).requires_grad_()
    padding = torch.tensor([[True] * 3, [False] * 3])
    for module.path in ("fused", "literal"):
        smoothed = module.smooth(x, key_padding=padding)
        smoothed.square().sum().backward()
        assert (smoothed[0] == 0).all()
        assert (smoothed[1] != 0).any()
        assert (module.weights(x, key_padding=padding)[0] == 0).all()
        assert x.grad.isfinite().all()
        assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in module.parameters())


@every_variant
def test_decoding_with_a_cache_equals_teacher_forcing(variant: tuple) -> None:
    module = attention(variant)
    target, source = draw(3, 6, WIDTH), draw(3, 4, WIDTH, seed=1)
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, False, False, True]])
    steps = (1, 1, 3, 1)
    for module.path in ("fused", "literal"):
        cache = Cache()
        decoded = [module(part, source, key_padding=padding, cache=cache) for part in target.split(steps, 1)]
        close(torch.cat(decoded, 1), module(target, source, key_padding=padding))
        if variant[-1] is Filter.CAUSAL:
            cache = Cache()
            close(torch.cat([module(part, cache=cache) for part in target.split(steps, 1)], 1), module(target))


@every_variant
def test_weights_sum_to_one_over_the_visible_keys(variant: tuple) -> None:
    module = attention(variant)
    weights = module.weights(draw(2, 4, WIDTH), key_padding=torch.tensor([[False] * 4, [False, False, False, True]]))
    assert weights.shape == (2, HEADS, 4, 4)
    close(weights.sum(-1), torch.ones(2, HEADS, 4, dtype=torch.float64))
    assert (weights[1, :, :, 3] == 0).all()
    if variant[-1] is Filter.CAUSAL:
        assert (weights.triu(1) == 0).all()


@every_variant
def test_permuting_tokens_permutes_the_output_only_without_positions_and_mask(variant: tuple) -> None:
    *_, positions, value, filter = variant
    x, order = draw(1, 5, WIDTH), torch.tensor([3, 0, 4, 1, 2])
    module = attention(variant)
    blind = not positions and value is Value.WITHOUT_POSITION and filter is Filter.FULL
    assert torch.allclose(module(x[:, order]), module(x)[:, order], atol=1e-10) is blind


@every_variant
def test_float32_stays_near_float64(variant: tuple) -> None:
    module, x = attention(variant), draw(2, 5, WIDTH)
    expected = module(x)
    torch.testing.assert_close(module.float()(x.float()).double(), expected, rtol=1e-4, atol=1e-4)


@every_variant
def test_bf16_autocast_stays_near_float32(variant: tuple) -> None:
    module, x = attention(variant).float(), draw(2, 5, WIDTH).float()
    for module.path in ("fused", "literal"):
        expected = module(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = module(x)
            assert module.weights(x).dtype is torch.float32
        torch.testing.assert_close(output.float(), expected, rtol=0.1, atol=0.1)


class Laplacian(KernelFunction):
    """exp(-|q - k|₁): no dot product gives it."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return -torch.cdist(query, key, p=1)


class Linear(KernelFunction):
    """⟨q, k⟩, signed."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return (query @ key.transpose(-2, -1)).abs().log()

    def sign(self, query: Tensor, key: Tensor) -> Tensor:
        return (query @ key.transpose(-2, -1)).sign()


class Distance(PositionScheme):
    """exp(-|i - j|), from integer positions alone."""

    uses_vector = False

    def log_weight(self, query: Tensor, at_query, at_key) -> Tensor:
        distance = at_query.positions.unsqueeze(-1) - at_key.positions.unsqueeze(-2)
        return -distance.abs().to(query.dtype).unsqueeze(-3)


def test_a_new_kernel_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, Kernel.RBF, Laplacian)
    module = attention((Kernel.RBF, Symmetry.SYMMETRIC, (Position.PRODUCT,), Value.WITH_POSITION, Filter.CAUSAL))
    fused, literal = (outcome(module, path, draw(2, 5, WIDTH)) for path in ("fused", "literal"))
    for one, other in zip(fused, literal, strict=True):
        close(one, other)


def test_a_signed_kernel_divides_by_its_raw_row_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, Kernel.RBF, Linear)
    module = attention((Kernel.RBF, Symmetry.ASYMMETRIC, (), Value.WITHOUT_POSITION, Filter.FULL))
    weights = module.weights(draw(1, 4, WIDTH))
    assert (weights < 0).any()
    close(weights.sum(-1), torch.ones(1, HEADS, 4, dtype=torch.float64))


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("filter", Filter)
def test_a_new_scheme_is_one_class_and_one_line(monkeypatch, kernel: Kernel, filter: Filter) -> None:
    monkeypatch.setitem(POSITIONS, Position.DIRECT_SUM, Distance)
    positions = (Position.DIRECT_SUM, Position.PRODUCT)
    module = attention((kernel, Symmetry.ASYMMETRIC, positions, Value.WITHOUT_POSITION, filter))
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    for where in ({}, {"query_positions": torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, 0, 0]]), "key_padding": padding}):
        fused, literal = (outcome(module, path, draw(2, 5, WIDTH), **where) for path in ("fused", "literal"))
        for one, other in zip(fused, literal, strict=True):
            close(one, other)
    assert isinstance(module.positions["product"], Product)
