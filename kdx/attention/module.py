"""The attention module: projections around Definition 1, with its components chosen by their names."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict, Unpack, cast

import torch
from torch import Tensor, nn

from kdx.attention import smoother
from kdx.attention.cache import Cache, Keys
from kdx.attention.choices import choice, choices_of
from kdx.attention.differential import MAPS, Differential
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    ContextMixer,
    FilterFunction,
    KernelFunction,
    NormaliserFunction,
    Part,
    PositionScheme,
    Settings,
    Side,
    TokenFeatures,
    TokenPositions,
    ValueFunction,
    index_select,
)
from kdx.attention.kernels import KERNELS
from kdx.attention.linear_attention import linear_attention
from kdx.attention.local_linear import LocalLinear
from kdx.attention.qk_norm import norms_of
from kdx.vocabulary import Maps, OutputGate, Projection, QKNorm, Reach, Smoother, Symmetry, ValueProjection

# Pairs (Tq × Tk) up to which a whole mask or bias is made; above, weights are computed block by block.
LARGEST_MASK = 256 * 256
# Tokens above which sums over the keys are faster than a kernel of each pair, forward and backward: a constant, and a
# number for each feature of a kernel that has many more than a head, such as Taylor's.
FEWEST_TOKENS = 128
FEWEST_TOKENS_PER_FEATURE = 2.5
# Under a causal filter there is a sum for each chunk, which is faster from this many times as many tokens on.
CAUSAL = 1.75
# Weights (B × H × queries × Tk) in a block: about 16 MiB. Smaller blocks add up more gradients of the keys, larger ones
# leave the caches. Under a filter a block has a quarter of them, since the smaller it is, the fewer hidden keys it has.
BLOCK = 2**22
FILTERED = 0.25
SMALLEST_BLOCK = 128  # queries
# Pairs up to which numbers of all pairs are kept, 4 MiB a head for each number at this size: what blocks need for the
# gradient, where computing it again costs a fifth to a third more time, or a bias that is the same for the whole batch,
# where blocks cost as much.
LARGEST_KEPT = 1024 * 1024


class ForwardArguments(TypedDict, total=False):
    """The keyword arguments of `KernelAttention.forward`."""

    memory: Tensor | None
    query_positions: Tensor | None
    key_positions: Tensor | None
    key_padding: Tensor | None
    mask: Tensor | None
    cache: Cache | None


class _Projected(NamedTuple):
    raw: Tensor  # (B, H, Tq, D), queries as position schemes weigh them
    query: Tensor  # (B, H, Tq, D), queries as the kernel compares them
    key: Tensor  # (B, H, Tk, D)
    value: Tensor  # (B, H, Tk, D)
    at_query: TokenPositions
    at_key: TokenPositions
    masks: "_Masks"


class _Masks(NamedTuple):
    own: bool  # whether each query's own token is among the keys
    padding: Tensor | None  # (B, Tk)
    mask: Tensor | None  # broadcasts to (B, H, Tq, Tk)

    def part(self, query_part: slice, key_part: Part) -> "_Masks":
        """Return the masks of some queries and some keys."""
        padding = self.padding if self.padding is None else self.padding[:, key_part]
        mask = self.mask if self.mask is None else self.mask[..., query_part, :][..., key_part]
        return _Masks(self.own, padding, mask)


class KernelAttention(ContextMixer):
    """Multi-head attention with any kernel, symmetry, positions, value function and filter.

    Every variant has the same initialisation, so variants compare: Xavier-uniform, with the gain 1/√2 for the
    projections of queries, keys and values, as if the three were packed in one matrix; biases are zero. The gain
    matters, because it makes a symmetric kernel start less close to the identity.

    The module needs nothing else of kdx, and does the work of `nn.MultiheadAttention(batch_first=True)`, except that
    values come from the tokens of the keys, a mask is True where a key is seen, and the output has no weights:

        attention = KernelAttention(512, 8, kernel="rbf", positions=["relative"], filter="causal")
        output = attention(x)                            # self-attention, (B, T, 512)
        output = attention(x, source, key_padding=hidden)  # encoder–decoder attention
        cache = Cache()                                  # token by token, with the same result
        steps = [attention(token, cache=cache) for token in x.split(1, dim=1)]

    Args:
        width: M, features per token.
        heads: H.
        kernel: k_F, as a name or as a class of `KernelFunction`; the other components are given in the same way.
        symmetry: `symmetric` projects queries and keys by one matrix and bias, also between decoder and encoder.
        positions: schemes that act together; may be empty.
        value: the value function.
        filter: the keys that a query sees.
        normaliser: divisor of a row of weights; default: the kernel's own.
        encoding: encoding of t, if positions or values use it; otherwise ignored, and may be None.
        head_width: D; default: M / H.
        qk_norm: normalisation of projected queries and keys, before positions act on them.
        kv_heads: heads of keys and values, each shared by the same number of consecutive heads of queries (Shazeer
            2019; Ainslie et al. 2023); default: H. A cache keeps only these heads.
        projection: whether queries and keys are projected. Without it, a head compares its share of the features, which
            is the same for queries and keys.
        value_projection: whether values have a projection of their own, or that of the keys (of both, if symmetric).
        smoother: whether a head averages values by their weights, or fits a line to them, see
            `kdx.attention.local_linear`.
        maps: whether a head has one attention map or the difference of two, see `kdx.attention.differential`.
        output_gate: whether the heads' output is multiplied by σ(x W_g) before W_o, x the query's token.
        bias: whether the projections have biases (those of positions never have).
        dropout: probability of dropping a weight in training.
        max_positions: number of positions of a learned encoding, and of a table without clipping.
        memory_length: the most tokens of `memory`. The positions of the current tokens start there, whether the memory
            is full or not, so absolute positions stay the same while the memory fills.
        reach: reach of a filter that looks at distances: the past only, or both sides.
        path: `fused`, or `literal`, Eq. 2 as printed. Both give the same result; it may be changed at any time.
        options: options of its components, such as `temperature` of the exponential kernel or `clip` of a look-up
            table, as their classes declare them; options of other names have no effect. With `symmetric` there is no
            `xl_bias`, since a symmetric kernel with u would not be symmetric; a `shared` one is learned too, and a
            stack of layers makes it one pair.

    Raises:
        ValueError: for a width that does not divide by the heads, heads that do not divide by `kv_heads`, an odd width
            with sinusoids, a scheme given twice, an unknown name, a normaliser that does not fit the kernel, an option
            that no component has, a number out of its range, or a component that needs t if `encoding` is None.
    """

    name = "attention"
    formula = "Attention(x_q) = Σ_k∈M w(x_q, x_k) v(x_k) / Σ_k∈M w(x_q, x_k)"
    source = "Tsai et al. 2019, Eq. 2"
    spaces = ("sequence", "image", "set", "multimodal", "crossmodal", "graph")
    filters = ()
    remembers = True
    takes_positional_kernels: ClassVar[bool] = True
    """Whether its kernel may be one that `sees_positions`."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kernel: str | type[KernelFunction] = "exponential",
        symmetry: Symmetry = Symmetry.ASYMMETRIC,
        positions: Sequence[str | type[PositionScheme]] = (),
        value: str | type[ValueFunction] = "without-position",
        filter: str | type[FilterFunction] = "full",
        normaliser: str | type[NormaliserFunction] | None = None,
        encoding: str | type[AbsoluteEncoding] | None = "sinusoidal",
        head_width: int | None = None,
        qk_norm: QKNorm = QKNorm.NONE,
        kv_heads: int | None = None,
        projection: Projection = Projection.LINEAR,
        value_projection: ValueProjection = ValueProjection.OWN,
        smoother: Smoother = Smoother.LOCAL_CONSTANT,
        maps: Maps = Maps.SINGLE,
        output_gate: OutputGate = OutputGate.NONE,
        bias: bool = True,
        dropout: float = 0.0,
        max_positions: int = 1024,
        memory_length: int = 0,
        reach: Reach = Reach.PAST,
        path: Literal["fused", "literal"] = "fused",
        **options: Any,
    ) -> None:
        super().__init__()
        _check_sizes(width, heads, head_width, kv_heads, max_positions, memory_length, dropout)
        if path not in ("fused", "literal"):
            raise ValueError(f"path: {path!r}; allowed: fused, literal")
        projected = choice("projection", projection, Projection) is Projection.LINEAR
        symmetric = choice("symmetry", symmetry, Symmetry) is Symmetry.SYMMETRIC or not projected
        differential = choice("maps", maps, Maps) is Maps.DIFFERENTIAL
        own_values = choice("value_projection", value_projection, ValueProjection) is ValueProjection.OWN
        gated = choice("output_gate", output_gate, OutputGate) is OutputGate.SIGMOID
        kv_heads, head_width = kv_heads or heads, head_width or width // heads
        if symmetric and kv_heads < heads:
            raise ValueError(f"kv_heads: {kv_heads}, but queries and keys share one projection; allowed: {heads}")
        if not projected and heads * head_width != width:
            raise ValueError(f"head_width: {head_width}, but heads share {width} features; allowed: {width // heads}")
        if differential and head_width % MAPS:
            raise ValueError(f"head_width: two maps do not share {head_width} features; allowed: an even number")
        choices = choices_of(
            kernel=kernel,
            normaliser=normaliser,
            positions=positions,
            value=value,
            filter=filter,
            encoding=encoding,
            symmetric=symmetric,
            options=options,
        )
        if choices.kernel.sees_positions and not self.takes_positional_kernels:
            able = ", ".join(known.word for known in KERNELS.definitions() if not known.sees_positions)
            raise ValueError(f"kernel: {choices.kernel.name} weighs by places in a sequence; allowed here: {able}")
        self.path = path
        self.dropout = dropout
        self.memory_length = memory_length
        self.heads = heads
        self.kv_heads = kv_heads
        # The shape that the kernel compares: heads (each map of a head counts) and their width.
        self.shape = (MAPS * heads, head_width // MAPS) if differential else (heads, head_width)
        widened = math.prod(scheme.widens for scheme in choices.positions.values())
        settings = Settings(
            width, *self.shape, max_positions, choice("reach", reach, Reach), widened * choices.kernel.widens
        )
        self.kernel = choices.make(choices.kernel, settings._replace(head_width=widened * self.shape[1]))
        self.normaliser = choices.make(choices.normaliser, settings)
        self.positions = nn.ModuleDict(
            {name: choices.make(scheme, settings) for name, scheme in choices.positions.items()}
        )
        value_settings = settings._replace(heads=heads, head_width=head_width)
        self.value_function = choices.make(choices.value, value_settings)
        self.filter = choices.make(choices.filter, settings)
        self.encoding: nn.Module | None = None
        if self.value_function.uses_vector or any(scheme.uses_vector for scheme in self._schemes):
            assert choices.encoding is not None
            self.encoding = choices.make(choices.encoding, width, max_positions)

        inner, shared = heads * head_width, kv_heads * head_width
        self.query = nn.Linear(width, inner, bias) if projected else None
        self.key = None if symmetric else nn.Linear(width, shared, bias)
        self.value = nn.Linear(width, shared, bias) if own_values else None
        self.output = nn.Linear(inner, width, bias)
        self.gate = nn.Linear(width, inner, bias) if gated else None
        self.differential = Differential(head_width) if differential else None
        fitted = choice("smoother", smoother, Smoother) is Smoother.LOCAL_LINEAR
        if fitted and (self.kernel.gives == "signed weight" or not self.normaliser.is_row_sum):
            raise ValueError(
                "smoother: a line is fitted with weights that are positive and sum to 1; allowed: "
                "local-constant, or a kernel without signs and the normaliser row-sum"
            )
        self.local_linear = LocalLinear(self.shape[0]) if fitted else None
        self.query_norm, self.key_norm = norms_of(choice("qk_norm", qk_norm, QKNorm), self.shape[1], symmetric)
        for linear in (self.query, self.key, self.value, self.output, self.gate):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight, gain=1.0 if linear in (self.output, self.gate) else 0.5**0.5)
                if bias:
                    nn.init.zeros_(linear.bias)

    def forward(self, queries: Tensor, keys: Tensor | None = None, **arguments: Unpack[ForwardArguments]) -> Tensor:
        """Attend from queries to keys.

        Args:
            queries: (B, Tq, M)
            keys: (B, Tk, M); None for the queries themselves, which is self-attention.
            memory: (B, Tm, M), the tokens before the first key: this layer's input at the previous segment of a stream,
                detached by the caller. The newest `memory_length` are seen like any key, before the others.
            query_positions: integers (Tq,) or (B, Tq); by default they continue from the cache's last, or from
                `memory_length`.
            key_positions: integers (Tk,) or (B, Tk), given only with `keys`; by default they count from
                `memory_length`. The positions of a memory come before.
            key_padding: (B, Tk), True where a key is padding and must not be seen; a memory has none.
            mask: True where a query may see a key; broadcasts from (Tq, Tk), (B, Tq, Tk) or (B, H, Tq, Tk), including
                all keys of memory and cache. Keys that the filter hides stay hidden.
            cache: cache for incremental decoding, which is read and extended. Self-attention then sees all keys so far;
                with `keys`, the keys of the first call are projected once and kept, and those of later calls ignored.
                A memory is read at the first call and kept.

        Returns:
            (B, Tq, M)

        Raises:
            ValueError: for tokens of another width, a memory if `memory_length` is 0, positions of keys without keys,
                or a position or distance that is not in a learned table.
        """
        return self.output_of(self.smooth(queries, keys, **arguments), queries)

    def output_of(self, smoothed: Tensor, queries: Tensor) -> Tensor:
        """Apply W_o to the heads' output (B, H, Tq, D), gated by the queries' tokens (B, Tq, M): (B, Tq, M)."""
        if self.differential is not None:
            smoothed = self.differential.normalised(smoothed)
        joined = smoothed.transpose(1, 2).flatten(2)
        if self.gate is not None:
            joined = joined * self.gate(queries).sigmoid()
        output: Tensor = self.output(joined)
        return output

    def queries_of(self, features: Tensor) -> Tensor:
        """Project and normalise tokens (B, T, M) as queries: (B, H, T, D), each map separately."""
        projected = self._heads(self.query, features)
        return projected if self.query_norm is None else self.query_norm(projected)

    def keys_of(self, features: Tensor) -> Tensor:
        """Project and normalise tokens (B, T, M) as keys: (B, `kv_heads`, T, D), each map separately."""
        norm = self.key_norm or self.query_norm
        projected = self._heads(self.key or self.query, features)
        return projected if norm is None else norm(projected)

    def values_of(self, features: Tensor) -> Tensor:
        """Project tokens (B, T, M) as values: (B, `kv_heads`, T, D)."""
        projection = self.value or self.key or self.query
        projected: Tensor = features if projection is None else projection(features)
        return projected.view(*projected.shape[:-1], self.kv_heads, -1).transpose(1, 2)

    def for_all_heads(self, rows: Tensor) -> Tensor:
        """Repeat keys or values of `kv_heads` for each head of queries, and for both of its maps."""
        maps = self.shape[0] // self.heads
        if rows.size(1) == self.shape[0]:
            return rows
        if rows.size(1) == self.kv_heads:
            return rows.repeat_interleave(self.shape[0] // self.kv_heads, 1)
        # The keys of a head's maps stay together.
        heads = rows.view(rows.size(0), self.kv_heads, maps, *rows.shape[2:])
        return heads.repeat_interleave(self.heads // self.kv_heads, 1).flatten(1, 2)

    def smooth(self, queries: Tensor, keys: Tensor | None = None, **arguments: Unpack[ForwardArguments]) -> Tensor:
        """Return Definition 1 in each head, before W_o: (B, H, Tq, D). Arguments as in `forward`."""
        smoothed = self._smoothed(self._project(queries, keys, **arguments))
        return smoothed if self.differential is None else self.differential.difference(smoothed)

    def weights(self, queries: Tensor, keys: Tensor | None = None, **arguments: Unpack[ForwardArguments]) -> Tensor:
        """Return the normalised weights by the literal path, (B, H, Tq, Tk). Arguments as in `forward`."""
        projected = self._project(queries, keys, **arguments)
        log_weight, weight = self._log_weight(projected), self.kernel.weight(projected.query, projected.key)
        visible = self._chosen(log_weight, weight, self._visible(*projected[4:]))
        weights = smoother.weights(log_weight, weight, self.normaliser, visible)
        if self.local_linear is not None:
            weights = self.local_linear.literal(weights, projected.query, projected.key)
        return weights if self.differential is None else self.differential.difference(weights)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, head_width={self.output.in_features // self.heads}, path={self.path}"

    @property
    def _schemes(self) -> Iterable[PositionScheme]:
        return cast(Iterable[PositionScheme], self.positions.values())

    @property
    def _needs_weights(self) -> bool:
        """Whether the output depends on the weights otherwise than by the average of the values."""
        return self.value_function.uses_weights or self.local_linear is not None

    @property
    def _dropout(self) -> float:
        return self.dropout if self.training else 0.0

    def _smoothed(self, projected: _Projected) -> Tensor:
        return self.value_function.smoothed(self._averaged(projected), projected.at_query)

    def _averaged(self, projected: _Projected) -> Tensor:
        if self.path == "literal":
            return self._smooth_literally(projected)
        for smooth in (self._smooth_in_one_call, self._smooth_by_linear_attention):
            output = smooth(projected)
            if output is not None:
                return output
        return self._smooth_in_blocks(projected)

    def _smooth_literally(self, projected: _Projected) -> Tensor:
        log_weight, weight = self._log_weight(projected), self.kernel.weight(projected.query, projected.key)
        fit, query, key = self.local_linear, projected.query, projected.key
        return smoother.literal(
            log_weight,
            weight,
            self.normaliser,
            projected.value,
            fit=None if fit is None else lambda weights: fit.literal(weights, query, key),
            visible=self._chosen(log_weight, weight, self._visible(*projected[4:])),
            pair_values=self._pair_values(projected.at_query, projected.at_key),
            dropout=self._dropout,
        )

    def _smooth_in_one_call(self, projected: _Projected) -> Tensor | None:
        """Smooth by scaled-dot-product attention; None if it cannot, or if a bias or mask would be too large."""
        raw, query, key, value, at_query, at_key, (own, padding, mask) = projected
        if not self.normaliser.is_row_sum or self.filter.reads_content or self._needs_weights:
            return None
        if (kernel := self.kernel.dot_product(query, key)) is None:
            return None
        if query.size(-1) != self.shape[1]:
            # Columns of schemes are over the root of a head's width, those of the kernel over that of what it compares.
            kernel = kernel[0] * math.sqrt(self.shape[1] / query.size(-1)), kernel[1]
        limited = self.filter.limits or mask is not None
        # A bias without parameters is the same for the whole batch; padding makes it one for each row.
        without_parameters = all(next(scheme.parameters(), None) is None for scheme in self._schemes if scheme.weighs)
        most = LARGEST_KEPT if without_parameters and not limited and padding is None else LARGEST_MASK
        pairs = query.size(2) * key.size(2)
        # No kernel on a CPU gives the gradient of a bias; torch's way without one takes more passes than a block.
        fixed = without_parameters or value.device.type != "cpu" or not torch.is_grad_enabled()
        dot_products, bias = [kernel], None
        for scheme in self._schemes:
            columns = scheme.dot_product(raw, at_query, at_key, self.filter.triangular and own)
            if columns is not None:
                dot_products.append(columns)
            elif scheme.weighs:
                if pairs > most or not fixed:
                    return None
                bias = _sum(bias, scheme.log_weight(raw, at_query, at_key))
        causal = self._triangular(projected) and padding is None and mask is None and bias is None
        if limited and not causal and pairs > most:
            return None
        return smoother.fused(
            dot_products,
            value,
            bias=bias,
            visible=None if causal else self._visible(*projected[4:]),
            causal=causal,
            width=self.shape[1],
            dropout=self._dropout,
        )

    def _smooth_by_linear_attention(self, projected: _Projected) -> Tensor | None:
        """Smooth by sums over the keys; None if a weight is not a product of features, or if there are few pairs."""
        query, key, (_, padding, mask) = projected.query, projected.key, projected.masks
        causal = self._triangular(projected)
        weighed = any(scheme.weighs for scheme in self._schemes) or self._needs_weights or self._dropout
        if weighed or mask is not None or (self.filter.limits and not causal) or not self.normaliser.is_row_sum:
            return None
        pairs, more = query.size(2) * key.size(2), CAUSAL if causal else 1
        if pairs < (FEWEST_TOKENS * more) ** 2 or (none := self.kernel.feature_map(key[:, :, :0], Side.KEY)) is None:
            return None
        if none.size(-1) > 2 * query.size(-1) and pairs < (FEWEST_TOKENS_PER_FEATURE * none.size(-1) * more) ** 2:
            return None
        of_key = self.kernel.feature_map(key, Side.KEY)
        assert of_key is not None
        if padding is not None:
            of_key = of_key.masked_fill(padding[:, None, :, None], 0.0)
        of_query = self.kernel.feature_map(query, Side.QUERY)
        assert of_query is not None
        return linear_attention(of_query, of_key, projected.value, causal=causal)

    def _smooth_in_blocks(self, projected: _Projected) -> Tensor:
        """Smooth some queries at a time, with only the keys that the filter may show them."""
        raw, query, key, value, at_query, at_key, masks = projected
        rows, heads, queries, width = query.shape
        most = BLOCK * (FILTERED if self.filter.limits else 1)
        size = max(int(most / (rows * heads * key.size(2))), SMALLEST_BLOCK)
        if size < queries:
            # Make each head's rows contiguous once; otherwise each product of each block would do it again.
            raw, query, key, value = (tokens.contiguous() for tokens in (raw, query, key, value))
        dot_product, term, fit, compared = self.kernel.dot_product(query, key), None, self.local_linear, (query, key)
        if dot_product is not None:
            term = None if self.normaliser.is_row_sum else self.kernel.constant_term(query)
            query, key = dot_product[0] / math.sqrt(width), dot_product[1]
        factors = [scheme.blockwise(raw, at_query, at_key) for scheme in self._schemes if scheme.weighs]

        def block(part: tuple[slice, Part]) -> Tensor:
            query_part, key_part = part
            at_query_part, at_key_part = at_query.part(query_part), at_key.part(key_part)
            query_here, key_here, weight = index_select(query, query_part), index_select(key, key_part), None
            if dot_product is not None:
                log_weight: Tensor | None = query_here @ key_here.transpose(-2, -1)
                log_weight = log_weight if term is None else _sum(log_weight, index_select(term, query_part))
            else:
                log_weight = self.kernel.log_weight(query_here, key_here)
                weight = self.kernel.weight(query_here, key_here)
            bias = None
            for factor in factors:
                bias = _sum(bias, factor(index_select(raw, query_part), query_part, key_part))
            # In place if no gradient needs the product itself: new memory costs more than the sum.
            log_weight = _sum(log_weight, bias, in_place=dot_product is not None)
            visible = self._visible(at_query_part, at_key_part, masks.part(query_part, key_part))
            return smoother.quick(
                log_weight,
                weight,
                self.normaliser,
                index_select(value, key_part),
                fit=None if fit is None else lambda weights: fit.fused(weights, *map(index_select, compared, part)),
                visible=self._chosen(log_weight, weight, visible),
                pair_values=self._pair_values(at_query_part, at_key_part),
                dropout=self._dropout,
            )

        query_parts = (slice(first, min(first + size, queries)) for first in range(0, max(queries, 1), size))
        parts = [(query_part, self._seen(projected, query_part)) for query_part in query_parts]
        keys = range(key.size(2))
        pairs = size * sum(len(keys[part] if isinstance(part, slice) else part) for _, part in parts)
        return smoother.in_blocks(block, parts, again=pairs > LARGEST_KEPT, random=self._dropout > 0)

    def _triangular(self, projected: _Projected) -> bool:
        """Return whether the filter shows each query its own key and all keys before it, and all are in order."""
        first, start = projected.at_query.start, projected.at_key.start
        aligned = first is not None and first == start and projected.query.size(2) == projected.key.size(2)
        return self.filter.triangular and aligned

    def _seen(self, projected: _Projected, query_part: slice) -> Part:
        """Return the keys that some of the queries may see."""
        first, start, keys = projected.at_query.start, projected.at_key.start, projected.key.size(2)
        # Keys from elsewhere may all have to be seen.
        if first is None or start is None or not projected.masks.own:
            return slice(0, keys)
        key_part = self.filter.seen(
            range(first + query_part.start, first + query_part.stop), range(start, start + keys)
        )
        return key_part if isinstance(key_part, slice) else torch.tensor(key_part, device=projected.key.device)

    def _project(
        self,
        queries: Tensor,
        keys: Tensor | None,
        memory: Tensor | None = None,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
        key_padding: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> _Projected:
        if keys is None and key_positions is not None:
            raise ValueError("key_positions: given without keys; allowed: query_positions alone, for both")
        if memory is not None and not self.memory_length:
            raise ValueError("memory: given where memory_length is 0; allowed: memory_length of 1 or more")
        for name, tokens in {"queries": queries, "keys": keys, "memory": memory}.items():
            if tokens is not None and tokens.size(-1) != self.output.out_features:
                raise ValueError(f"{name}: {tokens.size(-1)} features; allowed: {self.output.out_features}")
        cache = cache or Cache()
        at_query = self._place(queries, query_positions, cache.next)
        cache.next = at_query.positions[..., -1:] + 1
        features = self._features(queries, at_query)
        raw = self.queries_of(features)
        query = self._compared(raw, at_query)
        asking = None if keys is None else self._read(features)

        at_key = at_query if keys is None else self._place(keys, key_positions)
        if keys is not None and cache.keys is not None:
            known = cache.keys
        else:
            source = queries if keys is None else keys
            if memory is not None and cache.keys is None:
                source, at_key, key_padding = self._with_memory(memory, source, at_key, key_padding)
            if source is not queries:
                features = self._features(source, at_key)
            alike = source is queries and self.key is None
            key = query if alike else self._compared(self.keys_of(features), at_key)
            for scheme in self._schemes:
                key = scheme.key(key, at_key)
            key = self._placed(key, at_key, Side.KEY)
            value = self.values_of(self.value_function.features(source, at_key))
            value = self.value_function.projected(value, at_key)
            known = cache.append(Keys(key, value, at_key.positions, key_padding, self._read(features)))
        if known.positions is not at_key.positions:
            at_key = TokenPositions(known.positions, self.encoding)
        for scheme in self._schemes:
            query = scheme.query(query, at_query)
        query = self._placed(query, at_query, Side.QUERY)
        if any(scheme.looks_at_tokens for scheme in self._schemes):
            shared = known._replace(key=self.for_all_heads(known.key))
            at_query, at_key = _with_tokens(query, shared, at_query, at_key, asking)
        if mask is not None:
            mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
            if mask.dim() == 4 and mask.size(1) > 1:
                mask = mask.repeat_interleave(self.shape[0] // self.heads, 1)
            mask = mask.expand(*mask.shape[:-2], queries.size(1), known.key.size(2))
        masks = _Masks(keys is None, known.padding, mask)
        key, value = self.for_all_heads(known.key), self.for_all_heads(known.value)
        return _Projected(raw, query, key, value, at_query, at_key, masks)

    def _place(self, tokens: Tensor, positions: Tensor | None, following: Tensor | None = None) -> TokenPositions:
        if positions is not None:
            return TokenPositions(positions, self.encoding)
        counted = torch.arange(tokens.size(1), device=tokens.device)
        if following is not None:
            return TokenPositions(following + counted, self.encoding)
        return TokenPositions(self.memory_length + counted, self.encoding, self.memory_length)

    def _with_memory(
        self, memory: Tensor, source: Tensor, at_source: TokenPositions, padding: Tensor | None
    ) -> tuple[Tensor, TokenPositions, Tensor | None]:
        memory = memory[:, -self.memory_length :]
        length = memory.size(1)
        before = torch.arange(-length, 0, device=memory.device)
        positions = torch.cat([at_source.positions[..., :1] + before, at_source.positions], -1)
        start = None if at_source.start is None else at_source.start - length
        if padding is not None:
            padding = nn.functional.pad(padding, (length, 0))
        return torch.cat([memory, source], 1), TokenPositions(positions, self.encoding, start), padding

    def _features(self, features: Tensor, place: TokenPositions) -> Tensor:
        for scheme in self._schemes:
            features = scheme.features(features, place)
        return features

    def _read(self, features: Tensor) -> dict[str, Tensor]:
        return {scheme.reads: scheme.of_tokens(features) for scheme in self._schemes if scheme.reads}

    def _heads(self, projection: nn.Linear | None, features: Tensor) -> Tensor:
        projected: Tensor = features if projection is None else projection(features)
        return projected.view(*projected.shape[:-1], -1, self.shape[1]).transpose(1, 2)  # (B, H, T, D)

    def _placed(self, features: Tensor, place: TokenPositions, side: Side) -> Tensor:
        for scheme in self._schemes:
            features = scheme.compared(features, place, side)
        return self.kernel.placed(features, place)

    def _compared(self, projected: Tensor, place: TokenPositions) -> Tensor:
        for scheme in self._schemes:
            projected = scheme.projected(projected, place)
        return projected

    def _log_weight(self, projected: _Projected) -> Tensor | None:
        total = self.kernel.log_weight(projected.query, projected.key)
        for scheme in self._schemes:
            total = _sum(total, scheme.log_weight(projected.raw, projected.at_query, projected.at_key))
        return total

    def _pair_values(self, at_query: TokenPositions, at_key: TokenPositions) -> Callable[[Tensor], Tensor] | None:
        if not self.value_function.uses_weights:
            return None
        maps = self.shape[0] // self.heads

        def pair_values(weights: Tensor) -> Tensor:
            # Both maps of a head weigh the same values.
            sums = [self.value_function.pair_values(weights[:, index::maps], at_query, at_key) for index in range(maps)]
            return sums[0] if maps == 1 else torch.stack(sums, 2).flatten(1, 2)

        return pair_values

    def _visible(self, at_query: TokenPositions, at_key: TokenPositions, masks: _Masks) -> Tensor | None:
        chosen = self.filter.visible(at_query.positions.unsqueeze(-1), at_key.positions.unsqueeze(-2))
        if chosen is not None and chosen.dim() == 3:
            chosen = chosen.unsqueeze(1)  # (B, 1, Tq, Tk)
        real = None if masks.padding is None else ~masks.padding[:, None, None, :]
        visible = _and(chosen, real)
        if visible is not None and chosen is not None and not masks.own:
            # A source that is shorter, or has other positions, may have no key where the filter looks for one.
            missed = ~visible.any(-1, keepdim=True)
            visible = visible | (missed if real is None else missed & real)
        return _and(visible, masks.mask)

    def _chosen(self, log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None) -> Tensor | None:
        """Return which keys are visible, without those that the filter hides by their weights."""
        return _and(visible, self.filter.chosen(log_weight, weight, visible))


def _with_tokens(
    query: Tensor, known: Keys, at_query: TokenPositions, at_key: TokenPositions, asking: dict[str, Tensor] | None
) -> tuple[TokenPositions, TokenPositions]:
    """Return both positions with their tokens; `asking` is what is read off the queries, if they are no keys."""
    queries, keys = query.size(2), known.key.size(2)
    rank = torch.arange(1, keys + 1, device=query.device).unsqueeze(0)
    last = slice(keys - queries, keys)  # a query's own token is among the last keys
    if asking is None:
        read = {name: index_select(features, last) for name, features in known.read.items()}
        padding = known.padding if known.padding is None else known.padding[:, last]
        of_query = TokenFeatures(query, read, rank[:, last], padding)
    else:
        places = at_key.positions.expand(query.size(0), -1).contiguous()
        wanted = at_query.positions.expand(query.size(0), -1).contiguous()
        of_query = TokenFeatures(query, asking, torch.searchsorted(places, wanted, right=True), None)
    return at_query.of(of_query), at_key.of(TokenFeatures(known.key, known.read, rank, known.padding))


def _and(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return first if second is None else second
    return first & second


def _sum(first: Tensor | None, second: Tensor | None, *, in_place: bool = False) -> Tensor | None:
    if first is None or second is None:
        return first if second is None else second
    return first.add_(second) if in_place else first + second


def _check_sizes(
    width: int,
    heads: int,
    head_width: int | None,
    kv_heads: int | None,
    max_positions: int,
    memory_length: int,
    dropout: float,
) -> None:
    """Refuse numbers out of their range, or widths and heads that do not divide."""
    if head_width is None and (heads < 1 or width % heads):
        raise ValueError(f"heads: {heads} heads do not divide width {width}; allowed: a divisor, or a head_width")
    for name, count in {"heads": heads, "head_width": head_width, "max_positions": max_positions}.items():
        if count is not None and count < 1:
            raise ValueError(f"{name}: {count}; allowed: 1 or more")
    if kv_heads is not None and (kv_heads < 1 or heads % kv_heads):
        raise ValueError(f"kv_heads: {kv_heads} do not divide {heads} heads; allowed: a divisor")
    if memory_length < 0:
        raise ValueError(f"memory_length: {memory_length}; allowed: 0 or more")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: {dropout}; allowed: 0 or more, below 1")
