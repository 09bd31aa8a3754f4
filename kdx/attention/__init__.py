"""Attention as a kernel smoother: Definition 1 (Eq. 2) of Tsai et al. 2019, literally and fast.

A query sees the keys that the filter shows it, and averages their values by the kernel:

    Attention(x_q) = Σ_k∈M w(x_q, x_k) v(x_k) / Σ_k∈M w(x_q, x_k),    w(x_q, x_k) = k_F(f_q, f_k) · k_T(…) · …

Factors are kept as log-weights where they have any, so a product of kernels is a sum. The components compose freely,
and each is one file that `make words` finds:

- `kernels`: k_F, on the projected features;
- `positions`: either a change of the features before they are projected, or one more factor of the weight;
- `encodings`: t, the vector of an absolute position;
- `values`: the vectors that are averaged;
- `filters`: M, always intersected with the padding;
- `normalisers`: turn a row into weights, by default by the row sum as above.

`interfaces` defines the base class of each. `module` combines them, and `smoother` computes Eq. 2 in two ways that
agree: `literal`, as printed, which is the oracle, and `fused`, one scaled-dot-product-attention call.

Letters for shapes, here and below: B batch, H heads, Tq and Tk queries and keys, D width per head, M model width.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kdx.attention.cache import Cache
    from kdx.attention.module import KernelAttention

__all__ = ["Cache", "KernelAttention"]


def __getattr__(name: str) -> Any:
    # Imported on use: the grid reads the families of names below this package without torch.
    if name == "Cache":
        from kdx.attention.cache import Cache

        return Cache
    if name == "KernelAttention":
        from kdx.attention.module import KernelAttention

        return KernelAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
