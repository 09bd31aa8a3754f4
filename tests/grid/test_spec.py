"""A cell settles what depends on another field, and refuses what cannot be."""

import pytest
from pydantic import ValidationError

from kdx.axes import Attention, Embeddings, Encoding, Filter, Inject, Position, Task, Value
from kdx.grid.spec import ATTENTIONS, METRICS, TEST_METRICS, CellSpec


def cell(task: str = "translation", **settings) -> CellSpec:
    if task == "prediction":
        settings = {"training": {"batch_tokens": 1280}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


def refusal(task: str = "translation", **settings) -> dict:
    with pytest.raises(ValidationError) as caught:
        cell(task, **settings)
    (detail,) = caught.value.errors()
    return detail


def test_every_task_has_metrics_and_attentions():
    assert set(METRICS) == set(TEST_METRICS) == set(ATTENTIONS) == set(Task)


def test_a_test_has_the_metrics_of_validation_and_one_that_selects_nothing():
    assert all(METRICS[task].items() <= TEST_METRICS[task].items() for task in Task)
    with pytest.raises(ValidationError, match="unknown validation metric `bleu_detokenised`"):
        cell(select={"metric": "bleu_detokenised"})


def test_without_a_position_nothing_speaks_of_one():
    spec = cell(encoding="learned", inject="per-layer", placement="decoder-self")
    assert (spec.position, spec.placement, spec.inject, spec.encoding) == ((), (), None, None)
    assert spec.value is Value.WITHOUT_POSITION


def test_direct_sum_goes_to_the_input_and_into_every_value():
    spec = cell(position="direct-sum")
    assert (spec.inject, spec.value, spec.encoding) == (Inject.INPUT, Value.WITH_POSITION, Encoding.SINUSOIDAL)
    for attention in Attention:
        # It acts before the attentions, not inside them.
        assert spec.positions_in(attention) == () and spec.value_in(attention) is Value.WITHOUT_POSITION


def test_per_layer_a_direct_sum_acts_where_it_is_placed():
    spec = cell(position="direct-sum", inject="per-layer", placement=["decoder-self"], value="with-position")
    assert spec.positions_in(Attention.DECODER_SELF) == (Position.DIRECT_SUM,)
    assert spec.positions_in(Attention.ENCODER_SELF) == ()
    assert spec.value_in(Attention.DECODER_SELF) is Value.WITH_POSITION
    assert spec.value_in(Attention.ENCODER_SELF) is Value.WITHOUT_POSITION


def test_schemes_act_together():
    spec = cell(position=["product", "direct-sum"])
    assert spec.position == (Position.DIRECT_SUM, Position.PRODUCT)
    assert spec.positions_in(Attention.ENCODER_SELF) == (Position.PRODUCT,)


def test_prediction_has_a_decoder_only():
    spec = cell("prediction", position="product", placement=["encoder-self", "decoder-self"])
    assert spec.placement == (Attention.DECODER_SELF,)
    assert (spec.model.encoder_layers, spec.model.embeddings) == (0, Embeddings.TIED)
    assert spec.training.length == 128


def test_a_filter_belongs_to_each_attention():
    spec = cell(filter={"encoder-self": "causal"})
    assert [spec.filter_in(attention) for attention in Attention] == [Filter.CAUSAL, Filter.FULL, Filter.CAUSAL]


@pytest.mark.parametrize(
    ("task", "select", "selection"),
    [
        ("translation", None, ("valid/bleu", "max")),
        ("prediction", None, ("valid/perplexity", "min")),
        ("translation", {"metric": "loss"}, ("valid/loss", "min")),
        ("translation", {"metric": "valid/bleu", "direction": "max"}, ("valid/bleu", "max")),
    ],
)
def test_selection_is_always_on_validation(task, select, selection):
    assert cell(task, select=select).selection == selection


@pytest.mark.parametrize(
    ("settings", "field", "problem"),
    [
        ({"data": {"corpus": "t", "vocabulary": "bpe"}}, "vocabulary_size", "byte pairs need a vocabulary size"),
        ({"data": {"corpus": "t", "source": "de"}}, "source", "source and target go together"),
        ({"data": {"corpus": "t", "target": "de"}}, "target", "source and target go together"),
        ({"model": {"width": 65}}, "width", "width 65 does not divide by 4 heads"),
        ({"model": {"encoder_layers": 0}}, "model.encoder_layers", "translation needs an encoder"),
        ({"training": {"length": 5}}, "training.length", "only prediction reads streams of a fixed length"),
        ({"position": ["product", "product"]}, "position", "a position scheme stands twice"),
        (
            {"task": "prediction", "training": {"batch_tokens": 1000}},
            "training.batch_tokens",
            "1000 tokens do not divide into streams of 128",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_at_its_field(settings, field, problem):
    context = refusal(**settings)["ctx"]
    assert (context["field"], context["problem"]) == (field, problem)


@pytest.mark.parametrize(
    "settings",
    [
        {"training": {"steps": True}},
        {"training": {"steps": "10"}},
        {"training": {"steps": 10.0}},
        {"training": {"learning_rate": float("nan")}},
        {"training": {"learning_rate": float("inf")}},
        {"training": {"betas": [0.9, 1.0]}},
        {"model": {"dropout": -0.1}},
        {"data": {"corpus": "../secret"}},
        {"data": {"corpus": ""}},
        {"kernel": 1},
        {"seed": 3},
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_never_bent_into_one(settings):
    refusal(**settings)


def test_a_cell_does_not_change():
    with pytest.raises(ValidationError):
        cell().kernel = "rbf"


def test_a_distance_acts_in_self_attention_unless_it_is_placed():
    spec = cell(position="lookup")
    assert spec.placement == (Attention.ENCODER_SELF, Attention.DECODER_SELF)
    assert spec.positions_in(Attention.ENCODER_DECODER) == ()
    everywhere = cell(position="relative", placement=list(Attention))
    assert everywhere.positions_in(Attention.ENCODER_DECODER) == (Position.RELATIVE,)
    beside = cell(position=["product", "lookup"])
    assert beside.positions_in(Attention.ENCODER_DECODER) == (Position.PRODUCT,)
    assert beside.positions_in(Attention.DECODER_SELF) == (Position.LOOKUP, Position.PRODUCT)


def test_options_have_their_defaults_where_their_part_is_and_are_nothing_elsewhere():
    lookup = cell(position="lookup")
    assert (lookup.clip, lookup.sharing, lookup.xl_bias, lookup.encoding) == (16, "per-head", None, None)
    assert cell(clip=3, sharing="shared", xl_bias="none", stride=4, summary=1, neighbours=2) == cell()
    relative = cell(position="relative")
    assert (relative.xl_bias, relative.position_dropout, relative.clip) == ("learned", 0.0, None)
    assert cell(position="relative", symmetry="symmetric").xl_bias == "none"
    fixed = cell(filter={"encoder-self": "fixed"})
    assert (fixed.stride, fixed.summary) == (16, 2)
    assert cell(filter={"encoder-self": "strided"}).summary is None
    assert cell(mixer="convolution").neighbours == 2


def test_shaws_table_of_values_belongs_to_self_attention():
    spec = cell(value="table")
    assert spec.value_in(Attention.ENCODER_SELF) is spec.value_in(Attention.DECODER_SELF) is Value.TABLE
    assert spec.value_in(Attention.ENCODER_DECODER) is Value.WITHOUT_POSITION
    assert spec.clip == 16
    beside_a_sum = cell(value="table", position="direct-sum")
    assert beside_a_sum.value_in(Attention.DECODER_SELF) is beside_a_sum.value is Value.TABLE


@pytest.mark.parametrize(
    ("task", "settings", "field", "problem"),
    [
        ("translation", {"memory": 8}, "memory", "sentences have nothing before them to remember"),
        (
            "prediction",
            {"memory": 8, "position": "direct-sum"},
            "memory",
            "what is remembered would keep the positions of its own segment",
        ),
        ("prediction", {"memory": 8, "mixer": "equivariant"}, "memory", "the equivariant mixer has none"),
        (
            "prediction",
            {"memory": 1000, "position": "product", "encoding": "learned"},
            "encoding",
            "a learned table has 1024 positions, and 1128 are in sight",
        ),
        (
            "prediction",
            {"memory": 8, "position": "product", "encoding": "learned", "evaluation": {"memory": 900}},
            "encoding",
            "a learned table has 1024 positions, and 1028 are in sight",
        ),
        (
            "prediction",
            {"model": {"cutoffs": [100]}, "training": {"label_smoothing": 0.1}},
            "training.label_smoothing",
            "an adaptive softmax cannot be smoothed",
        ),
        (
            "translation",
            {"position": "relative", "symmetry": "symmetric", "xl_bias": "learned"},
            "xl_bias",
            "with u a symmetric kernel is not symmetric",
        ),
        ("translation", {"scale": "unscaled", "kernel": "rbf"}, "scale", "the rbf kernel is defined with its scale"),
        ("translation", {"temperature": 2.0, "kernel": "polynomial"}, "temperature", "the polynomial kernel has none"),
        (
            "translation",
            {"position": "rotary", "model": {"width": 12, "heads": 4}},
            "model.heads",
            "rotary turns pairs of features, and a head has 3",
        ),
        (
            "translation",
            {"position": "relative", "model": {"width": 9, "heads": 3}},
            "model.width",
            "sinusoids need an even width, not 9",
        ),
        (
            "translation",
            {"filter": {"encoder-self": "fixed"}, "stride": 4, "summary": 5},
            "summary",
            "5 tokens of a block of 4",
        ),
        (
            "translation",
            {"filter": {"encoder-self": "strided"}, "mixer": "convolution"},
            "filter",
            "the convolution mixer has no sparse filter",
        ),
    ],
)
def test_a_part_that_cannot_be_is_refused_when_the_grid_is_read(task, settings, field, problem):
    detail = refusal(task, **settings)
    assert detail["ctx"]["field"] == field
    assert detail["ctx"]["problem"] == problem


def test_an_evaluation_reads_as_training_does_unless_said_otherwise():
    training = {"batch_tokens": 640, "length": 64}
    assert cell("prediction", training=training, memory=8).reading == (10, 64, 8)
    evaluation = {"streams": 3, "length": 16, "memory": 0}
    assert cell("prediction", training=training, memory=8, evaluation=evaluation).reading == (3, 16, 0)


@pytest.mark.parametrize("clip", [-1, 1.5, "never", True])
def test_a_clip_is_a_distance_or_none(clip):
    with pytest.raises(ValidationError):
        cell(position="lookup", clip=clip)
    assert cell(position="lookup", clip="none").clip == "none"
