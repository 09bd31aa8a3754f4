"""The attention module: projections around Definition 1, with its parts chosen by the words of the study."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, TypedDict, TypeVar, Unpack, cast

import torch
from torch import Tensor, nn

from kdx.attention import smoother
from kdx.attention.cache import Cache, Keys
from kdx.attention.contracts import Place, PositionScheme
from kdx.attention.encodings import encoding_of
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.axes import Encoding, Filter, Kernel, Position, Symmetry, Value

Word = TypeVar("Word", bound=StrEnum)


class Where(TypedDict, total=False):
    """The keyword arguments of `KernelAttention.forward`."""

    query_positions: Tensor | None
    key_positions: Tensor | None
    key_padding: Tensor | None
    cache: Cache | None


class _Projected(NamedTuple):
    query: Tensor  # (B, H, Tq, D)
    key: Tensor  # (B, H, Tk, D)
    value: Tensor  # (B, H, Tk, D)
    at_query: Place
    at_key: Place
    padding: Tensor | None  # (B, Tk)
    aligned: bool  # queries and keys both stand at 0, 1, … T - 1


class KernelAttention(nn.Module):
    """Multi-head attention with any kernel, symmetry, positions, value function and filter.

    One initialisation serves every variant, so that they compare: Xavier-uniform, with the gain 1/√2 for the
    projections of queries, keys and values that they have where the three are packed in one matrix; biases zero.
    Packing matters, because under it a symmetric kernel starts less close to the identity.

    Args:
        width: M, features per token.
        heads: H.
        kernel: k_F.
        symmetry: `symmetric` projects queries and keys by one matrix and bias, also between decoder and encoder.
        positions: the schemes that act together; none when empty.
        value: the value function.
        filter: the keys a query sees.
        encoding: of t, where positions or values use it; else it is ignored, and may be None.
        head_width: D; M / H unless given.
        bias: whether the projections have biases (W_T never has).
        dropout: probability of dropping a weight in training.
        longest: positions of a learned encoding.
        path: `fused`, or `literal`, Eq. 2 as printed. Both give the same result; it may be changed at any time.

    Raises:
        ValueError: for a width that does not divide by the heads, an odd width with sinusoids, a scheme that stands
            twice, an unknown word, or a part that needs t where `encoding` is None.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kernel: Kernel = Kernel.EXPONENTIAL,
        symmetry: Symmetry = Symmetry.ASYMMETRIC,
        positions: Sequence[Position] = (),
        value: Value = Value.WITHOUT_POSITION,
        filter: Filter = Filter.FULL,
        encoding: Encoding | None = Encoding.SINUSOIDAL,
        head_width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        longest: int = 1024,
        path: Literal["fused", "literal"] = "fused",
    ) -> None:
        super().__init__()
        if head_width is None and (heads < 1 or width % heads):
            raise ValueError(f"heads: {heads} heads do not divide width {width}; allowed: a divisor, or a head_width")
        if path not in ("fused", "literal"):
            raise ValueError(f"path: {path!r}; allowed: fused, literal")
        schemes = [_word("positions", scheme, Position) for scheme in positions]
        if len(set(schemes)) < len(schemes):
            raise ValueError(f"positions: a scheme stands twice in {', '.join(schemes)}; allowed: each once")
        self.path = path
        self.dropout = dropout
        self.shape = (heads, head_width or width // heads)
        self.kernel = KERNELS[_word("kernel", kernel, Kernel)]()
        self.positions = nn.ModuleDict(
            {scheme: POSITIONS[scheme](width, *self.shape) for scheme in schemes if scheme is not Position.NONE}
        )
        self.value_function = VALUES[_word("value", value, Value)]()
        self.filter = FILTERS[_word("filter", filter, Filter)]()
        self.encoding: nn.Module | None = None
        if self.value_function.uses_vector or any(scheme.uses_vector for scheme in self._schemes):
            if encoding is None:
                raise ValueError(f"encoding: None, but positions or values use it; allowed: {', '.join(Encoding)}")
            self.encoding = encoding_of(_word("encoding", encoding, Encoding), width, longest)

        inner = heads * self.shape[1]
        symmetric = _word("symmetry", symmetry, Symmetry) is Symmetry.SYMMETRIC
        self.query = nn.Linear(width, inner, bias)
        self.key = None if symmetric else nn.Linear(width, inner, bias)
        self.value = nn.Linear(width, inner, bias)
        self.output = nn.Linear(inner, width, bias)
        for linear in (self.query, self.key, self.value, self.output):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight, gain=1.0 if linear is self.output else 0.5**0.5)
                if bias:
                    nn.init.zeros_(linear.bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | None = None,
        *,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
        key_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Attend from queries to keys.

        Args:
            queries: (B, Tq, M)
            keys: (B, Tk, M); None: the queries themselves, which is self-attention.
            query_positions: integers (Tq,) or (B, Tq); by default they go on from the cache's last, or from 0.
            key_positions: integers (Tk,) or (B, Tk), given only with `keys`; 0, 1, 2, … by default.
            key_padding: (B, Tk), True where a key is padding and must not be seen.
            cache: for incremental decoding; it is read and added to. Self-attention then sees all keys so far;
                with `keys`, those of the first call are projected once and kept, and those of later calls ignored.

        Returns:
            (B, Tq, M)
        """
        smoothed = self.smooth(
            queries,
            keys,
            query_positions=query_positions,
            key_positions=key_positions,
            key_padding=key_padding,
            cache=cache,
        )
        output: Tensor = self.output(smoothed.transpose(1, 2).flatten(2))
        return output

    def smooth(self, queries: Tensor, keys: Tensor | None = None, **where: Unpack[Where]) -> Tensor:
        """Definition 1 in each head, before W_o: (B, H, Tq, D). Arguments as in `forward`."""
        projected = self._project(queries, keys, **where)
        query, key, value, at_query, at_key, padding, aligned = projected
        dropout = self.dropout if self.training else 0.0
        kernel = None if self.path == "literal" else self.kernel.dot_product(query, key)
        if kernel is None:
            return smoother.literal(
                self._log_weight(projected),
                value,
                visible=self._visible(projected),
                sign=self.kernel.sign(query, key),
                dropout=dropout,
            )
        dot_products, bias = [kernel], None
        for scheme in self._schemes:
            columns = scheme.dot_product(query, at_query, at_key)
            if columns is not None:
                dot_products.append(columns)
                continue
            factor = scheme.log_weight(query, at_query, at_key)
            if factor is not None:
                bias = factor if bias is None else bias + factor
        causal = self.filter.triangular and aligned and padding is None and bias is None
        visible = None if causal else self._visible(projected)
        return smoother.fused(dot_products, value, bias=bias, visible=visible, causal=causal, dropout=dropout)

    def weights(self, queries: Tensor, keys: Tensor | None = None, **where: Unpack[Where]) -> Tensor:
        """The normalised weights by the literal path, (B, H, Tq, Tk). Arguments as in `forward`."""
        projected = self._project(queries, keys, **where)
        sign = self.kernel.sign(projected.query, projected.key)
        return smoother.weights(self._log_weight(projected), self._visible(projected), sign)

    def extra_repr(self) -> str:
        return f"heads={self.shape[0]}, head_width={self.shape[1]}, path={self.path}"

    @property
    def _schemes(self) -> Iterable[PositionScheme]:
        return cast(Iterable[PositionScheme], self.positions.values())

    def _project(
        self,
        queries: Tensor,
        keys: Tensor | None,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
        key_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> _Projected:
        if keys is None and key_positions is not None:
            raise ValueError("key_positions: given without keys; allowed: query_positions alone, for both")
        cache = cache or Cache()
        aligned = query_positions is None and key_positions is None and cache.next is None
        if query_positions is None:
            query_positions = torch.arange(queries.size(1), device=queries.device)
            if cache.next is not None:
                query_positions = cache.next + query_positions
        cache.next = query_positions[..., -1:] + 1
        source, at_query = queries, Place(query_positions, self.encoding)
        features = self._features(queries, at_query)
        query = self._heads(self.query, features)

        at_key = at_query
        if keys is not None:
            if key_positions is None:
                key_positions = torch.arange(keys.size(1), device=keys.device)
            source, at_key = keys, Place(key_positions, self.encoding)
        if keys is not None and cache.keys is not None:
            known = cache.keys
        else:
            if keys is not None:
                features = self._features(keys, at_key)
            shared = keys is None and self.key is None
            key = query if shared else self._heads(self.key or self.query, features)
            value = self._heads(self.value, self.value_function.features(source, at_key))
            known = cache.append(Keys(key, value, at_key.positions, key_padding))
        if known.positions is not at_key.positions:
            at_key = Place(known.positions, self.encoding)
        aligned = aligned and query.size(2) == known.key.size(2)
        return _Projected(query, known.key, known.value, at_query, at_key, known.padding, aligned)

    def _features(self, features: Tensor, place: Place) -> Tensor:
        for scheme in self._schemes:
            features = scheme.features(features, place)
        return features

    def _heads(self, projection: nn.Linear, features: Tensor) -> Tensor:
        projected: Tensor = projection(features)
        return projected.view(*projected.shape[:-1], *self.shape).transpose(1, 2)  # (B, H, T, D)

    def _log_weight(self, projected: _Projected) -> Tensor:
        total = self.kernel.log_weight(projected.query, projected.key)
        for scheme in self._schemes:
            factor = scheme.log_weight(projected.query, projected.at_query, projected.at_key)
            total = total if factor is None else total + factor
        return total

    def _visible(self, projected: _Projected) -> Tensor | None:
        query, key = projected.at_query.positions.unsqueeze(-1), projected.at_key.positions.unsqueeze(-2)
        visible = self.filter.visible(query, key)
        if visible is not None and visible.dim() == 3:
            visible = visible.unsqueeze(1)  # (B, 1, Tq, Tk)
        if projected.padding is None:
            return visible
        real = ~projected.padding[:, None, None, :]
        return real if visible is None else visible & real


def _word(argument: str, word: str, enum: type[Word]) -> Word:
    try:
        return enum(word)
    except ValueError:
        raise ValueError(f"{argument}: {word!r}; allowed: {', '.join(enum)}") from None
