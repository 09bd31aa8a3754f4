import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.spaces.graph import GraphAttention, Relation
from kdx.vocabulary import Symmetry
from tests.attention.by_hand import close, draw
from tests.attention.largest_tensor import LargestTensor

WIDTH, HEADS, D, LABELS = 8, 2, 4, 3
PATHS = ("fused", "literal")
RELATIONS = [(), (Relation.KEY,), (Relation.VALUE,), (Relation.KEY, Relation.VALUE)]
every_relation = pytest.mark.parametrize("relations", RELATIONS, ids=str)
PLACELESS = [known.word for known in KERNELS.definitions() if not known.sees_positions]
POSITIVE = [kernel for kernel in PLACELESS if kernel != "linear"]  # whose rows may nearly cancel


def edges(rows: int, nodes: int, seed: int = 0) -> Tensor:
    """Random labels, some of them no edge, but each node sees itself."""
    labels = torch.randint(-1, LABELS, (rows, nodes, nodes), generator=torch.Generator().manual_seed(seed))
    return labels.where(~torch.eye(nodes, dtype=torch.bool), 0)


def attention(relations: tuple[Relation, ...] = tuple(Relation), **parts) -> GraphAttention:
    torch.manual_seed(0)
    return GraphAttention(WIDTH, HEADS, LABELS, relations=relations, **parts).double()


def expected(module: GraphAttention, x: Tensor, labels: Tensor, hidden: list[bool]) -> Tensor:
    """Eq. 3 and 4 of Shaw et al. with the exponential kernel, node by node: (H, T, D) from (T, M)."""
    part = module.attention
    output = torch.zeros(HEADS, len(x), D, dtype=torch.float64)
    for head in range(HEADS):
        own = slice(head * D, (head + 1) * D)
        tables = {name: table[min(head, len(table) - 1)] for name, table in module.vectors.items()}
        for i in range(len(x)):
            total = 0.0
            for j in range(len(x)):
                label = int(labels[i, j])
                if label < 0 or hidden[j]:
                    continue
                key, value = part.key(x[j])[own], part.value(x[j])[own]
                if "key" in tables:
                    key = key + tables["key"][label]
                if "value" in tables:
                    value = value + tables["value"][label]
                weight = (part.query(x[i])[own] @ key / math.sqrt(D)).exp().item()
                total += weight
                output[head, i] += weight * value
            output[head, i] /= total or 1.0
    return output


@every_relation
@pytest.mark.parametrize("sharing", ["per-head", "shared"])
def test_it_is_the_formula_node_by_node(relations: tuple[Relation, ...], sharing: str) -> None:
    module, x, labels = attention(relations, sharing=sharing), draw(2, 5, WIDTH), edges(2, 5)
    padding = torch.tensor([[False] * 5, [False, False, True, False, True]])
    for module.path in PATHS:
        smoothed = module.smooth(x, labels, key_padding=padding)
        for row in range(2):
            close(smoothed[row], expected(module, x[row], labels[row], padding[row].tolist()))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("relations", [(), (Relation.KEY,)], ids=str)
@pytest.mark.parametrize("kernel", ["exponential", "rbf", "linear"])
def test_weights_are_those_by_which_values_are_summed(relations, kernel: str, path: str) -> None:
    module = attention(relations, kernel=kernel, path=path)
    x, labels = draw(2, 5, WIDTH), edges(2, 5)
    padding = torch.tensor([[False] * 5, [False] * 4 + [True]])
    weights = module.weights(x, labels, key_padding=padding)
    assert weights.shape == (2, HEADS, 5, 5) and not weights[1, :, :, 4].any()
    value = module.attention.value(x).unflatten(-1, (HEADS, D)).transpose(1, 2)
    torch.testing.assert_close(weights @ value, module.smooth(x, labels, key_padding=padding), rtol=1e-8, atol=1e-8)


@every_relation
@pytest.mark.parametrize("kernel", POSITIVE)
@pytest.mark.parametrize("symmetry", Symmetry)
def test_paths_agree_with_their_gradients(relations, kernel: str, symmetry: Symmetry) -> None:
    module, x, labels = attention(relations, kernel=kernel, symmetry=symmetry), draw(2, 5, WIDTH), edges(2, 5)
    padding = torch.tensor([[False] * 5, [False, False, False, False, True]])
    outcomes = []
    for module.path in PATHS:
        leaf = x.clone().requires_grad_()
        output = module(leaf, labels, key_padding=padding)
        module.zero_grad()
        (output * draw(*output.shape, seed=1)).sum().backward()
        outcomes.append([output, leaf.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
    for one, other in zip(*outcomes, strict=True):
        assert one.isfinite().all()
        close(one, other)


@settings(deadline=None)
@given(order=st.permutations(range(5)), path=st.sampled_from(PATHS))
def test_permuting_nodes_with_their_edges_permutes_the_output(order: list[int], path: str) -> None:
    module, x, labels = attention(path=path), draw(2, 5, WIDTH), edges(2, 5)
    close(module(x[:, order], labels[:, order][:, :, order]), module(x, labels)[:, order])


def test_without_relations_a_complete_graph_is_a_set() -> None:
    module, x = attention(()), draw(2, 5, WIDTH)
    plain = KernelAttention(WIDTH, HEADS).double()
    plain.load_state_dict(module.attention.state_dict())
    for module.path in PATHS:
        close(module(x, torch.zeros(5, 5, dtype=torch.long)), plain(x))


@every_relation
def test_a_node_without_edges_gives_zero_and_no_nan(relations: tuple[Relation, ...]) -> None:
    module, labels = attention(relations), edges(2, 4)
    labels[0, 1] = -1
    for module.path in PATHS:
        x = draw(2, 4, WIDTH).requires_grad_()
        smoothed = module.smooth(x, labels)
        smoothed.square().sum().backward()
        assert (smoothed[0, :, 1] == 0).all()
        assert smoothed.isfinite().all()
        assert x.grad.isfinite().all()


def test_state_holds_parameters_only() -> None:
    module = attention()
    module(draw(1, 3, WIDTH), edges(1, 3))
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}
    assert tuple(module.vectors["key"].shape) == (HEADS, LABELS, D)
    pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("label", [-2, LABELS])
def test_a_label_out_of_range_is_refused(label: int) -> None:
    labels = torch.tensor([[0, 1], [label, 2]])
    with pytest.raises(ValueError, match=f"labels: {label} is no label; allowed: 0 to 2, and -1 for no edge"):
        attention()(draw(1, 2, WIDTH), labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": 0}, "labels: 0; allowed: 1 or more"),
        ({"relations": ("query",)}, "relations: 'query'; allowed: key, value"),
        ({"sharing": "one"}, "sharing: 'one'; allowed: per-head, shared"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        GraphAttention(**{"width": 8, "heads": 2, "labels": 3} | arguments)
    assert str(refusal.value) == message


def test_the_fused_path_builds_no_vector_for_each_pair() -> None:
    module, x, labels = attention(), draw(1, 40, WIDTH), edges(1, 40)
    with LargestTensor() as largest:
        module(x, labels)
    assert largest.numbers == HEADS * 40 * 40
