import math

import pytest
import torch
from torch import nn

from kdx.attention import Cache, KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.verification.rounding import ROUNDINGS, condition, roundings
from kdx.vocabulary import Reach, Symmetry
from tests.attention.by_hand import draw


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_tokens_of_another_width_are_refused_by_name() -> None:
    module = KernelAttention(8, 2, filter="causal", memory_length=2)
    for name, given in {
        "queries": {"queries": torch.zeros(1, 3, 6)},
        "keys": {"queries": torch.zeros(1, 3, 8), "keys": torch.zeros(1, 3, 6)},
        "memory": {"queries": torch.zeros(1, 3, 8), "memory": torch.zeros(1, 2, 6)},
    }.items():
        with pytest.raises(ValueError, match=f"{name}: 6 features; allowed: 8"):
            module(**given)


@pytest.mark.parametrize("filter", ["causal", "strided", "fixed"])
@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize("longer", [1, 4])
@torch.no_grad()
def test_every_query_keeps_a_key_of_a_source_of_any_length(filter: str, reach: Reach, longer: int) -> None:
    """Where the filter finds none that is real, all that are real."""
    module = KernelAttention(8, 2, filter=filter, stride=16, summary=2, reach=reach).double()
    target, source = draw(2, 160 * longer, 8), draw(2, 110 * longer, 8, seed=1)
    padding = torch.zeros(2, 110 * longer, dtype=torch.bool)
    padding[0, 5:], padding[1, :100] = True, True
    module.path = "literal"
    weights, expected = module.weights(target, source, key_padding=padding), module(target, source, key_padding=padding)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert not weights.masked_select(padding[:, None, None, :]).any()
    module.path = "fused"
    torch.testing.assert_close(module(target, source, key_padding=padding), expected)
    cache = Cache()
    steps = [module(target[:, at : at + 1], source, key_padding=padding, cache=cache) for at in range(20)]
    torch.testing.assert_close(torch.cat(steps, 1), expected[:, :20])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@torch.no_grad()
def test_half_precision_gives_numbers_also_of_large_features(kernel: str, dtype: torch.dtype) -> None:
    x = 4 * draw(2, 24, 256).float()
    module = KernelAttention(256, 2, kernel=kernel)
    for module.path in ("literal", "fused"):
        with torch.autocast("cpu", dtype=dtype):
            assert module(x).isfinite().all() or kernel == "linear"
            assert module.weights(x).isfinite().all() or kernel == "linear"
        assert module.to(dtype)(x.to(dtype)).isfinite().all() or kernel == "linear"
        module.float()


def test_key_positions_need_keys() -> None:
    with pytest.raises(ValueError, match="key_positions: given without keys"):
        KernelAttention(8, 2)(torch.zeros(1, 2, 8), key_positions=torch.arange(2))


def test_symmetric_has_one_projection_less() -> None:
    asymmetric, symmetric = (KernelAttention(16, 4, symmetry=symmetry) for symmetry in Symmetry)
    assert count(asymmetric) == 4 * (16 * 16 + 16)
    assert count(asymmetric) - count(symmetric) == 16 * 16 + 16


@pytest.mark.parametrize("symmetry", Symmetry)
def test_every_variant_starts_alike(symmetry: Symmetry) -> None:
    torch.manual_seed(0)
    module = KernelAttention(512, 8, symmetry=symmetry, positions=("product",))
    # Xavier for a matrix of 512 × 512, and for the same packed threefold.
    alone, packed = math.sqrt(6 / (512 + 512)), math.sqrt(6 / (512 + 3 * 512))
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
        else:
            bound = packed if name.split(".")[0] in ("query", "key", "value") else alone
            assert parameter.abs().max().item() == pytest.approx(bound, rel=1e-3)


def test_a_learned_table_is_kept_only_where_it_is_used() -> None:
    assert KernelAttention(8, 2, encoding="learned").encoding is None


def test_exponential_without_positions_is_multi_head_attention() -> None:
    module, theirs = KernelAttention(8, 2).double(), nn.MultiheadAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([module.query.weight, module.key.weight, module.value.weight]))
        theirs.out_proj.weight.copy_(module.output.weight)
    x, y = draw(2, 5, 8), draw(2, 3, 8, seed=1)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    output, weights = theirs(x, y, y, key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close(module(x, y, key_padding=padding), output)
    torch.testing.assert_close(module.weights(x, y, key_padding=padding), weights)


def test_causal_between_sequences_goes_by_position() -> None:
    module = KernelAttention(8, 2, filter="causal")
    weights = module.weights(torch.zeros(1, 3, 8), torch.zeros(1, 5, 8), query_positions=torch.tensor([0, 2, 9]))
    assert (weights[0, 0] > 0).sum(-1).tolist() == [1, 3, 5]


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    module, x = KernelAttention(8, 2, dropout=0.5).double(), draw(1, 6, 8)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


def test_a_memory_needs_a_length() -> None:
    with pytest.raises(ValueError, match="memory: given where memory_length is 0; allowed: memory_length of 1 or more"):
        KernelAttention(8, 2)(torch.zeros(1, 2, 8), memory=torch.zeros(1, 2, 8))


def test_queries_keep_their_positions_while_the_memory_fills() -> None:
    module = KernelAttention(
        8, 2, positions=("direct-sum",), encoding="learned", max_positions=7, memory_length=4
    ).double()
    x, memory = draw(1, 3, 8), draw(1, 6, 8, seed=1)
    # A learned table is reached neither below 0 nor at its end.
    places = [
        (projected.at_query.positions.tolist(), projected.at_key.positions.tolist())
        for length in (0, 2, 6)
        for projected in [module._project(x, None, memory=memory[:, :length])]
    ]
    assert places == [([4, 5, 6], [*range(first, 7)]) for first in (4, 2, 0)]
    torch.testing.assert_close(module(x, memory=memory[:, :0]), module(x))
    torch.testing.assert_close(module(x, memory=memory), module(x, memory=memory[:, 2:]))


def test_a_memory_of_the_source_is_seen_before_it() -> None:
    module = KernelAttention(8, 2, positions=("lookup",), memory_length=3, clip=2).double()
    x, source = draw(1, 3, 8), draw(1, 5, 8, seed=1)
    hidden = torch.tensor([[False, True]])
    joined = module(
        x,
        source,
        query_positions=torch.arange(3, 6),
        key_padding=torch.tensor([[False, False, False, False, True]]),
    )
    split = module(x, source[:, 3:], memory=source[:, :3], key_padding=hidden)
    whole = module(x, source, query_positions=torch.arange(3, 6), key_positions=torch.arange(5),
                   key_padding=torch.tensor([[False, False, False, False, True]]))  # fmt: skip
    torch.testing.assert_close(split, whole)
    assert not torch.allclose(joined, whole)  # without a memory, keys count from 3 as queries do


@pytest.mark.parametrize("kernel", ["linear", "elu", "favor", "cosformer", "taylor", "hedgehog"])
@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize(
    "more", [{}, {"positions": ("rotary",)}, {"positions": ("alibi",)}, {"value": "table"}], ids=str
)
@torch.no_grad()
def test_what_needs_no_pairs_is_the_same_with_pairs(
    kernel: str, filter: str, more: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three chunks, the last one not full, of few tokens, for each is compared with all.
    monkeypatch.setattr("kdx.attention.linear_attention.CHUNK", 16)
    monkeypatch.setattr("kdx.attention.module.FEWEST_TOKENS", 8)
    monkeypatch.setattr("kdx.attention.module.FEWEST_TOKENS_PER_FEATURE", 0)
    module, x = KernelAttention(8, 2, kernel=kernel, filter=filter, **more).double().eval(), draw(2, 40, 8)
    padding = torch.zeros(2, 40, dtype=torch.bool)
    padding[0, 30:], padding[1, :9] = True, True
    mask = draw(40, 40) > 0
    for where in ({}, {"key_padding": padding}, {"mask": mask}, {"query_positions": torch.arange(40) * 2}):
        module.path = "literal"
        expected = module.smooth(x, **where)
        unit = condition(lambda module, x, where=where: module.smooth(x, **where), module, x)
        module.path = "fused"
        assert roundings(module.smooth(x, **where), expected, unit) <= ROUNDINGS
