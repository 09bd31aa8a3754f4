"""What every combination of kernel, symmetry, positions, value function and filter promises."""

from itertools import product

import pytest
import torch
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import Cache, KernelAttention
from kdx.attention import columns as columns_file
from kdx.attention import module as module_file
from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import PositionScheme
from kdx.attention.kernels import KERNELS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.positions.product import Product
from kdx.attention.values import VALUES
from kdx.attention.verification.cases import held
from kdx.vocabulary import Symmetry
from tests.attention.by_hand import draw

WIDTH, HEADS = 8, 2
# Which kernels a normaliser has a meaning for.
NORMALISED = [
    (kernel.word, normaliser.word)
    for normaliser in NORMALISERS.definitions()
    for kernel in KERNELS.definitions()
    if kernel.gives in normaliser.kernels
]
# So small that a handful of tokens meets the end of a table, and blocks with and without a summary.
SMALL = {"clip": 2, "stride": 3, "summary": 1, "left": 2, "right": 1, "sinks": 1, "top_k": 2}
PAIRED = [("direct-sum", "lookup"), ("relative", "product"), tuple(POSITIONS)]
POSITION_LISTS = [(), *((scheme,) for scheme in POSITIONS), *PAIRED]
ALL = list(product(KERNELS, Symmetry, POSITION_LISTS, VALUES, FILTERS))
# Every kernel with every list of positions, the other words in turn. Hypothesis draws from all.
PAIRS = [
    (
        kernel,
        list(Symmetry)[(i + j) % 2],
        positions,
        list(VALUES)[(i + j) % 3],
        list(FILTERS)[(i + j // 2) % len(FILTERS)],
    )
    for i, kernel in enumerate(KERNELS)
    for j, positions in enumerate(POSITION_LISTS)
]
# Every word a few times.
VARIANTS = PAIRS[::4]


def named(variant: tuple) -> str:
    kernel, symmetry, positions, value, filter = variant
    return f"{kernel}-{symmetry}-{'+'.join(positions) or 'none'}-{value}-{filter}"


every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=named)


def attention(variant: tuple, **others) -> KernelAttention:
    """Return an attention in float64 with biases that are not zero, so that faults of tying and padding show."""
    torch.manual_seed(3)
    names = ("kernel", "symmetry", "positions", "value", "filter")
    arguments = SMALL | dict(zip(names, variant, strict=True)) | others
    module = KernelAttention(WIDTH, HEADS, **arguments).double()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1 or (parameter == 0).all():
                parameter.normal_()
    return module


def close(one: Tensor, other: Tensor, slack: float = 1.0) -> None:
    """Within 1e-10 of the largest number, times what a sum of both signs loses."""
    allowed = 1e-10 * slack * max(1.0, float(other.detach().abs().max()) if other.numel() else 1.0)
    assert torch.allclose(one, other, rtol=0, atol=allowed), float((one - other).abs().max()) / allowed


def slack(module: KernelAttention, *inputs: Tensor, **where) -> float:
    """The square, as gradients need it, of the rows' condition number, which is above 1 for the linear kernel only."""
    with torch.no_grad():
        return max(1.0, float(module.weights(*inputs, **where).abs().sum(-1).max())) ** 2


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


def paths_agree(module: KernelAttention, *inputs: Tensor, **where) -> None:
    fused, literal = (outcome(module, path, *inputs, **where) for path in ("fused", "literal"))
    loose = slack(module, *inputs, **where)
    for one, other in zip(fused, literal, strict=True):
        assert one.isfinite().all()
        close(one, other, loose)


def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused path as it is at great lengths."""
    monkeypatch.setattr(module_file, "LARGEST_MASK", 0)
    monkeypatch.setattr(module_file, "LARGEST_KEPT", 0)
    monkeypatch.setattr(module_file, "BLOCK", 0)
    monkeypatch.setattr(module_file, "SMALLEST_BLOCK", 2)


@pytest.fixture(params=["whole", "columns", "blocks"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exact form of the fused path, whatever the size."""
    if request.param == "columns":
        monkeypatch.setattr(columns_file, "LARGEST_BIAS", 0)
    if request.param == "blocks":
        in_blocks(monkeypatch)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kernel", KERNELS)
def test_fused_path_equals_literal_path_with_its_gradients(kernel: str) -> None:
    queries, keys = draw(2, 5, WIDTH), draw(2, 4, WIDTH, seed=1)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    for variant in PAIRS:
        if variant[0] is kernel:
            module = attention(variant)
            paths_agree(module, queries)
            paths_agree(module, queries, keys, key_padding=padding)


@settings(deadline=None)  # a busy machine is no fault
@given(
    variant=st.sampled_from(ALL),
    encoding=st.sampled_from(list(ENCODINGS)),
    normaliser=st.sampled_from([None, *NORMALISERS]),
    lengths=st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    own=st.booleans(),
    blocks=st.booleans(),
    data=st.data(),
)
def test_paths_agree_at_any_shape_padding_and_position(
    variant, encoding, normaliser, lengths, own, blocks, data
) -> None:
    rows, asked, seen = lengths
    seen = asked if own else seen
    remembered = data.draw(st.integers(0, 3), "memory")
    more = {
        "encoding": encoding,
        "memory_length": remembered,
        "clip": data.draw(st.sampled_from([0, 1, 4, None]), "clip"),
        "sharing": data.draw(st.sampled_from(["per-head", "shared"]), "sharing"),
        "reach": data.draw(st.sampled_from(["past", "both"]), "reach"),
        "summary": data.draw(st.integers(0, 3), "summary"),
        "max_positions": 30,
    }
    more["temperature"] = data.draw(st.sampled_from([1.0, 0.5, 3.0]), "temperature")
    more["normaliser"] = normaliser if (variant[0], normaliser) in NORMALISED else None
    module = attention(variant, **more)
    inputs = (draw(rows, asked, WIDTH),) if own else (draw(rows, asked, WIDTH), draw(rows, seen, WIDTH, seed=1))
    where = {"memory": draw(rows, remembered, WIDTH, seed=2)} if remembered else {}
    if data.draw(st.booleans(), "padding"):
        where["key_padding"] = torch.tensor(data.draw(st.lists(st.lists(st.booleans(), min_size=seen, max_size=seen),
                                                               min_size=rows, max_size=rows)))  # fmt: skip
    if data.draw(st.booleans(), "positions"):
        where["query_positions"] = torch.tensor(
            data.draw(st.lists(st.lists(st.integers(3, 20), min_size=asked, max_size=asked),
                               min_size=rows, max_size=rows)))  # fmt: skip
    if data.draw(st.booleans(), "mask"):
        where["mask"] = draw(asked, seen + remembered, seed=3) > -1
    with pytest.MonkeyPatch.context() as patch:
        if blocks:
            in_blocks(patch)
        paths_agree(module, *inputs, **where)


@every_variant
def test_every_variant_has_every_property(variant: tuple) -> None:
    module, x = attention(variant, memory_length=2).eval(), draw(2, 6, WIDTH)
    result = list(held(named(variant), module, x, causal=variant[-1] != "full"))
    # A bias, which is not zero here, is added to a query of any length.
    missed = [
        finding for finding in result if not finding.holds and finding.check != "the norm of the query is not seen"
    ]
    assert result and missed == []


@every_variant
def test_decoding_over_a_source_equals_teacher_forcing(variant: tuple) -> None:
    module = attention(variant)
    target, source = draw(3, 6, WIDTH), draw(3, 4, WIDTH, seed=1)
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, False, False, True]])
    loose = slack(module, target, source, key_padding=padding)
    for module.path in ("fused", "literal"):
        cache = Cache()
        decoded = [module(part, source, key_padding=padding, cache=cache) for part in target.split((1, 1, 3, 1), 1)]
        close(torch.cat(decoded, 1), module(target, source, key_padding=padding), loose)


@every_variant
@pytest.mark.usefixtures("form")
def test_a_row_of_padding_gives_zero_and_no_nan(variant: tuple) -> None:
    module = attention(variant)
    x = draw(2, 6, WIDTH).requires_grad_()
    padding = torch.tensor([[True] * 6, [False] * 6])
    for module.path in ("fused", "literal"):
        smoothed = module.smooth(x, key_padding=padding)
        smoothed.square().sum().backward()
        assert (smoothed[0] == 0).all()
        assert (smoothed[1] != 0).any()
        assert (module.weights(x, key_padding=padding)[0] == 0).all()
        assert x.grad.isfinite().all()
        assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in module.parameters())


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("kernel", "normaliser"), [pair for pair in NORMALISED if pair[0] in ("linear", "polynomial", "relu-squared")]
)
def test_a_query_whose_weights_are_all_zero_gets_zero_and_no_nan(kernel: str, normaliser: str) -> None:
    module = KernelAttention(WIDTH, HEADS, kernel=kernel, normaliser=normaliser, bias=False).double()
    x = draw(1, 3, WIDTH)
    x[0, 1] = 0
    x.requires_grad_()
    for module.path in ("fused", "literal"):
        smoothed = module.smooth(x)
        smoothed.square().sum().backward()
        assert (smoothed[0, :, 1] == 0).all()
        assert x.grad.isfinite().all()


@every_variant
def test_a_mask_hides_what_a_padding_hides(variant: tuple) -> None:
    module, x = attention(variant), draw(2, 4, WIDTH)
    padding = torch.tensor([[False] * 4, [True, False, False, False]])
    for module.path in ("fused", "literal"):
        expected = module(x, key_padding=padding)
        loose = slack(module, x, key_padding=padding)
        for mask in (~padding[:, None, :], ~padding[:, None, None, :].expand(2, HEADS, 4, 4)):
            close(module(x, mask=mask), expected, loose)


class Distance(PositionScheme):
    """exp(-|i - j|), from integer positions alone."""

    def log_weight(self, query: Tensor, at_query, at_key) -> Tensor:
        distance = at_query.positions.unsqueeze(-1) - at_key.positions.unsqueeze(-2)
        return -distance.abs().to(query.dtype).unsqueeze(-3)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kernel", KERNELS)
@each("filter", FILTERS)
def test_a_scheme_of_ones_own_is_one_class(kernel: str, filter: str) -> None:
    positions = (Distance, "product")
    module = attention((kernel, Symmetry.ASYMMETRIC, positions, "without-position", filter))
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    for where in ({}, {"query_positions": torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, 0, 0]]), "key_padding": padding}):
        paths_agree(module, draw(2, 5, WIDTH), **where)
    assert isinstance(module.positions["product"], Product)
