"""What an attention is made of is given by names, and refused by name where it does not fit."""

import pytest

from kdx.attention import KernelAttention


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 10, "heads": 4}, "heads: 4 heads do not divide width 10; allowed: a divisor, or a head_width"),
        ({"heads": 0}, "heads: 0 heads do not divide width 8; allowed: a divisor, or a head_width"),
        ({"heads": 0, "head_width": 4}, "heads: 0; allowed: 1 or more"),
        ({"head_width": 0}, "head_width: 0; allowed: 1 or more"),
        ({"max_positions": 0}, "max_positions: 0; allowed: 1 or more"),
        ({"dropout": 1.5}, "dropout: 1.5; allowed: 0 or more, below 1"),
        ({"positions": ("relative",), "position_dropout": -1.0}, "position_dropout: -1.0; allowed: a number from 0 on"),
        ({"kernel": "rfb"}, "kernel: 'rfb'; allowed: linear, polynomial, exponential, rbf"),
        ({"symmetry": "tied"}, "symmetry: 'tied'; allowed: asymmetric, symmetric"),
        ({"positions": ("absolute",)}, "positions: 'absolute'; allowed: none, direct-sum, lookup, relative, product"),
        ({"value": "table2"}, "value: 'table2'; allowed: without-position, with-position"),
        ({"filter": "past"}, "filter: 'past'; allowed: full, causal"),
        ({"encoding": "cosine", "positions": ("product",)}, "encoding: 'cosine'; allowed: sinusoidal, learned"),
        ({"path": "fast"}, "path: 'fast'; allowed: fused, literal"),
        (
            {"positions": ("product", "product")},
            "positions: a scheme stands twice in product, product; allowed: each once",
        ),
        (
            {"value": "with-position", "encoding": None},
            "encoding: None, but positions or values use it; allowed: sinusoidal, learned",
        ),
        ({"normaliser": "sum"}, "normaliser: 'sum'; allowed: row-sum, length"),
        ({"value": "table", "sharing": "one"}, "sharing: 'one'; allowed: per-head, shared"),
        ({"positions": ("relative",), "xl_bias": "on"}, "xl_bias: 'on'; allowed: none, learned"),
        ({"reach": "future"}, "reach: 'future'; allowed: past, both"),
        ({"temperature": 0.0}, "temperature: 0.0; allowed: a number above 0"),
        ({"temperature": float("nan")}, "temperature: nan; allowed: a number above 0"),
        ({"temprature": 2.0}, "temprature: 2.0, but no component has such an option; allowed: "),
        ({"memory_length": -1}, "memory_length: -1; allowed: 0 or more"),
        ({"positions": ("lookup",), "clip": -1}, "clip: -1; allowed: a whole number from 0 on, or none"),
        ({"filter": "strided", "stride": 0}, "stride: 0; allowed: a whole number from 1 on"),
        ({"filter": "fixed", "stride": 4, "summary": 8}, "summary: 8; allowed: 0 to the stride, 4"),
        (
            {"width": 9, "heads": 3, "positions": ("product",)},
            "width: sinusoids come in pairs, not 9; allowed: an even number",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        KernelAttention(**{"width": 8, "heads": 2} | arguments)
    # A later word widens the list of what is allowed.
    assert str(refusal.value).startswith(message)
