"""What each component of an attention must give.

Components are modules, so that those which learn something keep it like any other parameter; most have none.
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
"""Some of the tokens of a row: a slice without a step, or their indices, integers (n,)."""


def upcast(numbers: Tensor) -> Tensor:
    """Return numbers in at least 32 bits: half precision lacks the digits or the range of squares and long sums."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def index_select(rows: Tensor, part: Part) -> Tensor:
    """Return some of the tokens of (…, T, D)."""
    # Neither a slice of all nor an index of some: their gradients cost a tensor of zeros, or a slow addition.
    if isinstance(part, slice):
        return rows if part == slice(0, rows.size(-2)) else rows[..., part, :]
    return rows.index_select(-2, part)


def extremes(numbers: Tensor) -> tuple[int, int] | None:
    """Return the smallest and the largest integer; None if there are none, or on a GPU, which it would wait for."""
    if numbers.device.type != "cpu" or not numbers.numel():
        return None
    smallest, largest = numbers.aminmax()
    return int(smallest), int(largest)


class Side(Enum):
    """Which of a pair features are of."""

    QUERY = "query"
    KEY = "key"


class Settings(NamedTuple):
    """What all components of an attention share; what concerns one alone is an option of that component."""

    width: int
    """M."""
    heads: int
    """H."""
    head_width: int
    """D."""
    max_positions: int = 1024
    """Positions of a learned encoding; distances of a table without clipping."""
    reach: Reach = Reach.PAST
    """The side of the query to which a filter reaches that looks at distances."""


class TokenFeatures(NamedTuple):
    """What a position scheme may know of tokens beside their positions."""

    compared: Tensor
    """Queries or keys as the kernel compares them, (B, H, T, D)."""
    read: Mapping[str, Tensor]
    """What schemes read off the tokens, (B, H, T, C), by `PositionScheme.reads`."""
    rank: Tensor
    """How many keys do not stand after the token, in the order of the keys: integers (1 or B, T)."""
    padding: Tensor | None
    """True where a token is padding, (B, T); None: nowhere."""

    def part(self, part: Part) -> "TokenFeatures":
        """Those of some of the tokens."""
        read = {name: index_select(features, part) for name, features in self.read.items()}
        padding = self.padding if self.padding is None else self.padding[:, part]
        return TokenFeatures(index_select(self.compared, part), read, self.rank[:, part], padding)


class TokenPositions:
    """Where the tokens of a row stand."""

    def __init__(
        self,
        positions: Tensor,
        encoding: Callable[[Tensor], Tensor] | None,
        start: int | None = None,
        tokens: TokenFeatures | None = None,
    ) -> None:
        self.positions = positions
        """Integers: (T,), or (B, T) where the rows of a batch differ."""
        self.start = start
        """Where positions are known to be start, start + 1, …; None: not known, so each pair must be looked at."""
        self._encoding = encoding
        self._tokens = tokens

    @property
    def tokens(self) -> TokenFeatures:
        """What stands there; asked for by schemes that look at it."""
        assert self._tokens is not None, "tokens are asked for by a scheme that does not say looks_at_tokens = True"
        return self._tokens

    def of(self, tokens: TokenFeatures) -> "TokenPositions":
        """The same place, with what stands there."""
        return TokenPositions(self.positions, self._encoding, self.start, tokens)

    @cached_property
    def vector(self) -> Tensor:
        """t, (T, M) or (B, T, M)."""
        assert self._encoding is not None, "t is asked for by a component that does not say uses_vector = True"
        return self._encoding(self.positions)

    def part(self, part: Part) -> "TokenPositions":
        """The place of some of the tokens."""
        if isinstance(part, slice) and part == slice(0, self.positions.size(-1)):
            return self
        known = self.start is not None and isinstance(part, slice)
        start = self.start + (part.start or 0) if known else None  # type: ignore[operator, union-attr]
        tokens = None if self._tokens is None else self._tokens.part(part)
        return TokenPositions(self.positions[..., part], self._encoding, start, tokens)


class Word(nn.Module):
    """A component of an attention, with what kdx knows of it in literals, see `kdx.words`.

    An option that the class declares (`kdx.words.option`) is an attribute of the instance, with its value.
    """

    name: ClassVar[str] = ""
    """Its name in a grid; empty for what has none."""
    formula: ClassVar[str] = ""
    """Its formula as printed in the source."""
    source: ClassVar[str] = ""
    """The paper, with its equation or section."""
    takes: ClassVar[tuple[str, ...]] = ()
    """The axes of a cell that it makes use of."""

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        """Set the options; those that are not given have their defaults.

        Args:
            settings: those of the attention, which every component of one takes.

        Raises:
            ValueError: an option cannot have this value.
            TypeError: it has no such option.
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
        """The value of each option that the class declares."""
        return {name: getattr(self, name) for name in options_of(type(self))}


class KernelFunction(Word):
    """k_F(q, k) on projected features, (B, H, Tq, D) and (B, H, Tk, D) to (B, H, Tq, Tk).

    A kernel gives either its logarithm or, where that would be a detour or has no sign, itself; or a factor of it in
    either form.
    """

    normaliser: ClassVar[str] = "row-sum"
    """Unless another is asked for."""
    gives: ClassVar[str] = "logarithm"
    """What there is of it: its `logarithm`; a `weight`, which is never negative; or a `signed weight`."""
    sees_positions: ClassVar[bool] = False
    """Whether it depends on where tokens stand, by `placed`; then it is one of sequences alone."""
    positive_semi_definite: ClassVar[bool] = False
    """Whether its Gram matrix is positive semi-definite for every input when queries and keys share a projection."""
    blind_to_query_norm: ClassVar[bool] = False
    """Whether a longer query leaves the attention as it is, since k(c q, k) is a multiple of k(q, k) (Eq. 2)."""

    def placed(self, projected: Tensor, place: TokenPositions) -> Tensor:
        """What it compares, of queries or keys where they stand: (B, H, T, D) to (B, H, T, C)."""
        return projected

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        """log k(q, k) from the formula as printed, or of a factor; None: `weight` gives the kernel."""
        return None

    def weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        """k(q, k), of any sign, or what `log_weight` leaves of it; None: `log_weight` gives the kernel."""
        return None

    def feature_map(self, features: Tensor, side: Side) -> Tensor | None:
        """φ of queries or of keys, (B, H, T, D) to (B, H, T, C), where k(q, k) = ⟨φ(q), φ(k)⟩ and C is not large.

        Then the sum over the keys can be made before it meets the query, without any pair. A factor of a whole query,
        or of all keys, may be left out: it cancels in the row sum. None: there is none such.
        """
        return None

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct | None:
        """A query (B, H, Tq, C) and a key (B, H, Tk, C) whose dot product over √D is the log-weight.

        A term of the query alone may be left out: it cancels in the row sum. None: there is no exact reduction, and
        weights are computed as given, block by block.
        """
        return None

    def constant_term(self, query: Tensor) -> Tensor | None:
        """The term of the query alone that `dot_product` leaves out of the log-weight, (B, H, Tq, 1); None: none."""
        return None


class PositionScheme(Word):
    """How positions enter the kernel: a change of what it compares, or a factor of the weight, or both."""

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "multimodal", "crossmodal")
    """Where its tokens have positions of the kind that it needs."""
    even: ClassVar[str] = ""
    """Which size must be even, since its features come in pairs: `width`, `head_width`, or none."""
    uses_vector: ClassVar[bool] = False
    """Whether it needs t; else it sees distances only."""
    weighs: ClassVar[bool] = True
    """Whether it is a factor of the weight."""
    looks_at_tokens: ClassVar[bool] = False
    """Whether its factor depends on the tokens beside the query, `TokenPositions.tokens`."""
    reads: ClassVar[str] = ""
    """The name of what it reads off the tokens by `of_tokens`, which stays with the keys; none when empty."""
    past_only: ClassVar[bool] = False
    """Whether its source has it only in self-attention, for keys that do not stand after the query; so has a grid."""
    absolute: ClassVar[bool] = False
    """Whether the result changes when all positions move by the same number."""

    def share(self, other: "PositionScheme") -> None:
        """Take the parameters of the same scheme in another layer that all layers are to share; most have none."""

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        """What queries and keys are projected from: (B, T, M) to (B, T, M)."""
        return features

    def of_tokens(self, features: Tensor) -> Tensor:
        """What it reads off the tokens, from what keys are projected from: (B, T, M) to (B, H, T, C)."""
        raise NotImplementedError

    def projected(self, projected: Tensor, place: TokenPositions) -> Tensor:
        """What the kernel compares, of projected queries or keys: (B, H, T, D) to (B, H, T, D)."""
        return projected

    def query(self, query: Tensor, place: TokenPositions) -> Tensor:
        """What the kernel compares, of queries after `projected`: (B, H, Tq, D) to (B, H, Tq, D)."""
        return query

    def key(self, key: Tensor, place: TokenPositions) -> Tensor:
        """What the kernel compares, of keys after `projected`: (B, H, Tk, D) to (B, H, Tk, D)."""
        return key

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor | None:
        """The logarithm of the factor, which broadcasts to (B, H, Tq, Tk); None: no factor.

        Args:
            query: as projected, (B, H, Tq, D); relative schemes weigh a distance by it.
        """
        return None

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor | None]:
        """`log_weight` of some queries, the tokens that they are, and the keys; overridden where parts share work."""
        return lambda query, query_part, key_part: self.log_weight(
            query, at_query.part(query_part), at_key.part(key_part)
        )

    def dot_product(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions, past: bool
    ) -> DotProduct | None:
        """Columns (…, H, Tq, C) and (…, H, Tk, C) whose dot product over √D is the whole log-weight.

        A term of the query alone may be left out, as in `KernelFunction.dot_product`. With `past`, only pairs count
        whose key does not stand after the query. None: there is no such form, or at this size it is the slower one;
        the log-weight is then added as a bias.
        """
        return None


class ValueFunction(Word):
    """What is averaged."""

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "multimodal", "crossmodal")
    uses_vector: ClassVar[bool] = False
    """Whether it needs t."""
    uses_weights: ClassVar[bool] = False
    """Whether it has a part that depends on the pair, `pair_values`."""

    def features(self, features: Tensor, place: TokenPositions) -> Tensor:
        """What values are projected from: (B, Tk, M) to (B, Tk, M)."""
        return features

    def pair_values(self, weights: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        """The sum, by weights (B, H, Tq, Tk), of what depends on the pair: (B, H, Tq, D)."""
        raise NotImplementedError


class FilterFunction(Word):
    """M(x_q, S): which keys a query sees, by their positions, or by their weights as well.

    In self-attention every query keeps at least its own key. Keys from elsewhere are all seen by a query to which the
    filter would leave none of them.
    """

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "multimodal", "crossmodal")
    sees_later: ClassVar[bool] = False
    """Whether a query of a decoder would see keys after it."""
    triangular: ClassVar[bool] = False
    """Whether the keys seen are the lower triangle when queries and keys stand at the same positions, in order."""
    limits: ClassVar[bool] = True
    """Whether some keys may be hidden."""
    reads_content: ClassVar[bool] = False
    """Whether it has a part that depends on the weights, `chosen`."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.past = settings.reach is Reach.PAST
        """Whether it reaches to the past only, where it looks at distances."""

    def visible(self, query: Tensor, key: Tensor) -> Tensor | None:
        """True where seen, from integer positions (…, Tq, 1) and (…, 1, Tk); None: all keys."""
        raise NotImplementedError

    def seen(self, queries: range, keys: range) -> slice | list[int]:
        """The keys, counted from 0, that some of the queries may see, from their positions; none may be missed."""
        return slice(0, len(keys))

    def chosen(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor | None:
        """True where a row's weights leave a key to the query; only the keys that are visible as well are seen.

        Args:
            log_weight, weight, visible: as in `kdx.attention.smoother.weights`.
        """
        return None


class NormaliserFunction(Word):
    """What makes weights of a kernel's row: a divisor, or a function of the whole row."""

    kernels: ClassVar[tuple[str, ...]] = ("logarithm", "weight", "signed weight")
    """What a kernel must give (`KernelFunction.gives`) for it to have a meaning."""
    cancels: ClassVar[bool]
    """Whether a factor of a whole row, and of its sink, leaves the result as it is."""
    divides: ClassVar[bool] = True
    """Whether the kernel is divided by `total`; else `weights` gives the result."""

    @property
    def is_row_sum(self) -> bool:
        """Whether a row is divided by its own sum alone, in which any factor of the whole row cancels."""
        return self.divides and self.cancels and self.sink() is None

    def total(self, weight: Tensor, visible: Tensor | None) -> Tensor:
        """The divisor (…, Tq or 1, 1), never 0, of weights (B, H, Tq, Tk) that are 0 where not visible."""
        raise NotImplementedError

    def sink(self) -> Tensor | None:
        """The logarithm of the weight of one more key, whose value is 0, (H, 1, 1) or (); None: there is none.

        Its weight is added to `total`.
        """
        return None

    def weights(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor:
        """What `kdx.attention.smoother.weights` gives, of the same arguments, where it is no quotient."""
        raise NotImplementedError


class AbsoluteEncoding(Word):
    """t, the vector of an absolute position: integers (…, T) to (…, T, M)."""

    even: ClassVar[str] = ""
    """`width` where that must be even; else none."""
    bounded: ClassVar[bool] = False
    """Whether it ends at `max_positions`."""

    def __init__(self, width: int, max_positions: int, **options: Any) -> None:
        """Takes M, and the number of positions of one that ends."""
        super().__init__(**options)

    def another(self, width: int, max_positions: int) -> "AbsoluteEncoding":
        """One of the same kind, with its options."""
        return type(self)(width, max_positions, **self.own_options)


class ContextMixer(Word):
    """A layer that tells a token of the others, and may stand where self-attention stands in a block.

    Its `forward` gives (B, T, M) and takes:

        x: (B, T, M).
        query_positions: integers (T,) or (B, T), for mixers that look at them.
        key_padding: (B, T), True where a token is padding and must not be seen.
        cache: for incremental decoding by a mixer that looks back only; others raise ValueError.
    """

    spaces: ClassVar[tuple[str, ...]] = ("sequence", "image", "set", "multimodal")
    filters: ClassVar[tuple[str, ...]] = ("full", "causal")
    """Those that it can follow; any when empty."""
    remembers: ClassVar[bool] = False
    """Whether it can look into a memory of tokens before."""
