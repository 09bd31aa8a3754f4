"""Log-weights that depend only on the key or the query, as columns of a dot product, without a tensor of pairs."""

import math

import torch
from torch import Tensor

from kdx.attention.interfaces import DotProduct

# Pairs (Tq × Tk) up to which a bias is faster: forward and backward on one CPU core with 4 heads of 64 features, it
# takes 0.85 to 0.95 of a column's time up to 256 × 256, 1.1 times it at 512 × 512, and 1.7 times from 1024 × 1024 on.
LARGEST_BIAS = 256 * 256


def of_keys(log_weight: Tensor, query: Tensor) -> DotProduct:
    """Return columns whose dot product over √D is the log-weight of each key.

    Args:
        log_weight: (…, H, Tk), in at least 32 bits.
        query: (B, H, Tq, D); the columns have its number format.

    Returns:
        (1, Tq, C) and (…, H, Tk, C)
    """
    parts = _parts(log_weight, query)
    return query.new_ones(1, query.size(-2), parts.size(-1)), parts


def of_difference(of_query: Tensor, of_key: Tensor, query: Tensor) -> DotProduct:
    """Return columns whose dot product over √D is the query's number minus the key's.

    Args:
        of_query, of_key: (B, H, Tq) and (B, H, Tk), in at least 32 bits.
        query: as in `of_keys`.

    Returns:
        (B, H, Tq, C) and (B, H, Tk, C)
    """
    query_columns, key_columns = _parts(of_query, query), _parts(-of_key, query)
    return torch.cat([query_columns, torch.ones_like(query_columns)], -1), torch.cat(
        [torch.ones_like(key_columns), key_columns], -1
    )


def _parts(log_weight: Tensor, query: Tensor) -> Tensor:
    """Return columns in the query's format whose sum is √D times the numbers: (…, T) to (…, T, C).

    Half precision holds the digits of a long sum in three columns, each the remainder of those before it.
    """
    left = log_weight * math.sqrt(query.size(-1))
    count = 1 if torch.finfo(query.dtype).bits >= torch.finfo(left.dtype).bits else 3
    columns = []
    for _ in range(count):
        columns.append(left.to(query.dtype))
        left = left - columns[-1]
    return torch.stack(columns, -1)
