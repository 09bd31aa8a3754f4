import math
import pickle

import pytest
import torch
from torch import Tensor

from kdx.attention.encodings import ENCODINGS
from kdx.attention.spaces.image import ImageAttention
from kdx.attention.verification.cases import held
from tests.attention.by_hand import close, draw

ROWS, COLUMNS, WIDTH, HEADS, D = 3, 4, 8, 2, 4
LISTS = [(), ("direct-sum",), ("product",), ("direct-sum", "product")]
PATHS = ("fused", "literal")


def attention(**arguments) -> ImageAttention:
    torch.manual_seed(0)
    return ImageAttention(WIDTH, HEADS, columns=COLUMNS, **arguments).double()


def at(rows: Tensor, columns: Tensor) -> Tensor:
    """The positions of the pixels there."""
    return rows * COLUMNS + columns


def sinusoid(position: int, width: int) -> Tensor:
    return ENCODINGS["sinusoidal"](width, 0).double()(torch.tensor([position]))[0]


def expected_weights(module: ImageAttention, x: Tensor, positions: tuple[str, ...]) -> Tensor:
    """The exponential kernel times the factors of both axes, pixel by pixel: (H, T, T) from (T, M)."""
    weights = torch.zeros(HEADS, len(x), len(x), dtype=torch.float64)
    f = x.clone()
    if "direct-sum" in positions:
        for p in range(len(x)):
            f[p] += torch.cat([sinusoid(p // COLUMNS, WIDTH // 2), sinusoid(p % COLUMNS, WIDTH // 2)])
    for head in range(HEADS):
        own = slice(head * D, (head + 1) * D)
        for q in range(len(x)):
            for k in range(len(x)):
                score = module.query(f[q])[own] @ module.key(f[k])[own] / math.sqrt(D)
                if "product" in positions:
                    for axis, i, j in (("rows", q // COLUMNS, k // COLUMNS), ("columns", q % COLUMNS, k % COLUMNS)):
                        matrix = module.positions[axis].projection.weight.T[:, own]
                        score += (sinusoid(i, WIDTH) @ matrix) @ (sinusoid(j, WIDTH) @ matrix) / math.sqrt(D)
                weights[head, q, k] = score.exp()
    return weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("positions", LISTS, ids=str)
def test_weights_are_the_formula_pixel_by_pixel(positions: tuple[str, ...]) -> None:
    module, x = attention(positions=positions), draw(1, ROWS * COLUMNS, WIDTH)
    weights = expected_weights(module, x[0], positions)
    close(module.weights(x)[0], weights)
    value = module.value(x[0]).unflatten(-1, (HEADS, D)).transpose(0, 1)
    for module.path in PATHS:
        close(module.smooth(x)[0], weights @ value)


@pytest.mark.parametrize("positions", LISTS, ids=str)
@pytest.mark.parametrize("filter", ["full", "causal"])
def test_it_has_every_property_of_an_attention(positions: tuple[str, ...], filter: str) -> None:
    module = attention(positions=positions, filter=filter, memory_length=2).eval()
    result = list(held("image", module, draw(2, 6, WIDTH), causal=filter == "causal"))
    assert result and [finding for finding in result if not finding.holds] == []


@pytest.mark.parametrize("positions", [("direct-sum",), ("product",)], ids=str)
def test_pixels_are_told_apart_by_row_and_by_column(positions: tuple[str, ...]) -> None:
    module = attention(positions=positions)
    x = draw(1, 9, WIDTH)
    grid = torch.arange(3)
    rows, columns = grid.repeat_interleave(3), grid.repeat(3)
    here = module(x, query_positions=at(rows, columns))
    for moved in (at(columns, rows), at(rows + 1, columns), at(rows, columns + 1)):
        assert not torch.allclose(module(x, query_positions=moved), here, atol=1e-6)
    order = torch.tensor([4, 2, 0, 7, 8, 1, 3, 6, 5])
    assert not torch.allclose(module(x[:, order], query_positions=at(rows, columns)), here[:, order], atol=1e-6)
    close(module(x[:, order], query_positions=at(rows[order], columns[order])), here[:, order])


@pytest.mark.parametrize("positions", LISTS, ids=str)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_state_holds_parameters_only(positions: tuple[str, ...], encoding: str) -> None:
    module = attention(positions=positions, encoding=encoding, max_positions=ROWS)
    module(draw(1, 3, WIDTH))
    assert list(module.state_dict()) == [name for name, _ in module.named_parameters()]
    pickle.loads(pickle.dumps(module))


def test_learned_tables_are_as_long_as_their_axis() -> None:
    module = attention(positions=("direct-sum", "product"), encoding="learned", max_positions=ROWS)
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters() if "encoding" in name}
    assert shapes == {
        "positions.rows.encoding.weight": (ROWS, WIDTH),
        "positions.columns.encoding.weight": (COLUMNS, WIDTH),
        "encoding.row.weight": (ROWS, WIDTH // 2),
        "encoding.column.weight": (COLUMNS, WIDTH // 2),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": 0}, "columns: 0; allowed: 1 or more"),
        ({"positions": ("lookup",)}, "positions: 'lookup'; allowed on images: none, direct-sum, product"),
        (
            {"width": 6, "positions": ("direct-sum",)},
            "width: row and column each take pairs of half of 6; allowed: a multiple of 4",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        ImageAttention(**{"width": 8, "heads": 2, "columns": 4} | arguments)
    assert str(refusal.value).startswith(message)
