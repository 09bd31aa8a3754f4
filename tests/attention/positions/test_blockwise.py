"""A scheme that gives parts gives the whole by the same computation."""

import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.blockwise import Blockwise


class Counted(Blockwise):
    def blockwise(self, query, at_query, at_key):
        seen = at_key.positions.float()
        return lambda query, asked, others: at_query.positions.float()[asked, None] - seen[others]


def test_the_whole_is_the_part_of_all_queries_and_all_keys():
    scheme = Counted(Settings(4, 1, 4))
    at_query, at_key = (TokenPositions(torch.arange(count), None) for count in (3, 5))
    whole = scheme.log_weight(torch.zeros(1, 1, 3, 4), at_query, at_key)
    assert whole.tolist() == [[float(i - j) for j in range(5)] for i in range(3)]
