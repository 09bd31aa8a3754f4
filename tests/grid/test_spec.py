"""A cell settles what depends on another field, and refuses what cannot be."""

import pytest
from pydantic import ValidationError

from kdx.axes import Attention, Embeddings, Encoding, Filter, Inject, Position, Task, Value
from kdx.grid.spec import ATTENTIONS, METRICS, CellSpec


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
    assert set(METRICS) == set(ATTENTIONS) == set(Task)


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
