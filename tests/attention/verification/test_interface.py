"""A component that breaks its interface, or would make a table wrong, is refused with a message; a sound one is not."""

from typing import Any

import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.distances import pair_distances
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    PositionScheme,
    ValueFunction,
    Word,
)
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.attention.verification.cases import AXES, findings_of
from kdx.attention.verification.interface import check_components, rehearse
from kdx.errors import ComponentError

WIDTH, HEADS, TOKENS = 16, 2, 9


def attention_with(base: type[Word], body: dict[str, Any], **choices: Any) -> tuple[type[Word], KernelAttention]:
    """Return a class with these methods and facts, and a causal attention with such a component."""
    kind = type("Mine", (base,), body)
    axis = next(axis for axis, above in AXES.items() if issubclass(base, above))
    own = {"positions": [kind]} if axis == "position" else {axis: kind}
    uses_encoding = {"positions": ["product"]} if axis == "encoding" else {}
    defaults = {"filter": "causal", "encoding": "learned"}
    return kind, KernelAttention(WIDTH, HEADS, **defaults | uses_encoding | own | choices).eval()


def tokens() -> Tensor:
    return torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(0))


def causal(self, query, key):
    return key <= query


def near(self, query, key):
    return (query - key).abs() <= 2


def score_of(log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None = None) -> Tensor:
    score = weight if log_weight is None else log_weight
    return score if visible is None else score.masked_fill(~visible, -torch.inf)


def best(self, log_weight, weight, visible):
    score = score_of(log_weight, weight, visible)
    return score >= score.amax(-1, keepdim=True) - 1


def linear(self, query, at_query, at_key):
    return -0.1 * pair_distances(at_query, at_key).abs()


def weighing(change) -> dict[str, Any]:
    """A scheme whose log-weight is made from the distances."""
    return {"log_weight": lambda self, query, at_query, at_key: change(pair_distances(at_query, at_key), query)}


def cauchy(self, query, key):
    return 1 / (1 + (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1))


def counted(self, features, place):
    self.calls = getattr(self, "calls", 0) + 1
    return features * (1 + 1e-4 * self.calls)


SOUND: dict[str, tuple[type[Word], dict[str, Any]]] = {
    "a causal filter": (FilterFunction, {"visible": causal}),
    "a triangular filter": (FilterFunction, {"visible": causal, "triangular": True}),
    "a filter by content": (FilterFunction, {"visible": causal, "chosen": best, "reads_content": True}),
    "a filter with seen": (FilterFunction, {"visible": causal, "seen": lambda self, queries, keys: range(len(keys))}),
    "a bias": (PositionScheme, {"log_weight": linear}),
    "a bias for each head": (PositionScheme, weighing(lambda distance, query: 0.1 * distance.expand(HEADS, -1, -1))),
    "a factor of the query": (
        PositionScheme,
        weighing(lambda distance, query: query.mean(-1, keepdim=True) * distance),
    ),
    "a vector": (
        PositionScheme,
        {"weighs": False, "uses_vector": True, "features": lambda self, features, place: features + place.vector},
    ),
    "far keys that are hidden": (
        PositionScheme,
        weighing(lambda distance, query: torch.zeros(distance.shape).masked_fill(distance < -3, -torch.inf)),
    ),
    "a weight": (KernelFunction, {"gives": "weight", "weight": cauchy}),
    "a signed weight": (
        KernelFunction,
        {"gives": "signed weight", "weight": lambda self, query, key: query @ key.transpose(-2, -1) + 40},
    ),
    "a logarithm in the run's own number format": (
        KernelFunction,
        {"log_weight": lambda self, query, key: query @ torch.eye(query.size(-1)) @ key.transpose(-2, -1)},
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_component_is_accepted(name):
    kind, attention = attention_with(*SOUND[name])
    rehearse(attention, tokens(), past=True, classes=[kind])


BROKEN: dict[str, tuple[type[Word], dict[str, Any], str]] = {
    "shows the future": (
        FilterFunction,
        {"visible": near},
        "shows a query at position -3 the key at -2, which stands after it",
    ),
    "shows everything": (
        FilterFunction,
        {"visible": lambda self, query, key: None},
        "which stands after it, in a decoder",
    ),
    "visible of a wrong shape": (
        FilterFunction,
        {"visible": lambda self, query, key: (key <= query)[None]},
        "visible gives (1, 13, 13)",
    ),
    "visible is no tensor": (FilterFunction, {"visible": lambda self, query, key: True}, "visible gives bool"),
    "hides its own key": (
        FilterFunction,
        {"visible": lambda self, query, key: key < query},
        "hides the own key of a query at position -3",
    ),
    "hides keys in secret": (
        FilterFunction,
        {"visible": causal, "limits": False},
        "its class says limits = False, and visible hides keys",
    ),
    "leaves keys out of seen": (
        FilterFunction,
        {"visible": causal, "seen": lambda self, queries, keys: slice(0, max(len(keys) - 1, 1))},
        "seen leaves out the key at 9",
    ),
    "depends on the length of the row": (
        FilterFunction,
        {"visible": lambda self, query, key: (key <= query) & (query - key < key.size(-1) / 2 + 1)},
        "depends on how many queries and keys there are",
    ),
    "is called triangular and is not": (
        FilterFunction,
        {"visible": lambda self, query, key: (key <= query) & (query - key < 3), "triangular": True},
        "is another thing than what it gives for the formula",
    ),
    "a factor of a wrong shape": (
        PositionScheme,
        weighing(lambda distance, query: torch.zeros(3, 5)),
        "log_weight gives (3, 5)",
    ),
    "heads last": (
        PositionScheme,
        weighing(lambda distance, query: 0.1 * distance[..., None]),
        "log_weight gives (9, 9, 1)",
    ),
    "a factor that is no tensor": (PositionScheme, weighing(lambda distance, query: 0.5), "log_weight gives float"),
    "a factor that is NaN": (
        PositionScheme,
        weighing(lambda distance, query: (3.0 - distance.abs()).sqrt()),
        "log_weight gives nan for a query at position 0 and a key at 4",
    ),
    "a factor that is infinite": (
        PositionScheme,
        weighing(lambda distance, query: 1 / distance.abs()),
        "log_weight gives inf for a query at position 0 and a key at 0",
    ),
    "a factor in secret": (
        PositionScheme,
        {"log_weight": linear, "weighs": False},
        "is another thing than what it gives for the formula",
    ),
    "one number for a position": (
        AbsoluteEncoding,
        {"forward": lambda self, positions: positions.unsqueeze(-1) * 0.1},
        "forward gives (12, 1)",
    ),
    "a vector by index": (
        AbsoluteEncoding,
        {"forward": lambda self, positions: torch.arange(positions.size(-1)).unsqueeze(-1).expand(-1, WIDTH) * 0.1},
        "another vector for a position that stands at another index",
    ),
    "no weight at all": (KernelFunction, {}, "neither log_weight nor weight gives numbers"),
    "a weight that is no tensor": (
        KernelFunction,
        {"gives": "weight", "weight": lambda self, query, key: "a"},
        "weight gives str",
    ),
    "queries for keys": (
        KernelFunction,
        {"gives": "weight", "weight": lambda self, query, key: cauchy(self, query, key).transpose(-2, -1)},
        "weight gives (2, 2, 9, 8)",
    ),
    "one number for a query": (
        KernelFunction,
        {"gives": "weight", "weight": lambda self, query, key: query.square().sum(-1, keepdim=True)},
        "weight gives (2, 2, 8, 1)",
    ),
    "no logarithm": (
        KernelFunction,
        {"weight": cauchy},
        "its class says that it gives a logarithm, and weight gives numbers",
    ),
    "no weight": (
        KernelFunction,
        {"gives": "weight", "log_weight": cauchy},
        "its class says that it gives a weight, and log_weight gives numbers",
    ),
    "a weight below 0": (
        KernelFunction,
        {"gives": "weight", "weight": lambda self, query, key: cauchy(self, query, key) - 0.5},
        "its class says that it gives a weight, and some are below 0",
    ),
    "a logarithm that is NaN": (
        KernelFunction,
        {"log_weight": lambda self, query, key: (query @ key.transpose(-2, -1)).log()},
        "log_weight gives nan for a query at position",
    ),
    "infinite where a query is a key": (
        KernelFunction,
        {"gives": "weight", "weight": lambda self, query, key: 1 / (1 / cauchy(self, query, key) - 1)},
        "weight gives inf for a query at position 0 and a key at 0",
    ),
    "the next key": (
        KernelFunction,
        {"log_weight": lambda self, query, key: query @ key.roll(-1, dims=2).transpose(-2, -1)},
        "or on keys after the query",
    ),
    "a cut gradient of a key": (
        KernelFunction,
        {"log_weight": lambda self, query, key: query @ key.detach().transpose(-2, -1)},
        "log_weight depends on key, and has no gradient by it",
    ),
    "a dot product of another kernel": (
        KERNELS["exponential"],
        {"dot_product": lambda self, query, key: (2 * query, key)},
        "is another thing than what it gives for the formula",
    ),
    "features of another kernel": (
        KernelFunction,
        {
            "gives": "weight",
            "weight": lambda self, query, key: (query @ key.transpose(-2, -1)).square(),
            "feature_map": lambda self, features, side: features.exp(),
        },
        "is another thing than what it gives for the formula",
    ),
    "blocks of another scheme": (
        PositionScheme,
        {
            "log_weight": linear,
            "blockwise": lambda self, query, at_query, at_key: lambda part, to, of: torch.zeros(()),
        },
        "is another thing than what it gives for the formula",
    ),
    "the next token's value": (
        ValueFunction,
        {"features": lambda self, features, place: features.roll(-1, dims=1)},
        "or on keys after the query",
    ),
    "a mean over time": (
        ValueFunction,
        {"features": lambda self, features, place: features - features.mean(1, keepdim=True)},
        "by its position, not by its index; first at position 0",
    ),
    "a mean over the batch": (
        ValueFunction,
        {"features": lambda self, features, place: features - features.mean(0, keepdim=True)},
        "it gives for a row depends on the other rows of the batch",
    ),
    "a value that is NaN": (
        ValueFunction,
        {"features": lambda self, features, place: features.sqrt()},
        "the attention gives nan for finite tokens, first at position 0 of row 0",
    ),
    "a value that counts its calls": (
        ValueFunction,
        {"features": counted},
        "other numbers for the same tokens when it computes again",
    ),
    "a cut gradient of a value": (
        ValueFunction,
        {"features": lambda self, features, place: features + place.vector.detach(), "uses_vector": True},
        "depends on encoding.weight, and has no gradient by it",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_component_is_refused_and_named(name):
    base, body, problem = BROKEN[name]
    kind, attention = attention_with(base, body)
    with pytest.raises(ComponentError) as caught:
        rehearse(attention, tokens(), past=True, classes=[kind])
    assert problem in str(caught.value) and caught.value.component is kind
    rehearse(attention, tokens(), past=True, classes=[])  # a component that is not tried counts as right


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            lambda log_weight, weight, visible: (
                ((score := score_of(log_weight, weight, visible)) >= score.amax(-1, keepdim=True))
                | (score >= score.amax(0, keepdim=True))
            ),
            "depends on the other rows of the batch",
        ),
        (
            lambda log_weight, weight, visible: (
                ((score := score_of(log_weight, weight)) >= score.median(-1, keepdim=True).values)
                | (score >= score_of(log_weight, weight, visible).amax(-1, keepdim=True))
            ),
            "or on keys after the query",
        ),
    ],
    ids=["of the batch", "of hidden keys"],
)
def test_a_filter_by_the_content_of_other_rows_or_hidden_keys_is_refused(body, problem):
    chosen = {"visible": causal, "reads_content": True, "chosen": lambda self, *scores: body(*scores)}
    with pytest.raises(ComponentError, match=problem):
        list(findings_of(type("Mine", (FilterFunction,), chosen), "cpu"))


def test_what_depends_on_padding_is_refused():
    less_mean = {"projected": lambda self, value, at_key: value - value.mean(-2, keepdim=True)}
    kind, attention = attention_with(ValueFunction, less_mean, filter="full")
    with pytest.raises(ComponentError, match="depends on tokens that are hidden"):
        rehearse(attention, tokens(), past=False, classes=[kind])


def at_absolute_places(self, value, at_key):
    return value / (1 + at_key.positions).abs().clamp(min=1).unsqueeze(-1).unsqueeze(-3)


@pytest.mark.parametrize(
    ("base", "body"),
    [(ValueFunction, {"projected": at_absolute_places, "absolute": True}), (POSITIONS["forgetting"], {})],
    ids=["a value by absolute positions", "an unchanged subclass"],
)
def test_a_right_class_has_every_property(base, body):
    assert [finding for finding in findings_of(type("Mine", (base,), body), "cpu") if not finding.holds] == []


def test_an_encoder_may_read_later_tokens():
    kind, attention = attention_with(FilterFunction, {"visible": near, "sees_later": True}, reach="both")
    check_components(attention, tokens(), past=False, classes=[kind])
    rehearse(attention, tokens(), past=False, classes=[kind])


@pytest.mark.parametrize(
    ("fact", "method"),
    [("uses_vector", lambda query, place: place.vector), ("looks_at_tokens", lambda query, place: place.tokens.rank)],
)
def test_what_a_scheme_uses_without_declaring_it_is_named(fact, method):
    body = {"log_weight": lambda self, query, at_query, at_key: method(query, at_query)}
    kind, attention = attention_with(PositionScheme, body)
    with pytest.raises(AssertionError, match=f"does not say {fact} = True"):
        rehearse(attention, tokens(), past=True, classes=[kind])
