"""A cell settles what depends on another field: positions, options, lengths."""

import pytest
from grids import cell
from pydantic import ValidationError

from kdx.fingerprint import fingerprint
from kdx.grid.placement import filter_in, positions_in, value_in
from kdx.grid.reading import reading_of
from kdx.grid.spec import CellSpec
from kdx.grid.words import known_options, options_in, owners, words_in
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Embeddings, Inject


def test_prediction_has_a_decoder_only():
    spec = cell("prediction", position="product", placement=["encoder-self", "decoder-self"])
    assert spec.placement == (Attention.DECODER_SELF,)
    assert (spec.model.encoder_layers, spec.model.embeddings) == (0, Embeddings.TIED)
    assert spec.training.length == 128


def test_a_cell_does_not_change():
    with pytest.raises(ValidationError):
        cell().kernel = "rbf"


def words(spec: CellSpec) -> list[str]:
    return [f"{family.axis} {word}" for family, word in words_in(spec.model_dump(mode="json", by_alias=True))]


def test_the_words_are_those_that_compute_something() -> None:
    assert words(cell("prediction", position="lookup", kernel="relu-squared")) == [
        "kernel relu-squared",
        "normaliser length",
        "mixer attention",
        "position lookup",
        "value without-position",
        "filter causal",
        "task prediction",
    ]
    fewer = ["mixer convolution", "value without-position", "filter causal", "task prediction"]
    assert words(cell("prediction", mixer="convolution")) == fewer


def test_an_unknown_word_is_passed_over() -> None:
    plain = cell("prediction").model_dump(mode="json", by_alias=True) | {"kernel": "theirs", "task": "dreaming"}
    assert "kernel" not in {family.axis for family, _ in words_in(plain)}
    assert "temperature" not in options_in(plain) and options_in({}) == options_in({"mixer": "attention"})


def test_a_cell_has_the_options_of_its_words_and_of_its_task() -> None:
    assert cell("prediction", kernel="linear").options == {}
    assert cell("prediction", kernel="rbf", temperature=2).options == {"temperature": 2.0}
    labelled = CellSpec.model_validate({"task": "classification", "data": {"corpus": "synthetic-order"}})
    assert labelled.option("pooling") == "mean"
    assert set(labelled.options) <= known_options().keys()


def test_who_brings_an_option_along() -> None:
    assert owners("temperature") == ["exponential", "rbf"] and owners("pooling") == ["classification"]


@pytest.mark.parametrize("task", TASKS)
def test_a_cached_corpus_outlives_changes_of_attention(task):
    """The code that makes a corpus is part of its key in the cache, and attention is none of it."""
    modules = fingerprint({TASKS.definition(task).data.reader.partition(":")[0]}).modules
    assert modules and not [module for module in modules if module.startswith("kdx.attention")]


def test_a_reader_of_text_depends_on_how_many_positions_there_are():
    assert "kdx.grid.max_positions" in fingerprint({"kdx.data.parallel"}).modules


def test_an_evaluation_reads_as_training_does_unless_said_otherwise():
    training = {"batch_tokens": 640, "length": 64}
    assert reading_of(cell("prediction", training=training, memory=8)) == (10, 64, 8)
    evaluation = {"streams": 3, "length": 16, "memory": 0}
    assert reading_of(cell("prediction", training=training, memory=8, evaluation=evaluation)) == (3, 16, 0)


def test_without_a_position_nothing_speaks_of_one():
    spec = cell(encoding="learned", inject="per-layer", placement="decoder-self")
    assert (spec.position, spec.placement, spec.inject, spec.encoding) == ((), (), None, None)
    assert spec.value == "without-position"


def test_direct_sum_goes_to_the_input_and_into_every_value():
    spec = cell(position="direct-sum")
    assert (spec.inject, spec.value, spec.encoding) == (Inject.INPUT, "with-position", "sinusoidal")
    for attention in Attention:
        # It acts before the attentions, not inside them.
        assert positions_in(spec, attention) == () and value_in(spec, attention) == "without-position"


def test_per_layer_a_direct_sum_acts_where_it_is_placed():
    spec = cell(position="direct-sum", inject="per-layer", placement=["decoder-self"], value="with-position")
    assert positions_in(spec, Attention.DECODER_SELF) == ("direct-sum",)
    assert positions_in(spec, Attention.ENCODER_SELF) == ()
    assert value_in(spec, Attention.DECODER_SELF) == "with-position"
    assert value_in(spec, Attention.ENCODER_SELF) == "without-position"


def test_schemes_act_together():
    spec = cell(position=["product", "direct-sum"])
    assert spec.position == ("direct-sum", "product")
    assert positions_in(spec, Attention.ENCODER_SELF) == ("product",)


def test_a_filter_belongs_to_each_attention():
    spec = cell(filter={"encoder-self": "causal"})
    assert [filter_in(spec, attention) for attention in Attention] == ["causal", "full", "causal"]


def test_a_distance_acts_in_self_attention_unless_it_is_placed():
    spec = cell(position="lookup")
    assert spec.placement == (Attention.ENCODER_SELF, Attention.DECODER_SELF)
    assert positions_in(spec, Attention.ENCODER_DECODER) == ()
    everywhere = cell(position="relative", placement=list(Attention))
    assert positions_in(everywhere, Attention.ENCODER_DECODER) == ("relative",)
    beside = cell(position=["product", "lookup"])
    assert positions_in(beside, Attention.ENCODER_DECODER) == ("product",)
    assert positions_in(beside, Attention.DECODER_SELF) == ("lookup", "product")


def test_shaws_table_of_values_belongs_to_self_attention():
    spec = cell(value="table")
    assert value_in(spec, Attention.ENCODER_SELF) is value_in(spec, Attention.DECODER_SELF) == "table"
    assert value_in(spec, Attention.ENCODER_DECODER) == "without-position"
    assert spec.option("clip") == 16
    beside_a_sum = cell(value="table", position="direct-sum")
    assert value_in(beside_a_sum, Attention.DECODER_SELF) is beside_a_sum.value == "table"


def test_images_and_streams_have_positions_inside_each_attention():
    for task in ("image", "multimodal"):
        spec = cell(task, model={"width": 96}, position="direct-sum")
        assert (spec.inject, spec.value) == (Inject.PER_LAYER, "without-position")
        assert positions_in(spec, *TASKS.definition(spec.task).attentions) == ("direct-sum",)


def test_beside_another_mixer_the_encoder_decoder_attention_keeps_its_parts() -> None:
    mixed = cell(mixer="equivariant", kernel="rbf", position="product", value="with-position")
    assert mixed.kernel == "rbf" and mixed.placement == (Attention.ENCODER_DECODER,)
    assert mixed.value == "with-position"
    assert cell(mixer="equivariant", position="lookup").position == ()
    summed = cell("prediction", mixer="convolution", position="direct-sum")
    assert summed.position == ("direct-sum",) and summed.value == "with-position"
