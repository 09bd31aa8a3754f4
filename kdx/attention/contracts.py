"""What each part of an attention must give.

Parts are modules, so that those which learn something keep it like any other parameter; most have none.
"""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

DotProduct = tuple[Tensor, Tensor]


class Place:
    """Where the tokens of a row stand."""

    def __init__(self, positions: Tensor, encoding: Callable[[Tensor], Tensor] | None) -> None:
        self.positions = positions
        """Integers: (T,), or (B, T) where the rows of a batch differ."""
        self._encoding = encoding
        self._vector: Tensor | None = None

    @property
    def vector(self) -> Tensor:
        """t, (T, M) or (B, T, M); made when first asked for."""
        # Not functools.cached_property: its lock is beyond torch.compile before Python 3.12.
        if self._vector is None:
            assert self._encoding is not None  # a part that uses t says so by uses_vector
            self._vector = self._encoding(self.positions)
        return self._vector


class KernelFunction(nn.Module):
    """k_F(q, k) on projected features, as the logarithm of its absolute value and its sign."""

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        """log |k(q, k)| from the formula as printed: (B, H, Tq, D) and (B, H, Tk, D) to (B, H, Tq, Tk)."""
        raise NotImplementedError

    def sign(self, query: Tensor, key: Tensor) -> Tensor | None:
        """The sign of k(q, k), (B, H, Tq, Tk); None: never negative."""
        return None

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct | None:
        """A query (B, H, Tq, C) and a key (B, H, Tk, C) whose dot product over √D is the log-weight.

        A term of the query alone may be left out: it cancels in the row sum. None: there is no exact reduction, and
        both paths compute the weights literally.
        """
        return None


class PositionScheme(nn.Module):
    """How positions enter the kernel: a change of the features, or a factor of the weight, or both."""

    uses_vector: ClassVar[bool]
    """Whether it needs t, or the integer positions only."""

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()

    def features(self, features: Tensor, place: Place) -> Tensor:
        """What queries and keys are projected from: (B, T, M) to (B, T, M)."""
        return features

    def log_weight(self, query: Tensor, at_query: Place, at_key: Place) -> Tensor | None:
        """The logarithm of the factor, which broadcasts to (B, H, Tq, Tk); None: no factor.

        Args:
            query: projected, (B, H, Tq, D); relative schemes weigh a distance by it.
        """
        return None

    def dot_product(self, query: Tensor, at_query: Place, at_key: Place) -> DotProduct | None:
        """Columns (…, H, Tq, C) and (…, H, Tk, C) whose dot product over √D is the log-weight.

        None: there is no such form, or at this size it is the slower one; the log-weight is then added as a bias.
        """
        return None


class ValueFunction(nn.Module):
    """What is averaged."""

    uses_vector: ClassVar[bool]
    """Whether it needs t."""

    def features(self, features: Tensor, place: Place) -> Tensor:
        """What values are projected from: (B, Tk, M) to (B, Tk, M)."""
        raise NotImplementedError


class FilterFunction(nn.Module):
    """M(x_q, S): which keys a query sees, by their positions. Every query must keep at least one key."""

    triangular: ClassVar[bool] = False
    """Whether the keys seen are the lower triangle when queries and keys stand at the same positions 0, 1, 2, …"""

    def visible(self, query: Tensor, key: Tensor) -> Tensor | None:
        """True where seen, from integer positions (…, Tq, 1) and (…, 1, Tk); None: all keys."""
        raise NotImplementedError
