"""What acts inside each of the three attentions."""

from kdx.grid.placement import filter_in, positions_in, value_in
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Inject


def cell(task: str = "translation", **settings) -> CellSpec:
    if task == "prediction":
        settings = {"training": {"batch_tokens": 1280}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


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
