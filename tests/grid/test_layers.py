"""`layers`: a choice of attention for some layers, which makes each of them a cell by itself."""

from pathlib import Path

import pytest
from grids import written
from hypothesis import given
from hypothesis import strategies as st

from kdx.cell_code import code_of
from kdx.grid.identity import cell_id
from kdx.grid.layers import LayerName, layers_of
from kdx.grid.load import load_grid
from kdx.grid.placement import filter_in, positions_in, value_in
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.grid.words import words_in
from kdx.vocabulary import Attention

DEPTH = 6


def cell(layers: dict | None = None, **settings) -> CellSpec:
    """A translation with six layers of the encoder and four of the decoder, unless it says otherwise."""
    model = {"encoder_layers": DEPTH, "decoder_layers": 4}
    given = {"task": "translation", "data": {"corpus": "text"}, "model": model, "position": "rotary", **settings}
    return CellSpec.model_validate(given if layers is None else {**given, "layers": layers})


def changed(layers: dict) -> list[str]:
    return [*cell(layers).layers]


@pytest.mark.parametrize(
    ("name", "encoder", "decoder"),
    [
        ("first", [1], [1]),
        ("last", [6], [4]),
        ("odd", [1, 3, 5], [1, 3]),
        ("even", [2, 4, 6], [2, 4]),
        ("every 3", [3, 6], [3]),
        ("every 1", [1, 2, 3, 4, 5, 6], [1, 2, 3, 4]),
        ("5", [5], []),
        ("encoder last", [6], []),
        ("decoder every 2", [], [2, 4]),
        ("decoder 4", [], [4]),
    ],
)
def test_names_of_layers(name, encoder, decoder):
    assert changed({name: {"kernel": "rbf"}}) == [
        *(f"encoder {number}" for number in encoder),
        *(f"decoder {number}" for number in decoder),
    ]


def test_a_layer_is_the_cell_with_its_choices_and_follows_the_rules_of_every_cell():
    spec = cell({"odd": {"position": "none"}, "even": {"filter": {"decoder-self": "window"}, "left": 4}})
    odd, even = cell(position="none"), cell(filter={"decoder-self": "window"}, left=4)
    for layer in layers_of(spec):
        own, alike = spec.of_layer(layer), odd if layer.number % 2 else even
        for attention in (Attention.ENCODER_SELF,) if layer.stack == "encoder" else (Attention.DECODER_SELF,):
            for choice in (positions_in, value_in, filter_in):
                assert choice(own, attention) == choice(alike, attention)
        assert own.option("left") == (4 if layer in [("decoder", 2), ("decoder", 4)] else None)
    assert spec.of_layer(LayerName("encoder", 1)).placement == ()  # settled, as position is none


def test_a_layer_without_choices_is_the_cell():
    spec = cell({"last": {"kernel": "rbf"}})
    assert spec.of_layer(LayerName("encoder", 1)).kernel == spec.kernel == "exponential"
    assert {part.kernel for part in spec.parts} == {"exponential", "rbf"}


def test_two_ways_to_write_the_same_layers_are_one_cell():
    assert cell_id(cell({"odd": {"kernel": "rbf"}, "even": {"kernel": "rbf", "value": "without-position"}})) == cell_id(
        cell({"every 1": {"kernel": "rbf"}})
    )
    assert cell_id(cell({"odd": {"kernel": "rbf"}})) != cell_id(cell({"even": {"kernel": "rbf"}}))


def test_a_layer_has_no_choices_of_attentions_that_it_lacks():
    both = cell({"odd": {"filter": {"decoder-self": "window"}, "position": "product"}, "last": {"encoding": "learned"}})
    apart = cell({"decoder odd": {"filter": {"decoder-self": "window"}}, "odd": {"position": "product"}})
    assert cell_id(both) == cell_id(apart)


def test_layers_that_choose_what_the_cell_has_are_the_cell_without_layers():
    assert cell_id(cell({"odd": {"kernel": "exponential", "position": "rotary"}})) == cell_id(cell())


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "kernel": st.sampled_from(["rbf", "linear", "cosine"]),
        "position": st.sampled_from(["none", "product", "lookup", ["rotary", "lookup"]]),
        "symmetry": st.sampled_from(["symmetric", "asymmetric"]),
        "filter": st.sampled_from([{"decoder-self": "window"}, {"decoder-self": "top-k"}]),
        "kv_heads": st.sampled_from([2, None]),
        "clip": st.integers(1, 9),
        "rotary_share": st.sampled_from([0.5, 1.0]),
    },
).filter(lambda choices: choices and not (choices.get("symmetry") == "symmetric" and choices.get("kv_heads")))
NAMES = st.sampled_from([("odd", "even"), ("first", "last"), ("decoder every 2", "decoder 1"), ("3", "every 4")])


@given(NAMES, CHOICES, CHOICES)
def test_a_recorded_cell_is_read_as_it_was(names, first, second):
    spec = cell(dict(zip(names, (first, second), strict=True)))
    again = CellSpec.model_validate(ResolvedSpec.read(spec.text).plain)
    assert again == spec and cell_id(again) == cell_id(spec) and hash(again) == hash(spec)
    assert [again.of_layer(layer) for layer in layers_of(spec)] == [spec.of_layer(layer) for layer in layers_of(spec)]


def test_names_and_code_of_all_layers_are_the_cells():
    spec = cell({"last": {"kernel": "rbf", "position": "lookup"}})
    names = {word for _, word in words_in(spec.model_dump(mode="json", by_alias=True))}
    assert {"rbf", "exponential", "lookup", "rotary"} <= names
    code = dict(code_of(spec).modules)
    assert {"kdx.attention.kernels.rbf", "kdx.attention.positions.lookup", "kdx.attention.positions.rotary"} <= {*code}


def test_reports_name_the_layer_that_differs():
    spec = ResolvedSpec.of(cell({"encoder 2": {"kernel": "rbf"}, "decoder 1": {"filter": {"decoder-self": "window"}}}))
    assert spec.words["layers.encoder 2.kernel"] == "rbf"
    assert spec.words["layers.decoder 1.filter.decoder-self"] == "window"


def test_an_option_that_only_a_layer_uses_may_stand_above(tmp_path: Path):
    layers = "layers: {decoder last: {filter: {decoder-self: window}}}\nleft: 8\n"
    (planned,) = load_grid(written(tmp_path, GRID + layers)).cells
    assert planned.spec.of_layer(LayerName("decoder", 4)).option("left") == 8


GRID = """
task: translation
data: {corpus: synthetic-translation}
model: {encoder_layers: 2, decoder_layers: 4}
position: direct-sum
"""
