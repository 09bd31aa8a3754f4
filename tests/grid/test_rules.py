"""How the fields of a cell fit together, and what a cell settles that depends on others."""

import json

import pytest
from grids import cell
from pydantic import ValidationError

from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.fingerprint import fingerprint
from kdx.grid.load import load_grid
from kdx.grid.placement import filter_in, positions_in, value_in
from kdx.grid.reading import reading_of
from kdx.grid.spec import CellSpec
from kdx.grid.words import known_options, options_in, owners, words_in
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Embeddings, Inject


def refusal(task: str = "translation", **settings) -> dict:
    with pytest.raises(ValidationError) as caught:
        cell(task, **settings)
    (detail,) = caught.value.errors()
    return detail


@pytest.mark.parametrize(
    ("task", "select", "selection"),
    [
        ("translation", None, ("valid/bleu", "max")),
        ("prediction", None, ("valid/perplexity", "min")),
        ("image", None, ("valid/bits_per_dimension", "min")),
        ("tour", None, ("valid/accuracy", "max")),
        ("tour", {"metric": "length_ratio"}, ("valid/length_ratio", "min")),
        ("translation", {"metric": "loss"}, ("valid/loss", "min")),
        ("translation", {"metric": "valid/bleu", "direction": "max"}, ("valid/bleu", "max")),
    ],
)
def test_selection_is_always_on_validation(task, select, selection):
    assert cell(task, select=select).selection == selection


def test_options_have_their_defaults_where_their_part_is_and_are_nothing_elsewhere():
    lookup = cell(position="lookup")
    exponential = {"scale": "scaled", "temperature": 1.0}
    assert lookup.options == {**exponential, "clip": 16, "sharing": "per-head"} and lookup.option("xl_bias") is None
    assert cell(clip=3, sharing="shared", xl_bias="none", stride=4, summary=1, neighbours=2) == cell()
    relative = cell(position="relative")
    assert relative.options == {**exponential, "xl_bias": "learned", "position_dropout": 0.0}
    assert cell(position="relative", symmetry="symmetric").option("xl_bias") == "none"
    fixed = cell(filter={"encoder-self": "fixed"})
    assert (fixed.option("stride"), fixed.option("summary")) == (16, 2)
    assert cell(filter={"encoder-self": "strided"}).option("summary") is None
    assert cell(mixer="convolution").option("neighbours") == 2


def test_words_of_the_whole_attention_are_nothing_where_none_attends_or_they_change_nothing():
    plain = cell("prediction")
    assert cell("prediction", kv_heads=4) == plain and cell("prediction", kv_heads=2) != plain
    whole = {"qk_norm": "rms", "kv_heads": 2, "output_gate": "sigmoid"}
    assert cell("prediction", mixer="equivariant", **whole) == cell("prediction", mixer="equivariant")
    # Translation has an attention that no mixer stands in for.
    assert cell("translation", mixer="equivariant", **whole).kv_heads == 2


def test_what_has_no_end_may_see_any_number_of_positions():
    assert (
        cell("translation", position="direct-sum", data={"corpus": "text", "max_tokens": 3000}).data.max_tokens == 3000
    )
    assert (
        cell("translation", position="lookup", clip="none", data={"corpus": "text", "max_tokens": 1024}).option("clip")
        == "none"
    )
    assert cell("prediction", position="lookup", clip=16, memory=3000).memory == 3000
    assert cell("prediction", position="lookup", clip="none", memory=896).option("clip") == "none"


def test_a_kernel_that_sees_positions_is_one_of_sequences_as_far_as_its_horizon():
    assert cell("image", space="sequence", kernel="cosformer").kernel == "cosformer"
    assert cell("prediction", kernel="cosformer", memory=1000, horizon=1128).option("horizon") == 1128


def test_what_another_scaling_of_angles_uses_makes_no_other_cell():
    plain = cell("prediction", position="rotary")
    assert cell("prediction", position="rotary", rotary_factor=8, original_length=64) == plain
    by = {"position": "rotary", "rotary_factor": 8}
    ntk = cell("prediction", **by, rotary_scaling="ntk", original_length=64)
    assert ntk == cell("prediction", **by, rotary_scaling="ntk") != plain
    yarn = cell("prediction", **by, rotary_scaling="yarn", original_length=64)
    assert yarn.option("original_length") == 64 and yarn != cell("prediction", **by, rotary_scaling="yarn")


@pytest.mark.parametrize("scheme", [known.word for known in POSITIONS.definitions() if known.past_only])
def test_a_scheme_of_the_past_goes_where_no_later_key_is_seen(scheme):
    assert cell("prediction", position=scheme).position == (scheme,)
    assert cell("prediction", position=scheme, filter={"decoder-self": "strided"}).position == (scheme,)
    assert cell("translation", position=scheme, placement="decoder-self").placement == (Attention.DECODER_SELF,)
    assert cell("translation", position=scheme, filter={"encoder-self": "causal"}).position == (scheme,)


def test_rotary_values_act_where_there_are_distances():
    spec = cell(value="rotary", position="rotary")
    assert [value_in(spec, attention) for attention in Attention] == ["rotary", "without-position", "rotary"]


def test_a_normaliser_of_the_past_goes_where_no_later_key_is_seen():
    assert cell("prediction", normaliser="stick-breaking").normaliser == "stick-breaking"


EXAMPLES = {
    "translation": None,
    "prediction": None,
    "image": "image",
    "set": "set",
    "multimodal": "multimodal",
    "tour": "set",
    "graph": "graph",
    "answer": None,
}


@pytest.mark.parametrize(("task", "space"), EXAMPLES.items())
def test_a_task_has_a_space_of_its_own_and_only_the_layers_of_its_attentions(task, space):
    spec = cell(task, model={"width": 96})
    assert spec.space == space
    layers = {Attention.ENCODER_SELF: spec.model.encoder_layers, Attention.DECODER_SELF: spec.model.decoder_layers}
    assert {attention for attention, number in layers.items() if number} == set(layers) & set(
        TASKS.definition(spec.task).attentions
    )
    if space:
        assert spec.model.embeddings is Embeddings.SEPARATE
        assert cell(task, model={"width": 96}, space=space) == spec


def test_the_same_text_is_the_same_cell_whether_its_space_is_named_or_not():
    assert cell(space="sequence") == cell()


def test_images_may_be_read_as_a_sequence_with_every_scheme_of_one():
    assert cell("image", space="sequence", position="relative", value="table").position == ("relative",)


SPACES = {
    "image": ("image", ["none", "direct-sum", "product"], ["without-position", "with-position"]),
    "set": ("set", ["none"], ["without-position"]),
    "graph": ("graph", ["none", "lookup"], ["without-position", "table"]),
}


@pytest.mark.parametrize(("space", "task", "schemes", "values"), [(space, *has) for space, has in SPACES.items()])
def test_a_space_takes_its_schemes_and_values_and_no_others(space, task, schemes, values):
    for scheme in ("none", *POSITIONS):
        if scheme in schemes:
            assert cell(task, position=scheme).space == space
        else:
            assert refusal(task, position=scheme)["ctx"]["allowed"] == ", ".join(schemes)
    for value in VALUES:
        if value in values:
            assert cell(task, value=value).value == value
        else:
            assert refusal(task, value=value)["ctx"]["allowed"] == ", ".join(values)


@pytest.mark.parametrize("mixer", ["equivariant", "convolution"])
@pytest.mark.parametrize(
    "inert",
    [
        {"kernel": "rbf"},
        {"symmetry": "symmetric"},
        {"position": "lookup", "clip": 3},
        {"position": "product", "value": "with-position", "encoding": "learned"},
        {"value": "table"},
        {"normaliser": "length"},
        {"scale": "unscaled"},
        {"temperature": 2.0},
        {"filter": {"encoder-self": "causal"}},
    ],
    ids=str,
)
def test_what_nothing_is_left_to_use_is_no_other_cell(mixer: str, inert: dict) -> None:
    assert cell("prediction", mixer=mixer, **inert) == cell("prediction", mixer=mixer)


def test_filters_of_attentions_that_a_task_does_not_have_come_to_nothing() -> None:
    assert cell("prediction", filter={"encoder-self": "strided", "encoder-decoder": "fixed"}) == cell("prediction")


def test_a_look_up_by_label_has_no_clip():
    spec = cell("graph", position="lookup", value="table")
    assert spec.option("clip") is None and spec.option("sharing") == "per-head"
    assert CellSpec.model_validate(spec.model_dump(by_alias=True)) == spec


def test_a_recorded_cell_is_made_again_only_with_the_source_that_it_had(own_kernel):
    (cell,) = load_grid(own_kernel / "grid.yaml").cells
    plain = json.loads(cell.spec.text)
    assert CellSpec.model_validate(plain) == cell.spec
    plain["components"]["my_kernels.py:Cauchy"] = "0" * 64
    with pytest.raises(ValidationError, match="is not the one that the cell was made with"):
        CellSpec.model_validate(plain)


def test_a_component_that_comes_to_nothing_is_none_of_the_cell(own_kernel):
    load_grid(own_kernel / "grid.yaml")
    cell = {"task": "image", "data": {"corpus": "synthetic-images"}, "mixer": "convolution"}
    assert CellSpec.model_validate({**cell, "kernel": "my_kernels.py:Cauchy"}).components == {}
    assert CellSpec.model_validate({**cell, "kernel": "rbf", "components": {"x": "0" * 64}}).components == {}


def test_without_projections_queries_and_keys_are_the_same_features():
    assert cell(projection="none") == cell(projection="none", symmetry="symmetric")


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
