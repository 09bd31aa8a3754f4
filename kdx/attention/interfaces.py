"""The base classes of an attention's components.

Components are modules, so they can have learned parameters; most have none.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from kdx.vocabulary import Reach
from kdx.words.option import options_of

DotProduct = tuple[Tensor, Tensor]
Part = slice | Tensor
"""A selection of the tokens of a row: a slice without a step, or indices, integers (n,)."""


def upcast(numbers: Tensor) -> Tensor:
    """Return numbers in at least 32 bits: half precision lacks the digits or the range of squares and long sums."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def number_of_keys(weight: Tensor, visible: Tensor | None) -> Tensor:
    """Return how many keys each query sees, at least 1: (…, Tq or 1, 1), for weights (B, H, Tq, Tk)."""
    if visible is None:
        return weight.new_full((1, 1), weight.size(-1))
    # A mask may be one column for all keys.
    seen = visible.expand(*visible.shape[:-1], weight.size(-1))
    return seen.sum(-1, keepdim=True).clamp(min=1).to(weight.dtype)


def index_select(rows: Tensor, part: Part) -> Tensor:
    """Return some of the tokens of (…, T, D)."""
    # Avoids a slice of all rows and an index of some: their gradients cost a tensor of zeros, or a slow addition.
    if isinstance(part, slice):
        return rows if part == slice(0, rows.size(-2)) else rows[..., part, :]
    return rows.index_select(-2, part)


def extremes(numbers: Tensor) -> tuple[int, int] | None:
    """Return the smallest and the largest integer; None if there are none, or on a GPU, since it would have to wait."""
    if numbers.device.type != "cpu" or not numbers.numel():
        return None
    smallest, largest = numbers.aminmax()
    return int(smallest), int(largest)


class Side(Enum):
    """The side of a pair: query or key."""

    QUERY = "query"
    KEY = "key"


class Settings(NamedTuple):
    """The settings that all components of an attention share; a component's own settings are its options."""

    width: int
    """M."""
    heads: int
    """H."""
    head_width: int
    """D."""
    max_positions: int = 1024
    """Number of positions of a learned encoding, and of distances of a table without clipping."""
    reach: Reach = Reach.PAST
    """The side of the query to which a filter that looks at distances reaches."""
    widened: int = 1
    """Number of features that the kernel compares for each one of a head, by `widens` of its parts."""


class TokenFeatures(NamedTuple):
    """What a position scheme may know about tokens besides their positions."""

    compared: Tensor
    """Queries or keys as the kernel compares them, (B, H, T, D)."""
    read: Mapping[str, Tensor]
    """`PositionScheme.reads` → what the scheme reads off the tokens, (B, H, T, C)."""
    rank: Tensor
    """Number of keys up to the token, in the order of the keys: integers (1 or B, T)."""
    padding: Tensor | None
    """True where a token is padding, (B, T); None if nowhere."""

    def part(self, part: Part) -> "TokenFeatures":
        """Return the features of some of the tokens."""
        read = {name: index_select(features, part) for name, features in self.read.items()}
        padding = self.padding if self.padding is None else self.padding[:, part]
        return TokenFeatures(index_select(self.compared, part), read, self.rank[:, part], padding)


class TokenPositions:
    """The positions of the tokens of a row."""

    def __init__(
        self,
        positions: Tensor,
        encoding: Callable[[Tensor], Tensor] | None,
        start: int | None = None,
        tokens: TokenFeatures | None = None,
    ) -> None:
        self.positions = positions
        """Integers: (T,), or (B, T) if the rows of a batch differ."""
        self.start = start
        """The first position, if positions are known to be start, start + 1, …; if None, each pair is looked up."""
        self._encoding = encoding
        self._tokens = tokens

    @property
    def tokens(self) -> TokenFeatures:
        """The tokens at these positions, for schemes that look at them."""
        assert self._tokens is not None, "tokens are asked for by a scheme that does not say looks_at_tokens = True"
        return self._tokens

    def of(self, tokens: TokenFeatures) -> "TokenPositions":
        """Return the same positions with these tokens."""
        return TokenPositions(self.positions, self._encoding, self.start, tokens)

    @cached_property
    def vector(self) -> Tensor:
        """The vectors t of the positions, (T, M) or (B, T, M)."""
        assert self._encoding is not None, "t is asked for by a component that does not say uses_vector = True"
        return self._encoding(self.positions)

    def part(self, part: Part) -> "TokenPositions":
        """Return the positions of some of the tokens."""
        if isinstance(part, slice) and part == slice(0, self.positions.size(-1)):
            return self
        known = self.start is not None and isinstance(part, slice)
        start = self.start + (part.start or 0) if known else None  # type: ignore[operator, union-attr]
        tokens = None if self._tokens is None else self._tokens.part(part)
        return TokenPositions(self.positions[..., part], self._encoding, start, tokens)


class Word(nn.Module):
    """A component of an attention, with facts about it in literals, see `kdx.words`.

    An option that the class declares (`kdx.words.option`) is an attribute of the instance, with its value.
    """

    name: ClassVar[str] = ""
    """Its name in a grid; empty for a base class."""
    formula: ClassVar[str] = ""
    """Its formula as printed in the source."""
    source: ClassVar[str] = ""
    """The paper, with its equation or section."""
    takes: ClassVar[tuple[str, ...]] = ()
    """The axes of a cell that it uses."""

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        """Set the options; options that are not given have their defaults.

        Args:
            settings: settings of the attention, the same for all its components.

        Raises:
            ValueError: an option cannot have this value.
            TypeError: the class has no such option.
        """
        super().__init__()
        known = options_of(type(self))
        for name in options:
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no option {name!r}; allowed: {', '.join(known) or 'none'}")
        for name, option in known.items():
            setattr(self, name, option.value(options.get(name, option.default)))

    @property
    def own_options(self) -> dict[str, Any]:
        """Return the value of each option that the class declares."""
        return {name: getattr(self, name) for name in options_of(type(self))}


class KernelFunction(Word):
    """k_F(q, k) on projected features, (B, H, Tq, D) and (B, H, Tk, D) to (B, H, Tq, Tk).

    A kernel returns its logarithm or, if that is a detour or loses the sign, its value; or a factor of it in each form.
    """

    normaliser: ClassVar[str] = "row-sum"
    """The default normaliser."""
    gives: ClassVar[str] = "logarithm"
    """The form in which it is given: its `logarithm`; a `weight`, which is never negative; or a `signed weight`."""
    sees_positions: ClassVar[bool] = False
    """Whether it depends on positions, by `placed`; then it is for sequences only."""
    widens: ClassVar[int] = 1
    """The number of features that `placed` makes of each one."""
    positive_semi_definite: ClassVar[bool] = False
    """Whether its Gram matrix is positive semi-definite for every input when queries and keys share a projection."""
    blind_to_query_norm: ClassVar[bool] = False
    """Whether the length of the query has no effect, since k(c q, k) is a multiple of k(q, k) (Eq. 2)."""

    def placed(self, projected: Tensor, place: TokenPositions) -> Tensor:
        """Return what it compares, for queries or keys at their positions: (B, H, T, D) to (B, H, T, C)."""
        return projected

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Return log k(q, k) by the formula as printed, or that of a factor; None if `weight` gives the kernel."""
        return None

    def weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Return k(q, k), of any sign, or the factor that `log_weight` lacks; None if `log_weight` gives the kernel."""
        return None

    def feature_map(self, features: Tensor, side: Side) -> Tensor | None:
        """Return φ of queries or keys, (B, H, T, D) to (B, H, T, C), with k(q, k) = ⟨φ(q), φ(k)⟩ and C not large.

        Then the sum over the keys is computed before the product with the query, without pairs. A factor of a whole
        query, or of all keys, may be left out, since it cancels in the row sum. None if there is no such map.
        """
        return None

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct | None:
        """Return queries (B, H, Tq, C) and keys (B, H, Tk, C) whose dot product over √D is the log-weight.

        A term that depends only on the query may be left out, since it cancels in the row sum. None if there is no
        exact reduction; weights are then computed block by block.
        """
        return None

    def constant_term(self, query: Tensor) -> Tensor | None:
        """Return the term of the query that `dot_product` leaves out of the log-weight, (B, H, Tq, 1); None if none."""
        return None


class PositionScheme(Word):
    """A way in which positions enter the kernel: a change of what it compares, or a factor of the weight, or both."""

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "multimodal", "crossmodal")
    """The spaces whose tokens have positions of the kind that it needs."""
    even: ClassVar[str] = ""
    """The size that must be even, since its features come in pairs: `width`, `head_width`, or none."""
    uses_vector: ClassVar[bool] = False
    """Whether it needs t; otherwise it sees distances only."""
    weighs: ClassVar[bool] = True
    """Whether it is a factor of the weight."""
    looks_at_tokens: ClassVar[bool] = False
    """Whether its factor depends on tokens other than the query, `TokenPositions.tokens`."""
    reads: ClassVar[str] = ""
    """Name of what it reads off the tokens by `of_tokens`, which is kept with the keys; empty if it reads nothing."""
    past_only: ClassVar[bool] = False
    """Whether its source, and so a grid, has it only in self-attention, for keys that do not come after the query."""
    absolute: ClassVar[bool] = False
    """Whether the result changes when all positions move by the same number."""
    widens: ClassVar[int] = 1
    """The number of features that `compared` makes of each one."""

    def share(self, other: "PositionScheme") -> None:
        """Take over the parameters that all layers share from the same scheme in another layer; most have none."""

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        """Return the features from which queries and keys are projected: (B, T, M) to (B, T, M)."""
        return features

    def of_tokens(self, features: Tensor) -> Tensor:
        """Return what it reads off the tokens, given the features of keys: (B, T, M) to (B, H, T, C)."""
        raise NotImplementedError

    def projected(self, projected: Tensor, place: TokenPositions) -> Tensor:
        """Return what the kernel compares, for projected queries or keys: (B, H, T, D) to (B, H, T, D)."""
        return projected

    def query(self, query: Tensor, place: TokenPositions) -> Tensor:
        """Return what the kernel compares, for queries after `projected`: (B, H, Tq, D) to (B, H, Tq, D)."""
        return query

    def key(self, key: Tensor, place: TokenPositions) -> Tensor:
        """Return what the kernel compares, for keys after `projected`: (B, H, Tk, D) to (B, H, Tk, D)."""
        return key

    def compared(self, features: Tensor, place: TokenPositions, side: Side) -> Tensor:
        """Return what the kernel compares, after `query` or `key` of all schemes: (B, H, T, D) to (…, `widens` · D)."""
        return features

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor | None:
        """Return the logarithm of the factor, which broadcasts to (B, H, Tq, Tk); None if there is no factor.

        Args:
            query: projected queries, (B, H, Tq, D); relative schemes weigh a distance by them.
        """
        return None

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor | None]:
        """Return `log_weight` as a function of some queries, their tokens and the keys; override it to share work."""
        return lambda query, query_part, key_part: self.log_weight(
            query, at_query.part(query_part), at_key.part(key_part)
        )

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        """Return columns (…, H, Tq, C) and (…, H, Tk, C) whose dot product over √D is the whole log-weight.

        A term of the query only may be left out, as in `KernelFunction.dot_product`. With `past`, only pairs whose key
        does not come after the query count. None if there is no such form, or if it is slower at this size; the
        log-weight is then added as a bias.
        """
        return None


class ValueFunction(Word):
    """A value function: the vectors that are averaged."""

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "multimodal", "crossmodal")
    uses_vector: ClassVar[bool] = False
    """Whether it needs t."""
    uses_weights: ClassVar[bool] = False
    """Whether it has a part that depends on the pair, `pair_values`."""
    of_distance: ClassVar[bool] = False
    """Whether values depend on the distance, and so act where schemes of distances act, as those with weights do."""
    turns_pairs: ClassVar[bool] = False
    """Whether a head must have an even width."""

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        """Return the features from which values are projected: (B, Tk, M) to (B, Tk, M)."""
        return features

    def projected(self, value: Tensor, at_key: TokenPositions) -> Tensor:
        """Return the vectors that are averaged, for projected values: (B, H, Tk, D) to (B, H, Tk, D)."""
        return value

    def smoothed(self, smoothed: Tensor, at_query: TokenPositions) -> Tensor:
        """Return a head's output, for the average of values: (B, H, Tq, D) to (B, H, Tq, D)."""
        return smoothed

    def pair_values(self, weights: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        """Return the sum, by weights (B, H, Tq, Tk), of the part that depends on the pair: (B, H, Tq, D)."""
        raise NotImplementedError


class FilterFunction(Word):
    """M(x_q, S): the keys that a query sees, by their positions and possibly their weights.

    In self-attention every query keeps at least its own key, unless the filter chooses by weights. In cross-attention,
    a query for which the filter would hide all keys sees them all.
    """

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "multimodal", "crossmodal")
    sees_later: ClassVar[bool] = False
    """Whether a query of a decoder would see keys after it."""
    triangular: ClassVar[bool] = False
    """Whether the visible keys are the lower triangle if queries and keys have the same positions, in order."""
    limits: ClassVar[bool] = True
    """Whether some keys may be hidden."""
    reads_content: ClassVar[bool] = False
    """Whether it has a part that depends on the weights, `chosen`."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.past = settings.reach is Reach.PAST
        """Whether it reaches to the past only, if it looks at distances."""

    def visible(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Return True where a key is seen, from integer positions (…, Tq, 1) and (…, 1, Tk); None for all keys."""
        raise NotImplementedError

    def seen(self, queries: range, keys: range) -> slice | list[int]:
        """Return all keys, counted from 0, that some of the queries may see, given the positions of both."""
        return slice(0, len(keys))

    def chosen(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor | None:
        """Return True for keys that are chosen by the weights of the row; they must also be visible to be seen.

        Args:
            log_weight, weight, visible: as in `kdx.attention.smoother.weights`.
        """
        return None


class NormaliserFunction(Word):
    """Turns a kernel's row into weights: by a divisor, or by a function of the whole row."""

    kernels: ClassVar[tuple[str, ...]] = ("logarithm", "weight", "signed weight")
    """The forms of a kernel (`KernelFunction.gives`) that it can normalise."""
    cancels: ClassVar[bool]
    """Whether a factor of a whole row, and of its sink, cancels."""
    divides: ClassVar[bool] = True
    """Whether the kernel is divided by `total`; otherwise `weights` gives the result."""
    past_only: ClassVar[bool] = False
    """Whether it has a meaning only for keys that do not come after the query; it reads them in their order."""

    @property
    def is_row_sum(self) -> bool:
        """Whether a row is divided by its own sum only, so any factor of the whole row cancels."""
        return self.divides and self.cancels and self.sink() is None

    def total(self, weight: Tensor, visible: Tensor | None) -> Tensor:
        """Return the divisor (…, Tq or 1, 1), never 0, of weights (B, H, Tq, Tk) that are 0 where not visible."""
        raise NotImplementedError

    def sink(self) -> Tensor | None:
        """Return the logarithm of the weight of one more key, whose value is 0, (H, 1, 1) or (); None if there is none.

        The weight is added to `total`.
        """
        return None

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        """Return the result of `kdx.attention.smoother.weights` for these arguments, if it is not a quotient."""
        raise NotImplementedError


class AbsoluteEncoding(Word):
    """t, the vector of an absolute position: integers (…, T) to (…, T, M)."""

    even: ClassVar[str] = ""
    """`width` if that must be even; empty otherwise."""
    bounded: ClassVar[bool] = False
    """Whether it ends at `max_positions`."""

    def __init__(self, width: int, max_positions: int, **options: Any) -> None:
        """Take M, and the number of positions of an encoding that ends."""
        super().__init__(**options)

    def another(self, width: int, max_positions: int) -> "AbsoluteEncoding":
        """Return an encoding of the same class, with the same options."""
        return type(self)(width, max_positions, **self.own_options)


class ContextMixer(Word):
    """A layer that passes information between tokens, and may replace self-attention in a block.

    Its `forward` returns (B, T, M) and takes:

        x: (B, T, M).
        query_positions: integers (T,) or (B, T), for mixers that look at them.
        key_padding: (B, T), True where a token is padding and must not be seen.
        cache: for incremental decoding by a mixer that looks back only; others raise ValueError.
    """

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "set", "multimodal")
    filters: ClassVar[tuple[str, ...]] = ("full", "causal")
    """The filters that it supports; any if empty."""
    remembers: ClassVar[bool] = False
    """Whether it can read a memory of earlier tokens."""
