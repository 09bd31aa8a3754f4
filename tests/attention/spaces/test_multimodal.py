import math
import pickle

import pytest
import torch
from torch import Tensor, nn

from kdx.attention.encodings import ENCODINGS
from kdx.attention.kernels import KERNELS
from kdx.attention.spaces.multimodal import Combine, CrossmodalAttention, MultimodalAttention
from kdx.attention.verification.cases import held
from kdx.attention.verification.rounding import ROUNDINGS, condition, roundings
from kdx.vocabulary import Symmetry
from tests.attention.by_hand import close, draw

WIDTHS, HEADS, D = (4, 6, 2), 2, 3
LISTS = [(), ("direct-sum",), ("product",), ("direct-sum", "product"), ("lookup",)]
PATHS = ("fused", "literal")
PLACELESS = [known.word for known in KERNELS.definitions() if not known.sees_positions]
POSITIVE = [kernel for kernel in PLACELESS if kernel != "linear"]  # whose rows may nearly cancel
NAMES = ("language", "vision", "sound")


def joint(**arguments) -> MultimodalAttention:
    torch.manual_seed(0)
    return MultimodalAttention(WIDTHS, HEADS, **{"head_width": D} | arguments).double()


def sinusoid(position: int, width: int) -> Tensor:
    return ENCODINGS["sinusoidal"](width, 0).double()(torch.tensor([position]))[0]


def kernel_of(kernel: str, query: Tensor, key: Tensor) -> Tensor:
    if kernel == "rbf":
        return (-(query - key).square().sum() / math.sqrt(D)).exp()
    if kernel == "polynomial":
        return (query @ key).square()
    return (query @ key) if kernel == "linear" else (query @ key / math.sqrt(D)).exp()


@pytest.mark.parametrize("positions", LISTS[:4], ids=str)
@pytest.mark.parametrize("kernel", ["linear", "polynomial", "exponential", "rbf"])
def test_weights_are_the_product_of_the_modalities_pair_by_pair(positions, kernel: str) -> None:
    module, x = joint(positions=positions, kernel=kernel), draw(1, 4, sum(WIDTHS))
    parts = x[0].split(WIDTHS, -1)
    t = torch.stack([torch.cat([sinusoid(p, width) for width in WIDTHS]) for p in range(4)])
    weights = torch.ones(HEADS, 4, 4, dtype=torch.float64)
    for head in range(HEADS):
        own = slice(head * D, (head + 1) * D)
        for q in range(4):
            for k in range(4):
                for m, part in enumerate(parts):
                    f_q, f_k = part[q], part[k]
                    if "direct-sum" in positions:
                        f_q, f_k = f_q + sinusoid(q, WIDTHS[m]), f_k + sinusoid(k, WIDTHS[m])
                    query, key = (side.projections[m] for side in (module.query, module.key))
                    weights[head, q, k] *= kernel_of(kernel, query(f_q)[own], key(f_k)[own])
                if "product" in positions:
                    all_of_head = slice(3 * head * D, 3 * (head + 1) * D)
                    matrix = module.positions["product"].projection.weight.T[:, all_of_head]
                    weights[head, q, k] *= ((t[q] @ matrix) @ (t[k] @ matrix) / math.sqrt(3 * D)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    value = module.value(x[0]).unflatten(-1, (HEADS, 3 * D)).transpose(0, 1)
    unit = condition(lambda module, x: module.smooth(x)[0], module, x)
    for module.path in PATHS:
        assert roundings(module.smooth(x)[0], weights @ value, unit) <= ROUNDINGS


@pytest.mark.parametrize("positions", LISTS, ids=str)
@pytest.mark.parametrize("kernel", POSITIVE)
@pytest.mark.parametrize("symmetry", Symmetry)
def test_paths_agree_with_their_gradients(positions, kernel: str, symmetry: Symmetry) -> None:
    module = joint(positions=positions, kernel=kernel, symmetry=symmetry, value="with-position")
    x, padding = draw(2, 5, sum(WIDTHS)), torch.tensor([[False] * 5, [False, False, False, True, True]])
    outcomes = []
    for module.path in PATHS:
        leaf = x.clone().requires_grad_()
        output = module(leaf, key_padding=padding)
        module.zero_grad()
        (output * draw(*output.shape, seed=1)).sum().backward()
        outcomes.append([output, leaf.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
    for one, other in zip(*outcomes, strict=True):
        assert one.isfinite().all()
        # Products of three small kernels have steeper gradients.
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positions", LISTS, ids=str)
@pytest.mark.parametrize("kernel", ["exponential", "rbf"])
@pytest.mark.parametrize("filter", ["full", "causal"])
def test_it_has_every_property_of_an_attention(positions, kernel: str, filter: str) -> None:
    module = joint(positions=positions, kernel=kernel, filter=filter, memory_length=2).eval()
    result = list(held("multimodal", module, draw(2, 6, sum(WIDTHS)), causal=filter == "causal"))
    assert result and [finding for finding in result if not finding.holds] == []


@pytest.mark.parametrize("module", [joint(encoding="learned"), CrossmodalAttention(8, 2, NAMES)])
def test_state_holds_parameters_only(module: nn.Module) -> None:
    assert list(module.state_dict()) == [name for name, _ in module.named_parameters()]
    pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": []}, "widths: []; allowed: one or more, each 1 or more"),
        ({"widths": [4, 0]}, "widths: [4, 0]; allowed: one or more, each 1 or more"),
        (
            {"widths": [4, 4, 2]},
            "heads: 2 heads of 3 modalities do not divide width 10; allowed: a divisor, or a head_width",
        ),
    ],
)
def test_what_does_not_fit_in_a_product_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        MultimodalAttention(**{"heads": 2} | arguments)
    assert str(refusal.value) == message


def pairs(**arguments) -> CrossmodalAttention:
    torch.manual_seed(0)
    return CrossmodalAttention(8, 2, NAMES, **arguments).double()


def streams() -> dict[str, Tensor]:
    return {name: draw(2, length, 8, seed=length) for name, length in zip(NAMES, (4, 6, 3), strict=True)}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("combine", Combine)
def test_each_ordered_pair_has_its_kernel(combine: Combine, path: str) -> None:
    module, given = pairs(combine=combine, path=path), streams()
    assert len(module.pairs) == 6
    output = module(given)
    for target in NAMES:
        learned = []
        for source in NAMES:
            if source == target:
                continue
            part = module.pairs[f"{target}-from-{source}"]
            assert part.path == path
            f, g = (
                given[name] + torch.stack([sinusoid(p, 8) for p in range(given[name].size(1))])
                for name in (target, source)
            )
            query, key, value = (
                side(x).unflatten(-1, (2, 4)).transpose(1, 2)
                for side, x in ((part.query, f), (part.key, g), (part.value, given[source]))
            )
            weights = (query @ key.transpose(-2, -1) / 2).softmax(-1)
            learned.append(part.output((weights @ value).transpose(1, 2).flatten(2)))
        close(output[target], sum(learned) if combine is Combine.SUM else torch.cat(learned, -1))


def test_streams_may_be_padded_and_stand_at_other_times() -> None:
    module, given = pairs(positions=("direct-sum", "product")), streams()
    wide = {**given, "vision": torch.cat([draw(2, 2, 8, seed=1), given["vision"]], 1)}
    output = module(
        wide,
        positions={"vision": torch.tensor([0, 0, 0, 1, 2, 3, 4, 5])},
        key_padding={"vision": torch.tensor([[True] * 2 + [False] * 6] * 2)},
    )
    plain = module(given)
    for name in NAMES:
        close(output[name][:, 2:] if name == "vision" else output[name], plain[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modalities": ["vision"]}, "modalities: vision; allowed: two or more, each once"),
        ({"modalities": ["vision", "vision"]}, "modalities: vision, vision; allowed: two or more, each once"),
        ({"combine": "mean"}, "combine: 'mean'; allowed: concatenation, sum"),
    ],
)
def test_what_does_not_fit_in_pairs_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        CrossmodalAttention(**{"width": 8, "heads": 2, "modalities": NAMES} | arguments)
    assert str(refusal.value) == message


def test_a_missing_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="streams: vision; allowed: all of language, vision, sound"):
        pairs()({"vision": draw(1, 2, 8)})
