"""What a part gives is held to its interface; whatever breaks it is named, and what keeps it is let through."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from kdx.attention.distances import pair_distances
from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    PositionScheme,
    Settings,
    ValueFunction,
)
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.attention.verification.cases import findings_of
from kdx.attention.verification.interface import (
    check_components,
    check_encoding,
    check_filter,
    check_kernel,
    check_position,
    rehearse,
)
from kdx.errors import ComponentError
from kdx.vocabulary import Reach

WIDTH, HEADS, TOKENS = 16, 2, 9


def made(base: type, **body: Any) -> type:
    """A class with these methods and facts."""
    return type("Mine", (base,), body)


def score_of(log_weight: Tensor | None, weight: Tensor | None, visible: Tensor | None = None) -> Tensor:
    score = weight if log_weight is None else log_weight
    return score if visible is None else score.masked_fill(~visible, -torch.inf)


def causal(self, query, key):
    return key <= query


def near(self, query, key):
    return (query - key).abs() <= 2


def best(self, log_weight, weight, visible):
    score = score_of(log_weight, weight, visible)
    return score >= score.amax(-1, keepdim=True) - 1


SOUND_FILTERS = {
    "causal": {"visible": causal},
    "triangular": {"visible": causal, "triangular": True},
    "near": {"visible": near, "sees_later": True},
    "all": {"visible": lambda self, query, key: None, "sees_later": True, "limits": False},
    "a column": {"visible": lambda self, query, key: key >= -9, "sees_later": True},
    "content": {"visible": causal, "chosen": best, "reads_content": True},
    "seen": {"visible": causal, "seen": lambda self, queries, keys: list(range(len(keys)))},
}
BROKEN_FILTERS = {
    "rows of positions": (
        {"visible": lambda self, query, key: key <= query[:1] if query.dim() == 3 else key <= query},
        "of positions (B, T) of several rows another thing",
    ),
    "the future": ({"visible": near}, "shows a query at position -3 the key at -2, which stands after it"),
    "the whole future": ({"visible": lambda self, query, key: None}, "which stands after it, in a decoder"),
    "a shape": ({"visible": lambda self, query, key: (key <= query)[None]}, "visible gives (1, 13, 13)"),
    "a short shape": ({"visible": lambda self, query, key: (key <= query)[0, :5]}, "visible gives (5,)"),
    "no tensor": ({"visible": lambda self, query, key: True}, "visible gives bool"),
    "its own key": ({"visible": lambda self, query, key: key < query}, "hides the own key of a query at position -3"),
    "a whole row": (
        {"visible": lambda self, query, key: (key <= query) & (query % 4 != 3)},
        "hides the own key of a query at position -1",
    ),
    "limits": ({"visible": causal, "limits": False}, "its class says limits = False, and visible hides keys"),
    "seen too few": (
        {"visible": causal, "seen": lambda self, queries, keys: slice(0, max(len(keys) - 1, 1))},
        "seen leaves out the key at 9",
    ),
    "content of all": (
        {
            "visible": causal,
            "reads_content": True,
            "chosen": lambda self, log_weight, weight, visible: score_of(log_weight, weight) > 100,
        },
        "chosen hides all keys from a query",
    ),
}


FILTERS_OF_MORE_THAN_PAIRS = {
    "the length of the row": (
        {"visible": lambda self, query, key: (key <= query) & (query - key < key.size(-1) / 2 + 1)},
        "depends on how many queries and keys there are",
    ),
    "places by index": (
        {"visible": lambda self, query, key: torch.ones(query.size(-2), key.size(-1), dtype=torch.bool).tril()},
        "not by its index; first at position 1",
    ),
    "content of the batch": (
        {
            "visible": causal,
            "reads_content": True,
            "chosen": lambda self, log_weight, weight, visible: (
                ((score := score_of(log_weight, weight, visible)) >= score.amax(-1, keepdim=True))
                | (score >= score.amax(0, keepdim=True))
            ),
        },
        "depends on the other rows of the batch",
    ),
    "content of other queries": (
        {
            "visible": causal,
            "reads_content": True,
            "chosen": lambda self, log_weight, weight, visible: (
                ((score := score_of(log_weight, weight, visible)) >= score.amax(-1, keepdim=True))
                | (score >= score.amax(-2, keepdim=True))
            ),
        },
        "is another thing than what it gives for the formula",
    ),
    "content of hidden keys": (
        {
            "visible": causal,
            "reads_content": True,
            "chosen": lambda self, log_weight, weight, visible: (
                ((score := score_of(log_weight, weight)) >= score.median(-1, keepdim=True).values)
                | (score >= score_of(log_weight, weight, visible).amax(-1, keepdim=True))
            ),
        },
        "or on keys after the query",
    ),
}
"""Filters that depend on something else than the positions or weights of one query and its keys, and what finds it."""


def filter_of(body: dict[str, Any], reach: Reach = Reach.PAST) -> FilterFunction:
    return made(FilterFunction, **body)(Settings(WIDTH, HEADS, WIDTH // HEADS, reach=reach))


@pytest.mark.parametrize("name", SOUND_FILTERS)
def test_a_sound_filter_is_let_through(name):
    check_filter(filter_of(SOUND_FILTERS[name]), past=True)


@pytest.mark.parametrize("name", BROKEN_FILTERS)
def test_a_broken_filter_is_named(name):
    body, problem = BROKEN_FILTERS[name]
    with pytest.raises(ComponentError) as caught:
        check_filter(filter_of(body), past=True)
    assert problem in str(caught.value) and caught.value.component.__name__ == "Mine"
    assert caught.value.hint or caught.value.allowed


@pytest.mark.parametrize("name", FILTERS_OF_MORE_THAN_PAIRS)
def test_a_filter_of_more_than_pairs_is_found_by_what_comes_of_it(name):
    body, expected = FILTERS_OF_MORE_THAN_PAIRS[name]
    with pytest.raises(ComponentError, match=expected):
        list(findings_of(made(FilterFunction, **body), "cpu"))


def test_a_filter_may_look_ahead_in_an_encoder():
    check_filter(filter_of({"visible": near}, Reach.BOTH), past=False)


@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize("word", FILTERS)
def test_the_filters_of_kdx_keep_to_their_interface(word, reach):
    attention = KernelAttention(WIDTH, HEADS, filter=word, reach=reach, stride=3, left=2, right=1, sinks=1, top_k=3)
    check_filter(attention.filter, past=reach is Reach.PAST)


def linear(self, query, at_query, at_key):
    return -0.1 * pair_distances(at_query, at_key).abs()


def weighing(change) -> dict[str, Any]:
    """A scheme whose log-weight is made from the distances."""
    return {"log_weight": lambda self, query, at_query, at_key: change(pair_distances(at_query, at_key), query)}


SOUND_POSITIONS = {
    "a bias": {"log_weight": linear},
    "heads": weighing(lambda distance, query: 0.1 * distance.expand(HEADS, -1, -1)),
    "content": weighing(lambda distance, query: query.mean(-1, keepdim=True) * distance),
    "upcast": weighing(lambda distance, query: query.mean(-1, keepdim=True).float() * distance),
    "a vector": {
        "weighs": False,
        "uses_vector": True,
        "features": lambda self, features, place: features + place.vector,
    },
    "hidden": weighing(lambda distance, query: torch.zeros(distance.shape).masked_fill(distance < -3, -torch.inf)),
}
BROKEN_POSITIONS = {
    "a shape": (weighing(lambda distance, query: torch.zeros(3, 5)), "log_weight gives (3, 5)"),
    "heads last": (
        weighing(lambda distance, query: 0.1 * distance[..., None]),
        "log_weight gives (9, 9, 1)",
    ),
    "no tensor": (weighing(lambda distance, query: 0.5), "log_weight gives float"),
    "NaN": (
        weighing(lambda distance, query: (3.0 - distance.abs()).sqrt()),
        "log_weight gives nan for a query at position 0 and a key at 4",
    ),
    "infinity": (
        weighing(lambda distance, query: 1 / distance.abs()),
        "log_weight gives inf for a query at position 0 and a key at 0",
    ),
}


def check(scheme: type) -> None:
    attention = KernelAttention(WIDTH, HEADS, positions=[scheme]).eval()
    (part,) = attention.positions.values()
    check_position(part, attention, torch.randn(2, TOKENS, WIDTH))


@pytest.mark.parametrize("name", SOUND_POSITIONS)
def test_a_sound_scheme_is_let_through(name):
    check(made(PositionScheme, **SOUND_POSITIONS[name]))


@pytest.mark.parametrize("name", BROKEN_POSITIONS)
def test_a_broken_scheme_is_named(name):
    body, problem = BROKEN_POSITIONS[name]
    with pytest.raises(ComponentError) as caught:
        check(made(PositionScheme, **body))
    assert problem in str(caught.value) and caught.value.component.__name__ == "Mine"
    assert caught.value.hint or caught.value.allowed


@pytest.mark.parametrize(
    ("fact", "method"),
    [("uses_vector", lambda query, place: place.vector), ("looks_at_tokens", lambda query, place: place.tokens.rank)],
)
def test_what_a_scheme_asks_for_without_saying_so_is_told(fact, method):
    with pytest.raises(AssertionError, match=f"does not say {fact} = True"):
        check(made(PositionScheme, log_weight=lambda self, query, at_query, at_key: method(query, at_query)))


@pytest.mark.parametrize("word", POSITIONS)
def test_the_schemes_of_kdx_keep_to_their_interface(word):
    check(POSITIONS[word])


@pytest.mark.parametrize(
    ("forward", "problem"),
    [
        (lambda self, positions: positions.unsqueeze(-1) * 0.1, "forward gives (12, 1)"),
        (lambda self, positions: torch.rand(*positions.shape, WIDTH), "another vector for a position that stands"),
    ],
)
def test_a_broken_encoding_is_named(forward, problem):
    with pytest.raises(ComponentError) as caught:
        check_encoding(made(AbsoluteEncoding, forward=forward)(WIDTH, 1024), WIDTH)
    assert problem in str(caught.value)


def test_an_encoding_by_index_is_refused():
    class ByIndex(AbsoluteEncoding):
        def __init__(self, width, max_positions, **options):
            super().__init__(width, max_positions, **options)
            self.table = nn.Embedding(max_positions, width)

        def forward(self, positions):
            return self.table(torch.arange(positions.size(-1)))

    with pytest.raises(ComponentError, match="another vector for a position that stands at another index"):
        check_encoding(ByIndex(WIDTH, 1024), WIDTH)


def near_by(self, query, key):
    return 1 / (1 + (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1))


SOUND_KERNELS = {
    "a weight": {"gives": "weight", "weight": near_by},
    "a signed weight": {"gives": "signed weight", "weight": lambda self, query, key: near_by(self, query, key) - 0.5},
    "a logarithm": {"log_weight": lambda self, query, key: query @ key.transpose(-2, -1)},
}
BROKEN_KERNELS = {
    "nothing": ({}, "neither log_weight nor weight gives numbers"),
    "no tensor": ({"gives": "weight", "weight": lambda self, query, key: "a"}, "weight gives str"),
    "a shape": ({"log_weight": lambda self, query, key: query.sum(-1)}, "log_weight gives (2, 2, 8)"),
    "queries for keys": (
        {"gives": "weight", "weight": lambda self, query, key: near_by(self, query, key).transpose(-2, -1)},
        "weight gives (2, 2, 9, 8)",
    ),
    "one number a query": (
        {"gives": "weight", "weight": lambda self, query, key: query.square().sum(-1, keepdim=True)},
        "weight gives (2, 2, 8, 1)",
    ),
    "no logarithm": ({"weight": near_by}, "its class says that it gives a logarithm, and weight gives numbers"),
    "no weight": (
        {"gives": "weight", "log_weight": near_by},
        "its class says that it gives a weight, and log_weight gives numbers",
    ),
    "below 0": (
        {"gives": "weight", "weight": lambda self, query, key: near_by(self, query, key) - 0.5},
        "its class says that it gives a weight, and some are below 0",
    ),
    "no numbers": (
        {"log_weight": lambda self, query, key: (query @ key.transpose(-2, -1)).log()},
        "log_weight gives nan for a query at position",
    ),
    "infinite where a query is a key": (
        {"gives": "weight", "weight": lambda self, query, key: 1 / (1 / near_by(self, query, key) - 1)},
        "weight gives inf for a query at position 0 and a key at 0",
    ),
}


def heads_of(x: Tensor) -> Tensor:
    return x.view(2, TOKENS, HEADS, -1).transpose(1, 2)


def kernel_of(body: dict[str, Any]) -> KernelFunction:
    return made(KernelFunction, **body)(Settings(WIDTH, HEADS, WIDTH // HEADS))


@pytest.mark.parametrize("name", SOUND_KERNELS)
def test_a_sound_kernel_is_let_through(name):
    check_kernel(kernel_of(SOUND_KERNELS[name]), heads_of(torch.randn(2, TOKENS, WIDTH)))


@pytest.mark.parametrize("name", BROKEN_KERNELS)
def test_a_broken_kernel_is_named(name):
    body, problem = BROKEN_KERNELS[name]
    with pytest.raises(ComponentError) as caught:
        check_kernel(kernel_of(body), heads_of(torch.randn(2, TOKENS, WIDTH)))
    assert problem in str(caught.value) and caught.value.component.__name__ == "Mine"
    assert caught.value.hint or caught.value.allowed


@pytest.mark.parametrize("word", KERNELS)
def test_the_kernels_of_kdx_keep_to_their_interface(word):
    check_kernel(KernelAttention(WIDTH, HEADS, kernel=word).eval().kernel, heads_of(torch.randn(2, TOKENS, WIDTH)))


SCHEME_OF_A_SHAPE = made(PositionScheme, **weighing(lambda distance, query: torch.zeros(3, 5)))
KERNEL_OF_NOTHING = made(KernelFunction)
AHEAD = made(FilterFunction, visible=near)
DRAWING = made(AbsoluteEncoding, forward=lambda self, positions: torch.rand(*positions.shape, WIDTH))


@pytest.mark.parametrize(
    ("choices", "part"),
    [
        ({"kernel": KERNEL_OF_NOTHING}, KERNEL_OF_NOTHING),
        ({"filter": AHEAD}, AHEAD),
        ({"positions": [SCHEME_OF_A_SHAPE]}, SCHEME_OF_A_SHAPE),
        ({"encoding": DRAWING, "positions": ["product"]}, DRAWING),
    ],
)
def test_each_component_of_an_attention_is_checked_if_it_is_one_of_the_classes(choices, part):
    attention, x = KernelAttention(WIDTH, HEADS, **choices).eval(), torch.randn(2, TOKENS, WIDTH)
    check_components(attention, x, past=True, classes=[made(part)])
    with pytest.raises(ComponentError) as caught:
        check_components(attention, x, past=True, classes=[part])
    assert caught.value.component is part


def counted(self, features, place):
    self.calls = getattr(self, "calls", 0) + 1
    return features * (1 + 1e-4 * self.calls)


READS_FURTHER = {
    "the next token's value": (
        made(ValueFunction, features=lambda self, features, place: features.roll(-1, dims=1)),
        "or on keys after the query",
    ),
    "a mean over time": (
        made(ValueFunction, features=lambda self, features, place: features - features.mean(1, keepdim=True)),
        "or on keys after the query; .* first at position 0",
    ),
    "the next key": (
        made(KernelFunction, log_weight=lambda self, query, key: query @ key.roll(-1, dims=2).transpose(-2, -1)),
        "or on keys after the query",
    ),
    "the batch": (
        made(ValueFunction, features=lambda self, features, place: features - features.mean(0, keepdim=True)),
        "it gives for a row depends on the other rows of the batch",
    ),
    "no numbers": (
        made(ValueFunction, features=lambda self, features, place: features.sqrt()),
        "the attention gives nan for finite tokens, first at position 0 of row 0",
    ),
    "its calls": (made(ValueFunction, features=counted), "other numbers for the same tokens when it computes again"),
    "a cut gradient of a key": (
        made(KernelFunction, log_weight=lambda self, query, key: query @ key.detach().transpose(-2, -1)),
        r"log_weight depends on key, and has no gradient by it",
    ),
    "a cut gradient of values": (
        made(ValueFunction, features=lambda self, features, place: features + place.vector.detach(), uses_vector=True),
        r"depends on encoding\.weight, and has no gradient by it",
    ),
}


@pytest.mark.parametrize("name", READS_FURTHER)
def test_a_part_that_reads_what_it_may_not_is_refused(name):
    part, problem = READS_FURTHER[name]
    axis = "kernel" if issubclass(part, KernelFunction) else "value"
    attention = KernelAttention(WIDTH, HEADS, filter="causal", encoding="learned", **{axis: part}).eval()
    x = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ComponentError, match=problem) as caught:
        rehearse(attention, x, past=True, classes=[part])
    assert caught.value.component is part
    rehearse(attention, x, past=True, classes=[])


def window(self, query, key):
    return (key <= query) & (query - key < 3)


def twice(self, query, key):
    return 2 * query, key


NOT_ITS_FORMULA = {
    "a dot product": ("kernel", made(KERNELS["exponential"], dot_product=twice)),
    "triangular": ("filter", made(FilterFunction, visible=window, triangular=True)),
    "content in secret": ("filter", made(FilterFunction, visible=causal, chosen=best)),
    "no factor": ("positions", made(PositionScheme, log_weight=linear, weighs=False)),
}


@pytest.mark.parametrize("name", NOT_ITS_FORMULA)
def test_a_part_whose_fast_path_is_not_its_formula_is_refused(name):
    axis, part = NOT_ITS_FORMULA[name]
    choices = {"filter": "causal"} | {axis: [part] if axis == "positions" else part}
    x = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ComponentError, match="is another thing than what it gives for the formula") as caught:
        rehearse(KernelAttention(WIDTH, HEADS, **choices).eval(), x, past=True, classes=[part])
    assert caught.value.component is part


def test_an_encoder_may_read_later_tokens_and_a_decoder_earlier_ones():
    x = torch.randn(2, TOKENS, WIDTH)
    kernel = made(KernelFunction, log_weight=lambda self, query, key: query @ key.transpose(-2, -1))
    rehearse(KernelAttention(WIDTH, HEADS, kernel=kernel).eval(), x, past=False, classes=[kernel])
    rehearse(KernelAttention(WIDTH, HEADS, kernel=kernel, filter="causal").eval(), x, past=True, classes=[kernel])


def test_a_part_may_compute_in_the_dtype_of_the_run_alone():
    kernel = made(
        KernelFunction,
        log_weight=lambda self, query, key: query @ torch.eye(query.size(-1)) @ key.transpose(-2, -1),
    )
    attention = KernelAttention(WIDTH, HEADS, kernel=kernel, filter="causal").eval()
    rehearse(attention, torch.randn(2, TOKENS, WIDTH), past=True, classes=[kernel])
