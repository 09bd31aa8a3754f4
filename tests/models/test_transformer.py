"""The sublayers and stacks that both tasks share."""

import math

import pytest
import torch
from cells import VOCABULARY, WIDTH, cell, count, language, tokens, translation
from torch.nn import functional

from kdx.attention.differential import Differential
from kdx.grid.load import load_grid
from kdx.grid.sections import Model
from kdx.models.transformer import (
    FeedForward,
    Input,
    Residual,
    Stack,
    attention_of,
    embedding_of,
    normalisation_of,
)
from kdx.vocabulary import Attention, FeedForwardKind


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normalised(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (WIDTH,))


def test_layers_share_u_and_v_where_their_shapes_agree():
    layers = {"last": {"maps": "differential"}}
    model = language(position="relative", xl_bias="shared", layers=layers, model={"decoder_layers": 3})
    first, second, last = (layer.self_attention.positions["relative"].u for layer in model.decoder.layers)
    assert first is second and last.shape != first.shape
    assert torch.isfinite(model(tokens(2, 5))).all()


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
        for last in (layer.self_attention.output, layer.feed_forward.down):
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


def gaussian_share(x: torch.Tensor) -> torch.Tensor:
    """Φ(x), number by number."""
    return x.detach().clone().apply_(lambda one: 0.5 * (1 + math.erf(one / math.sqrt(2))))


@pytest.mark.parametrize("bias", ["learned", "none"])
@pytest.mark.parametrize("kind", FeedForwardKind)
def test_the_feed_forward_is_its_formula(kind, bias):
    module = FeedForward(Model(width=WIDTH, inner=12, feed_forward=kind, feed_forward_bias=bias)).double()
    maps = [module.up, module.down] + ([module.gate] if kind == "swiglu" else [])
    assert count(module) == sum(linear.weight.numel() for linear in maps) + (bias == "learned") * sum(
        linear.out_features for linear in maps
    )
    for linear in maps:
        if bias == "learned":
            assert not linear.bias.any()
            torch.nn.init.normal_(linear.bias)
    x = draw(2, 3, WIDTH)
    up, down, *gate = (
        (lambda x, linear=linear: x @ linear.weight.T + (0 if linear.bias is None else linear.bias)) for linear in maps
    )
    inner = up(x)
    if kind == "relu":
        inner = inner.clamp(min=0)
    elif kind == "gelu":
        inner = inner * gaussian_share(inner)
    else:
        inner = inner * gate[0](x) / (1 + torch.exp(-gate[0](x)))
    torch.testing.assert_close(module(x), down(inner))


@pytest.mark.parametrize("words", [{"normalisation": "rms"}, {"normalisation_bias": "none"}, {}], ids=str)
def test_a_normalisation_is_its_formula(words):
    module = normalisation_of(Model(width=WIDTH, **words)).double()
    names = {name for name, _ in module.named_parameters()}
    assert names == ({"weight"} if words else {"weight", "bias"})
    assert (module.weight == 1).all()
    torch.nn.init.normal_(module.weight)
    x = draw(2, 3, WIDTH)
    centred = x if words.get("normalisation") == "rms" else x - x.mean(-1, keepdim=True)
    mean_square = (centred**2).mean(-1, keepdim=True)
    torch.testing.assert_close(module(x), centred / (mean_square + 1e-5).sqrt() * module.weight)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("task", ["prediction", "translation"])
def test_every_normalisation_of_a_model_is_the_cells(task, norm):
    make = language if task == "prediction" else translation
    kinds = {type(module) for module in make({"normalisation": "rms"}, norm=norm).modules()}
    assert torch.nn.RMSNorm in kinds and torch.nn.LayerNorm not in kinds


# A block of Llama (Touvron et al. 2023): as many heads for keys as for queries.
LLAMA = {
    "bias": "none",
    "feed_forward_bias": "none",
    "feed_forward": "swiglu",
    "normalisation": "rms",
}


@pytest.mark.parametrize(("width", "inner", "heads"), [(8, 12, 2), (128, 172, 4), (4096, 11008, 32)])
def test_a_block_of_llama_has_its_parameters(width, inner, heads):
    """4 d² of attention, 3 d f of SwiGLU, 2 d of RMSNorm; 7B has d = 4096, f = 11008."""
    sizes = {"width": width, "inner": inner, "heads": heads}
    with torch.device("meta"):
        spec = cell("prediction", LLAMA | sizes, norm="pre", position="rotary")
        stack = Stack(spec, 2, Attention.DECODER_SELF)
    block = 4 * width**2 + 3 * width * inner + 2 * width
    assert [count(layer) for layer in stack.layers] == [block, block]
    assert count(stack) == 2 * block + width
    with torch.device("meta"):
        normed = Stack(cell("prediction", LLAMA | sizes, norm="pre", qk_norm="rms"), 1, Attention.DECODER_SELF)
    # A gain for queries and one for keys, as wide as a head.
    assert count(normed.layers) == block + 2 * width // heads


def test_differential_attention_knows_the_depth_of_its_layer():
    model = translation({"encoder_layers": 3, "decoder_layers": 2}, maps="differential")
    result = {name: module.initial for name, module in model.named_modules() if isinstance(module, Differential)}
    assert len(result) == 3 + 2 * 2
    for name, initial in result.items():
        depth = 1 + int(name.split("layers.")[1][0])
        assert initial == pytest.approx(0.8 - 0.6 * math.exp(-0.3 * (depth - 1)))


@pytest.mark.parametrize("preset", ["prediction", "translation"])
@pytest.mark.parametrize("size", ["mini", "small"])
def test_a_modern_preset_has_blocks_of_llama_as_large_as_those_of_its_base(preset, size):
    base, modern = (load_grid(f"presets/{name}-{size}").cells[0].spec for name in (preset, f"{preset}-modern"))
    assert {key: getattr(modern.model, key) for key in LLAMA} == LLAMA
    assert (modern.norm, modern.qk_norm, modern.position) == ("pre", "rms", ("rotary",))
    assert modern.data == base.data and modern.memory == base.memory
    for name in ("steps", "batch_tokens", "length", "warmup", "learning_rate", "label_smoothing"):
        assert getattr(modern.training, name) == getattr(base.training, name)
    # What a position scheme of the base has of its own is no part of the block.
    sizes = [
        count(Stack(spec.model_copy(update={"position": (), "xl_bias": None}), 1, Attention.ENCODER_SELF).layers)
        for spec in (base, modern)
    ]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_the_feed_forward_can_drop_what_its_relu_leaves():
    module = FeedForward(Model(width=WIDTH, inner=WIDTH, inner_dropout=0.5))
    for linear in (module.up, module.down):
        torch.nn.init.eye_(linear.weight)
    x = torch.ones(100, 10, WIDTH)
    assert set(module(x).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(module.eval()(x), x)
    assert FeedForward(Model(width=WIDTH, inner=12))(x).isfinite().all()


@pytest.mark.parametrize("task", ["prediction", "translation"])
def test_u_and_v_are_learned_in_each_layer_or_once_in_each_stack(task):
    models = {}
    for word in ("none", "learned", "shared"):
        model = (language if task == "prediction" else translation)(position="relative", xl_bias=word)
        models[word] = model, count(model)
    stacks = 1 if task == "prediction" else 2
    base = models["none"][1]
    assert models["learned"][1] - base == 2 * stacks * 2 * WIDTH
    assert models["shared"][1] - base == stacks * 2 * WIDTH
    first, second = (layer.self_attention.positions["relative"] for layer in models["shared"][0].decoder.layers)
    assert first.u is second.u and first.v is second.v and first.u is not first.v


def test_shared_u_and_v_come_back_from_a_state_as_one_pair(tmp_path):
    model, other = (language(position="relative", xl_bias="shared", seed=seed) for seed in (0, 1))
    torch.nn.init.normal_(model.decoder.layers[0].self_attention.positions["relative"].u)
    torch.save(model.state_dict(), tmp_path / "weights")
    other.load_state_dict(torch.load(tmp_path / "weights", weights_only=True))
    assert torch.equal(model(tokens(2, 5)), other(tokens(2, 5)))
    first, second = (layer.self_attention.positions["relative"] for layer in other.decoder.layers)
    assert first.u is second.u and first.u.any()


@pytest.mark.parametrize("task", ["prediction", "translation"])
@pytest.mark.parametrize("block", [{}, {"normalisation": "rms", "feed_forward": "swiglu"}], ids=["2017", "today's"])
def test_the_normal_initialisation_draws_every_matrix_alike(task, block):
    size = {"width": 64, "inner": 96, "initialisation": "normal"} | block
    make = language if task == "prediction" else translation
    model = make(size, position=["lookup", "relative", "kerple-log"], norm="pre")
    names = dict(model.named_parameters())
    for name, parameter in names.items():
        module = model.get_submodule(name.rpartition(".")[0])
        if isinstance(module, torch.nn.LayerNorm | torch.nn.RMSNorm):
            mean, deviation = (1.0, 0.02) if name.endswith("weight") else (0.0, 0.0)
        elif name.endswith("bias"):
            mean, deviation = 0.0, 0.0
        elif "kerple" in name:
            continue
        else:
            mean, deviation = 0.0, 0.02
        values = parameter[1:] if isinstance(module, torch.nn.Embedding) else parameter
        assert values.std().item() == pytest.approx(deviation, rel=0.3), name
        assert values.mean().item() == pytest.approx(mean, abs=0.008), name
    assert any(name.endswith("relative.u") for name in names)
    embedding = model.input if task == "prediction" else model.source_input
    assert not embedding.embedding.weight[0].any()
    kerple = "decoder.layers.0.self_attention.positions.kerple-log.scale"
    # A parameter of a formula is drawn as the formula asks.
    assert names[kerple].abs().max() > 0.1


def test_a_direct_sum_has_the_sinusoids_of_the_cell():
    positions = torch.arange(5)
    for axes in ({"inject": "input"}, {"inject": "per-layer"}):
        vectors = {}
        for word in ("vaswani", "fairseq"):
            model = language(position="direct-sum", sinusoids=word, **axes)
            own = model.input if axes["inject"] == "input" else model.decoder.layers[0].self_attention
            vectors[word] = own.encoding(positions)
        # Between the first frequency, 1 in both, and the last, WIDTH / 2 - 1 of them have other exponents.
        same = (vectors["vaswani"] == vectors["fairseq"])[1:].all(0)
        assert same.tolist() == [True, True] + [False] * (WIDTH - 2)


def test_an_evaluation_with_more_memory_leaves_a_tokens_position_what_it_was_in_training():
    axes = {"position": "direct-sum", "inject": "per-layer", "memory": 4}
    longer = language(evaluation={"memory": 7}, **axes)
    text, before = tokens(1, 3), torch.zeros(1, 4, WIDTH, dtype=torch.float64)
    attention = longer.decoder.layers[0].self_attention
    assert attention.memory_length == 7
    for memory in (None, before, torch.zeros(1, 7, WIDTH, dtype=torch.float64)):
        projected = attention._project(torch.zeros(1, 3, WIDTH, dtype=torch.float64), None, memory)
        assert projected.at_query.positions.tolist() == [7, 8, 9]
        assert projected.at_key.positions[-3:].tolist() == [7, 8, 9]
    assert longer(text).isfinite().all()


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
    assert all(not layer.self_attention.positions for layer in model.decoder.layers)


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
    assert encoder.layers[0].self_attention.filter.triangular and decoder.layers[0].self_attention.filter.triangular
    assert not attention_of(spec, Attention.ENCODER_DECODER).filter.triangular
