"""The sublayers and stacks that both tasks share."""

import pytest
import torch
from cells import VOCABULARY, WIDTH, cell, count, language, layer_size, tokens
from torch.nn import functional

from kdx.axes import Attention
from kdx.models.transformer import LONGEST, FeedForward, Input, Residual, Stack, attention_of, embedding_of


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normalised(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (WIDTH,))


def test_post_norm_normalises_the_sum_and_pre_norm_what_the_sublayer_reads():
    x, change = draw(2, 3, WIDTH), draw(2, 3, WIDTH, seed=1)
    post, pre = (Residual(cell("prediction", norm=norm)).double().eval() for norm in ("post", "pre"))
    assert torch.equal(post.inner(x), x)
    torch.testing.assert_close(post.outer(x, change), normalised(x + change))
    torch.testing.assert_close(pre.inner(x), normalised(x))
    assert torch.equal(pre.outer(x, change), x + change)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_stack_ends_normalised(norm):
    model = language(norm=norm)
    hidden = model.decoder(model.input(tokens(3, 5)))
    torch.testing.assert_close(hidden, normalised(hidden), rtol=0, atol=1e-4)


def test_a_pre_norm_stack_whose_sublayers_give_nothing_is_its_closing_norm_alone():
    stack = Stack(cell("prediction", norm="pre"), 3, Attention.DECODER_SELF).double()
    for layer in stack.layers:
        for last in (layer.own.output, layer.feed_forward.down):
            torch.nn.init.zeros_(last.weight)
    x = draw(2, 4, WIDTH)
    torch.testing.assert_close(stack(x), normalised(x))


def test_dropout_is_on_the_embeddings_and_on_what_each_sublayer_adds():
    spec = cell("prediction", {"dropout": 0.5})
    x = draw(50, 20, WIDTH)
    change = Residual(cell("prediction", {"dropout": 0.5}, norm="pre")).double().outer(x, torch.ones_like(x)) - x
    assert set(change.round(decimals=6).unique().tolist()) == {0.0, 2.0}
    embedded = Input(spec, embedding_of(VOCABULARY, WIDTH))(tokens(50, 20))
    assert (embedded == 0).double().mean() == pytest.approx(0.5, abs=0.05)


def test_the_feed_forward_is_its_formula():
    module = FeedForward(WIDTH, 12).double()
    x = draw(2, 3, WIDTH)
    hidden = (x @ module.up.weight.T + module.up.bias).clamp(min=0)
    torch.testing.assert_close(module(x), hidden @ module.down.weight.T + module.down.bias)


@pytest.mark.parametrize(("depth", "norm"), [(1, "post"), (3, "post"), (1, "pre"), (3, "pre")])
def test_a_stack_has_the_parameters_of_its_layers_and_pre_norm_one_norm_more(depth, norm):
    spec = cell("translation", norm=norm)
    closing = 2 * WIDTH if norm == "pre" else 0
    assert count(Stack(spec, depth, Attention.ENCODER_SELF)) == depth * layer_size() + closing
    across = Stack(spec, depth, Attention.DECODER_SELF, across=Attention.ENCODER_DECODER)
    assert count(across) == depth * layer_size(attentions=2) + closing


def test_a_symmetric_attention_has_one_projection_less():
    asymmetric, symmetric = (
        attention_of(cell("translation", symmetry=word), Attention.ENCODER_DECODER)
        for word in ("asymmetric", "symmetric")
    )
    assert count(asymmetric) - count(symmetric) == WIDTH * WIDTH + WIDTH


def test_embeddings_are_scaled_by_the_root_of_the_width_and_padding_is_zero():
    embedding = embedding_of(2000, 64)
    assert embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    embedded = Input(cell("prediction", {"width": 64}), embedding).eval()(torch.tensor([[5, 0]]))
    torch.testing.assert_close(embedded[0, 0], embedding.weight[5] * 8)
    assert not embedded[0, 1].any()


def test_a_direct_sum_at_the_input_is_taken_there_and_in_no_attention():
    model = language(position="direct-sum")
    at = [torch.tensor([position]) for position in (0, 7)]
    first, later = (model.input(tokens(1, 1), positions) for positions in at)
    torch.testing.assert_close(later - first, model.input.encoding(at[1])[None] - model.input.encoding(at[0])[None])
    assert all(not layer.own.positions for layer in model.decoder.layers)


def test_a_direct_sum_in_each_layer_leaves_the_input_without_position():
    model = language(position="direct-sum", inject="per-layer")
    assert model.input.encoding is None
    assert [list(layer.own.positions) for layer in model.decoder.layers] == [["direct-sum"]] * 2


@pytest.mark.parametrize(
    ("axes", "shows"),
    [
        ({}, False),
        ({"inject": "per-layer", "position": "direct-sum"}, False),
        ({"inject": "per-layer", "position": "direct-sum", "value": "with-position"}, True),
        ({"position": "direct-sum"}, True),
        ({"position": "product"}, False),
        ({"position": "product", "value": "with-position"}, True),
    ],
)
def test_a_token_repeated_shows_its_positions_only_where_values_have_them(axes, shows):
    logits = language(**axes)(torch.full((1, 8), 5))
    assert torch.allclose(logits, logits[:, :1]) is not shows


def test_positions_are_in_the_attentions_where_they_are_placed():
    spec = cell("translation", position="product", placement=["encoder-self", "encoder-decoder"])
    placed = {which: list(attention_of(spec, which).positions) for which in Attention}
    assert placed == {
        Attention.ENCODER_SELF: ["product"],
        Attention.ENCODER_DECODER: ["product"],
        Attention.DECODER_SELF: [],
    }


def test_each_attention_has_its_own_filter():
    spec = cell("translation", filter={"encoder-self": "causal"})
    encoder, decoder = Stack(spec, 1, Attention.ENCODER_SELF), Stack(spec, 1, Attention.DECODER_SELF)
    assert encoder.layers[0].own.filter.triangular and decoder.layers[0].own.filter.triangular
    assert not attention_of(spec, Attention.ENCODER_DECODER).filter.triangular


def test_a_learned_table_ends_where_it_says():
    model = language(position="direct-sum", encoding="learned")
    assert model.input.encoding.weight.shape == (LONGEST, WIDTH)
    with pytest.raises(ValueError, match=f"{LONGEST} is not in the learned table"):
        model.input(tokens(1, LONGEST + 1))
