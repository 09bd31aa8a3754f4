import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.lookup import Lookup


def test_factor_is_eq_6_with_the_distance_from_query_to_key_over_the_root_of_d() -> None:
    torch.manual_seed(0)
    scheme = Lookup(Settings(8, heads=2, head_width=4), clip=2)
    query = torch.randn(1, 2, 3, 4)
    for start in (0, None):
        log_weight = scheme.log_weight(
            query, TokenPositions(torch.arange(3), None, start), TokenPositions(torch.arange(6), None, start)
        )
        assert log_weight.shape == (1, 2, 3, 6)
        for i, j, row in ((0, 0, 2), (2, 1, 1), (2, 0, 0), (1, 3, 4), (0, 5, 4)):
            expected = query[0, 1, i] @ scheme.table.weight[1, row] / 2
            torch.testing.assert_close(log_weight[0, 1, i, j], expected)
