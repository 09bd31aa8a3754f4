"""Sets: X = F, features only.

k(x_q, x_k) = k_F(f_q, f_k)          [Tsai et al. 2019, Sec. 2.2.1 (iii), after Lee et al. 2018]
"""

from typing import Any

from kdx.attention.module import KernelAttention


class SetAttention(KernelAttention):
    """`KernelAttention` without positions in kernel, value and filter: permuting the elements permutes the output.

    There is no causal filter, because it would depend on the order.
    """

    takes_positional_kernels = False

    def __init__(self, width: int, heads: int, **parts: Any) -> None:
        super().__init__(
            width,
            heads,
            positions=(),
            value="without-position",
            filter="full",
            encoding=None,
            **parts,
        )
