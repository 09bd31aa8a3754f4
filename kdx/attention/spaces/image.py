"""Images: X = F × H × W, a pixel (or a patch) with its row and its column.

product:       k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨r_q W_H, r_k W_H⟩ / √D) · exp(⟨c_q W_W, c_k W_W⟩ / √D)
direct-sum:    k(x_q, x_k) = k_F(f_q + t_q, f_k + t_k),   t = (r, c), each of half the width

[Tsai et al. 2019, Sec. 2.2.1 (ii), after Parmar et al. 2018, with Eq. 9 on each axis, or Eq. 4]

r and c are the encodings of row and column. A pixel's position is one integer, its index in raster order, from which
both follow; so the causal filter follows raster order, in which Parmar et al. generate.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import AbsoluteEncoding, Settings, TokenPositions
from kdx.attention.module import KernelAttention
from kdx.attention.positions import POSITIONS
from kdx.attention.positions.product import Product

MakeEncoding = Callable[[int, int], AbsoluteEncoding]
"""Makes an encoding of a width and a number of positions."""


class ImageAttention(KernelAttention):
    """`KernelAttention` over the pixels of an image, row by row.

    Its `forward` is that of `KernelAttention`. By default the tokens are whole rows, starting at the top left corner.

    Args:
        columns: W, pixels in a row.
        positions: any of `none`, `direct-sum` and `product`; they may act together.
        width, heads, parts: as in `KernelAttention`; `max_positions` is H, rows of a learned encoding.

    Raises:
        ValueError: for no column, another scheme, a width that 4 does not divide if t is used, or what
            `KernelAttention` refuses.
    """

    takes_positional_kernels = False

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        columns: int,
        positions: Sequence[str] = ("product",),
        **parts: Any,
    ) -> None:
        if columns < 1:
            raise ValueError(f"columns: {columns}; allowed: 1 or more")
        allowed = ("none", *(known.word for known in POSITIONS.definitions() if "image" in known.spaces))
        for scheme in positions:
            if scheme not in allowed:
                raise ValueError(f"positions: {scheme!r}; allowed on images: {', '.join(allowed)}")
        super().__init__(width, heads, positions=positions, **parts)
        self.columns = columns
        if self.encoding is None:
            return
        encoding, max_positions = cast(AbsoluteEncoding, self.encoding).another, parts.get("max_positions", 1024)
        if "product" in self.positions:
            del self.positions["product"]
            settings = Settings(width, *self.shape, max_positions)
            self.positions["rows"] = AxisFactor(settings, encoding, columns, "row")
            self.positions["columns"] = AxisFactor(settings, encoding, columns, "column")
        uses_vector = self.value_function.uses_vector or "direct-sum" in self.positions
        self.encoding = RowAndColumn(encoding, width, max_positions, columns) if uses_vector else None


class RowAndColumn(nn.Module):
    """t = (r, c): one half of the width encodes the row, the other the column."""

    def __init__(self, encoding: MakeEncoding, width: int, max_positions: int, columns: int) -> None:
        super().__init__()
        if width % 4:
            raise ValueError(f"width: row and column each take pairs of half of {width}; allowed: a multiple of 4")
        self.row = encoding(width // 2, max_positions)
        self.column = encoding(width // 2, columns)
        self.columns = columns

    def forward(self, positions: Tensor) -> Tensor:
        """Integers (…, T) to (…, T, M)."""
        return torch.cat([self.row(positions // self.columns), self.column(positions % self.columns)], -1)


class AxisFactor(Product):
    """exp(⟨r_q W_H, r_k W_H⟩ / √D) of the rows, or exp(⟨c_q W_W, c_k W_W⟩ / √D) of the columns."""

    uses_vector = False  # it uses the vector of the row or column, which it makes itself

    def __init__(
        self, settings: Settings, encoding: MakeEncoding, columns: int, axis: Literal["row", "column"]
    ) -> None:
        super().__init__(settings)
        self.encoding = encoding(settings.width, settings.max_positions if axis == "row" else columns)
        self.columns = columns
        self.axis = axis

    def _project(self, place: TokenPositions) -> Tensor:
        at = place.positions // self.columns if self.axis == "row" else place.positions % self.columns
        return super()._project(TokenPositions(at, self.encoding))
