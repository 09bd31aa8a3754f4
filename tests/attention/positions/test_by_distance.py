import torch
from torch import Tensor

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.by_distance import ByDistance


class Itself(ByDistance):
    """The distance from query to key, for two heads."""

    def bias(self, distance: Tensor) -> Tensor:
        return torch.stack([distance, 10 * distance])


def test_known_positions_and_looked_up_ones_give_the_same_bias() -> None:
    scheme, positions = Itself(Settings(8, 2, 4)), (torch.arange(3, 6), torch.arange(1, 8))
    known = scheme.log_weight(torch.zeros(1, 2, 3, 4), *(TokenPositions(p, None, int(p[0])) for p in positions))
    looked_up = scheme.log_weight(torch.zeros(1, 2, 3, 4), *(TokenPositions(p, None) for p in positions))
    assert known[0].tolist() == [[-2, -1, 0, 1, 2, 3, 4], [-3, -2, -1, 0, 1, 2, 3], [-4, -3, -2, -1, 0, 1, 2]]
    assert torch.equal(known, looked_up)


def test_positions_by_row_give_a_bias_by_row() -> None:
    rows = TokenPositions(torch.tensor([[0, 1], [5, 9]]), None)
    bias = Itself(Settings(8, 2, 4)).log_weight(torch.zeros(2, 2, 2, 4), rows, rows)
    assert bias.shape == (2, 2, 2, 2)
    assert bias[1, 1].tolist() == [[0, 40], [-40, 0]]
