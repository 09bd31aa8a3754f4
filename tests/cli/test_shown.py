"""What `kdx show` shows of runs and cells alike."""

from kdx.cli.shown import layer_lines
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec


def lines(layers: dict) -> list[str]:
    cell = {
        "task": "prediction",
        "data": {"corpus": "synthetic-language"},
        "position": "rotary",
        "model": {"decoder_layers": 3},
        "layers": layers,
    }
    shown = layer_lines(ResolvedSpec.of(CellSpec.model_validate(cell)))
    return [line.rstrip() for line in shown]


def test_layers_that_differ_have_a_row_each_with_the_choices_in_which_they_differ():
    window = {"filter": {"decoder-self": "window"}, "left": 8}
    assert lines({"odd": window, "2": {"position": "none"}}) == [
        "",
        "  layer      filter.decoder-self  position  placement     options",
        "  decoder 1  window               rotary    decoder-self  left 8",
        "  decoder 2  causal               none      none",
        "  decoder 3  window               rotary    decoder-self  left 8",
    ]


def test_layers_that_are_alike_have_none():
    assert lines({}) == []
