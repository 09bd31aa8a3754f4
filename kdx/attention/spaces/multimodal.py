"""Several modalities: X = F^l × F^v × F^a × T, such as language, vision and audio, each with its own features.

product:    k(x_q, x_k) = Π_m k_F(f^m_q, f^m_k) · k_T(t_q, t_k), where the modalities have the same times
pairs:      k(x_q, x_k) = k_F(f^m_q, f^n_k) · k_T(t_q, t_k) for each ordered pair m ← n, whose times may differ

[Tsai et al. 2019, Sec. 2.2.1 (iv); the pairs are those of their Multimodal Transformer, ACL 2019]

In a pair, queries come from the modality that attends, keys and values from the one that it attends to.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import permutations
from typing import Any, cast

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import AbsoluteEncoding, DotProduct, KernelFunction, Settings
from kdx.attention.module import KernelAttention
from kdx.attention.qk_norm import norms_of
from kdx.vocabulary import Maps, Projection, QKNorm


class Combine(StrEnum):
    """How a modality combines the results of attending to the others: concatenated, or summed."""

    CONCATENATION = "concatenation"
    SUM = "sum"


class MultimodalAttention(KernelAttention):
    """`KernelAttention` on the joint space: its kernel is the product of one kernel for each modality.

    Its `forward` is that of `KernelAttention`, with the features of all modalities side by side: M = Σ M_m. Queries and
    keys of a modality are projected from its own features, values from all features unless keys and values share a
    projection. A head is n D wide.

    Args:
        widths: M_m, number of features of each of the n modalities.
        head_width: D, for one modality; default: M / (n H).
        heads, positions, parts: as in `KernelAttention`. Each modality has its own sinusoids of t.

    Raises:
        ValueError: for no modality, two maps, or what `KernelAttention` refuses.
    """

    takes_positional_kernels = False

    def __init__(
        self,
        widths: Sequence[int],
        heads: int,
        *,
        positions: Sequence[str] = ("direct-sum",),
        **parts: Any,
    ) -> None:
        if parts.get("maps", Maps.SINGLE) != Maps.SINGLE:
            raise ValueError(f"maps: {parts['maps']}; allowed in a product of modalities: {Maps.SINGLE}")
        if parts.get("projection", Projection.LINEAR) != Projection.LINEAR:
            raise ValueError(f"projection: {parts['projection']}; allowed for modalities: {Projection.LINEAR}")
        if not widths or min(widths) < 1:
            raise ValueError(f"widths: {list(widths)}; allowed: one or more, each 1 or more")
        head_width, width, modalities = parts.pop("head_width", None), sum(widths), len(widths)
        if head_width is None and (heads < 1 or width % (heads * modalities)):
            raise ValueError(
                f"heads: {heads} heads of {modalities} modalities do not divide width {width}; allowed: a divisor, "
                "or a head_width"
            )
        head_width = head_width or width // (heads * modalities)
        parts["head_width"] = modalities * head_width
        super().__init__(width, heads, positions=positions, **parts)
        self.kernel = OverModalities(Settings(width, heads, head_width), self.kernel, modalities)
        bias = parts.get("bias", True)
        self.query = ByModality(widths, heads, head_width, bias)  # type: ignore[assignment]
        if self.key is not None:
            self.key = ByModality(widths, self.kv_heads, head_width, bias)  # type: ignore[assignment]
        symmetric = self.key is None
        norms = norms_of(QKNorm(parts.get("qk_norm", QKNorm.NONE)), head_width, symmetric)
        self.query_norm, self.key_norm = (norm and OfEachModality(norm, head_width) for norm in norms)
        if self.encoding is not None:
            encoding = cast(AbsoluteEncoding, self.encoding)
            self.encoding = PerModality(encoding, widths, parts.get("max_positions", 1024))


class OverModalities(KernelFunction):
    """Π_m k_F(q^m, k^m), for queries and keys that have the modalities side by side."""

    def __init__(self, settings: Settings, kernel: KernelFunction, modalities: int) -> None:
        super().__init__(settings)
        self.factors = nn.ModuleList(type(kernel)(settings, **kernel.own_options) for _ in range(modalities))

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        terms = [factor.log_weight(q, k) for factor, q, k in self._split(query, key)]
        present = [term for term in terms if term is not None]
        return torch.stack(present).sum(0) if present else None

    def weight(self, query: Tensor, key: Tensor) -> Tensor | None:
        terms = [factor.weight(q, k) for factor, q, k in self._split(query, key)]
        present = [term for term in terms if term is not None]
        return torch.stack(present).prod(0) if present else None

    def dot_product(self, query: Tensor, key: Tensor) -> DotProduct | None:
        pairs = [factor.dot_product(q, k) for factor, q, k in self._split(query, key)]
        exact = [pair for pair in pairs if pair is not None]
        if len(exact) < len(pairs):
            return None
        # The factors' dot products are over √D, the whole one is over √(n D).
        root = math.sqrt(len(pairs))
        return torch.cat([root * q for q, _ in exact], -1), torch.cat([k for _, k in exact], -1)

    def constant_term(self, query: Tensor) -> Tensor | None:
        terms = [factor.constant_term(q) for factor, q, _ in self._split(query, query)]
        present = [term for term in terms if term is not None]
        return torch.stack(present).sum(0) if present else None

    def _split(self, query: Tensor, key: Tensor) -> list[tuple[KernelFunction, Tensor, Tensor]]:
        count = len(self.factors)
        return list(zip(self.factors, query.chunk(count, -1), key.chunk(count, -1), strict=True))  # type: ignore[arg-type]


class ByModality(nn.Module):
    """A projection of each modality's features, side by side in each head."""

    def __init__(self, widths: Sequence[int], heads: int, head_width: int, bias: bool) -> None:
        super().__init__()
        self.widths = list(widths)
        self.shape = (heads, head_width)
        linears = [nn.Linear(width, heads * head_width, bias) for width in widths]
        self.projections = nn.ModuleList(linears)
        for linear in linears:
            # As in `KernelAttention`, for each modality separately.
            nn.init.xavier_uniform_(linear.weight, gain=0.5**0.5)
            if bias:
                nn.init.zeros_(linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(…, M) to (…, H n D)."""
        parts = zip(self.projections, features.split_with_sizes(self.widths, -1), strict=True)
        return torch.cat([linear(own).unflatten(-1, self.shape) for linear, own in parts], -1).flatten(-2)


class OfEachModality(nn.Module):
    """A normalisation of each modality's features in a head, since each modality has its own kernel."""

    def __init__(self, norm: nn.Module, head_width: int) -> None:
        super().__init__()
        self.norm, self.head_width = norm, head_width

    def forward(self, projected: Tensor) -> Tensor:
        """(…, n D) to (…, n D)."""
        by_modality = projected.view(*projected.shape[:-1], -1, self.head_width)
        return self.norm(by_modality).flatten(-2)


class PerModality(nn.Module):
    """t repeated for each modality, with the width of the modality."""

    def __init__(self, encoding: AbsoluteEncoding, widths: Sequence[int], max_positions: int) -> None:
        super().__init__()
        self.encodings = nn.ModuleList(encoding.another(width, max_positions) for width in widths)

    def forward(self, positions: Tensor) -> Tensor:
        """Integers (…, T) to (…, T, M)."""
        return torch.cat([encoding(positions) for encoding in self.encodings], -1)


class CrossmodalAttention(nn.Module):
    """One cross kernel for each ordered pair of modalities.

    Each modality is a separate stream, with its own times and their sinusoids, projected to one width M before.

    Args:
        modalities: any names for the modalities.
        combine: how a modality combines the results of attending to the others, in the order of the names.
        width, heads, positions, parts: as in `KernelAttention`, for each pair.

    Raises:
        ValueError: for fewer than two modalities, a name given twice, an unknown name, or what `KernelAttention`
            refuses.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        modalities: Sequence[str],
        *,
        combine: Combine = Combine.CONCATENATION,
        positions: Sequence[str] = ("direct-sum",),
        **parts: Any,
    ) -> None:
        super().__init__()
        if len(modalities) < 2 or len(set(modalities)) < len(modalities):
            raise ValueError(f"modalities: {', '.join(modalities) or 'none'}; allowed: two or more, each once")
        if combine not in tuple(Combine):
            raise ValueError(f"combine: {combine!r}; allowed: {', '.join(Combine)}")
        self.modalities = tuple(modalities)
        self.combine = combine
        self.pairs = nn.ModuleDict(
            {
                _pair(target, source): KernelAttention(width, heads, positions=positions, **parts)
                for target, source in permutations(modalities, 2)
            }
        )

    def forward(
        self,
        streams: Mapping[str, Tensor],
        *,
        positions: Mapping[str, Tensor] | None = None,
        key_padding: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Attend from each modality to each of the others.

        Args:
            streams: (B, T_m, M) for each modality.
            positions: integer times (T_m,) or (B, T_m), for modalities whose times are not 0, 1, 2, …
            key_padding: (B, T_m), True where padding, for modalities that have padding.

        Returns:
            For each modality (B, T_m, M) with `sum`, or (B, T_m, (n - 1) M) with `concatenation` of n modalities.

        Raises:
            ValueError: for streams that are not exactly the modalities.
        """
        if set(streams) != set(self.modalities):
            raise ValueError(f"streams: {', '.join(streams) or 'none'}; allowed: all of {', '.join(self.modalities)}")
        positions, key_padding = positions or {}, key_padding or {}
        learned: dict[str, list[Tensor]] = {name: [] for name in self.modalities}
        for target, source in permutations(self.modalities, 2):
            output = self.pairs[_pair(target, source)](
                streams[target],
                streams[source],
                query_positions=positions.get(target),
                key_positions=positions.get(source),
                key_padding=key_padding.get(source),
            )
            learned[target].append(output)
        if self.combine == Combine.SUM:
            return {target: torch.stack(outputs).sum(0) for target, outputs in learned.items()}
        return {target: torch.cat(outputs, -1) for target, outputs in learned.items()}


def _pair(target: str, source: str) -> str:
    return f"{target}-from-{source}"
