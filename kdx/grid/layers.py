"""A choice for each layer: `layers: {odd: {position: none}, last: {value: with-position}}`.

A layer that differs is a cell by itself: the choices stand over what the grid says of all layers, and the rules of
every cell settle and refuse them. A resolved cell names each such layer with all in which it differs, so two ways to
write the same layers are one cell, and the names of layers follow from its depth.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from kdx.attention.families import options_of_words
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields, FrozenDict
from kdx.grid.placement import positions_in, value_in
from kdx.grid.words import overlaid
from kdx.vocabulary import Attention, Inject

CHOICES = (
    "kernel",
    "symmetry",
    "position",
    "encoding",
    "inject",
    "placement",
    "value",
    "filter",
    "mixer",
    "normaliser",
    "qk_norm",
    "kv_heads",
    "projection",
    "value_projection",
    "smoother",
    "maps",
    "output_gate",
)
"""The fields that may differ by layer, beside the options of their words."""
ALLOWED = "first, last, odd, even, every 3, a number; of one stack: encoder last"
_NAME = re.compile(r"(?:(encoder|decoder) )?(?:(first|last|odd|even)|every ([1-9]\d{0,3})|([1-9]\d{0,3}))")


_OWN = {
    "encoder": (Attention.ENCODER_SELF,),
    "decoder": (Attention.ENCODER_DECODER, Attention.DECODER_SELF),
}
"""Stack → the attentions that its layers may have."""


class LayerName(NamedTuple):
    """Names a layer of a model, as a resolved cell does: `decoder 2`."""

    stack: str
    """`encoder` or `decoder`."""
    number: int
    """Counted from 1, at the input."""

    @classmethod
    def of(cls, attention: Attention, number: int) -> "LayerName":
        """Return a layer by its self-attention."""
        return cls("encoder" if attention is Attention.ENCODER_SELF else "decoder", number)

    def __str__(self) -> str:
        return f"{self.stack} {self.number}"


def is_choice(path: Sequence[str]) -> bool:
    """Return whether a path such as `layers`, `last`, `kernel` may lead to a choice of some layers."""
    return len(path) > 2 and path[0] == "layers" and (path[2] in CHOICES or path[2] in options_of_words())


def layers_of(cell: CellFields) -> list[LayerName]:
    """Return all layers of a cell's model, which rules have settled."""
    return layers_of_model(cell.model.encoder_layers, cell.model.decoder_layers)


def layers_of_model(encoder_layers: int, decoder_layers: int) -> list[LayerName]:
    """Return all layers of a model of this depth."""
    depths = {"encoder": encoder_layers, "decoder": decoder_layers}
    return [LayerName(stack, number) for stack, depth in depths.items() for number in range(1, depth + 1)]


def resolve_layers(cell: CellFields, given: Mapping[str, Any], make: Callable[[Any], CellFields]) -> None:
    """Settle `layers`: `decoder 2` → all in which this layer differs from the cell, for each layer that differs.

    Args:
        cell: a new cell whose other fields are settled, with its layers as they were given.
        given: the plain values that it was made of.
        make: makes a cell of plain values.

    Raises:
        PydanticCustomError: no layer has such a name, a layer has a choice twice, or it cannot have it.
        ValidationError: a layer's choices are none that a cell can have.
    """
    whole = cell.model_dump(mode="json", by_alias=True)
    shared = {key: value for key, value in given.items() if key != "layers"}
    cells: dict[str, CellFields] = {}
    resolved = {}
    for layer, choices in _chosen(cell).items():
        changes: dict[str, Any] = {}
        for path, (_, value) in choices.items():
            if path[0] != "filter" or path[-1] in _OWN[layer.stack]:
                changes = overlaid(changes, _nested(path, value))
        if (key := json.dumps([layer.stack, changes], sort_keys=True)) not in cells:
            try:
                cells[key] = _of_layer(cell, layer, overlaid(shared, changes), make)
            except (ValidationError, PydanticCustomError) as error:
                raise _in_layer(error, layer, choices) from None
        if differences := _differences(whole, cells[key], layer):
            resolved[str(layer)] = differences
    components = [each.components for each in (cell, *cells.values())]
    merged = {word: sha256 for own in components for word, sha256 in own.items()}
    cell.settle(layers=FrozenDict(resolved), components=FrozenDict(sorted(merged.items())))


def _of_layer(
    cell: CellFields, layer: LayerName, plain: dict[str, Any], make: Callable[[Any], CellFields]
) -> CellFields:
    """Return the cell that a layer is built from, whose positions are placed in its own attentions alone."""
    result = make(plain)
    if Inject.INPUT in (cell.inject, result.inject):
        if cell.inject is not result.inject:
            problem = "direct-sum at the input reaches every layer"
            raise refuse("position", problem, hint="write inject: per-layer, for all layers or for those that have it")
        return result
    return make({**plain, "placement": _own_placement(result.placement, layer)})


def _own_placement(placement: Iterable[str] | None, layer: LayerName) -> list[str]:
    return [str(attention) for attention in placement or () if attention in _OWN[layer.stack]]


def _chosen(cell: CellFields) -> dict[LayerName, dict[tuple[str, ...], tuple[str, Any]]]:
    """Return layer → path of a choice → the name of the layers that it was written for, and the choice."""
    chosen: dict[LayerName, dict[tuple[str, ...], tuple[str, Any]]] = {}
    for name, choices in cell.layers.items():
        meant = _meant(name, layers_of(cell))
        written = list(_leaves(choices))
        if not written:
            raise refuse(f"layers.{name}", f"no choice for layer `{name}`", allowed=", ".join(CHOICES))
        for path, value in written:
            if path[0] not in CHOICES and path[0] not in options_of_words():
                context = {"key": path[0], "allowed": CHOICES}
                raise _at(PydanticCustomError("unknown_key", "unknown key", context), ("layers", name), choices)
            if path[0] == "filter" and not any(path[-1] in _OWN[layer.stack] for layer in meant):
                allowed = ", ".join(_OWN[meant[0].stack])
                raise refuse(f"layers.{name}.filter.{path[-1]}", f"no layer of `{name}` has it", allowed=allowed)
            for layer in meant:
                before = chosen.setdefault(layer, {}).setdefault(path, (name, value))
                if before[0] != name:
                    both = f"`{before[0]}` and `{name}` both choose {'.'.join(path)}"
                    problem = f"{both}, in layer {layer.number} of the {layer.stack}"
                    raise refuse(f"layers.{name}.{'.'.join(path)}", problem, hint="write it once for each layer")
    return {layer: chosen[layer] for layer in layers_of(cell) if layer in chosen}


def _meant(name: str, layers: list[LayerName]) -> list[LayerName]:
    """Return the layers of a name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise refuse(f"layers.{name}", f"`{name}` names no layers", allowed=ALLOWED)
    stack, word, every, number = match.groups()
    own = [layer for layer in layers if stack in (None, layer.stack)]
    depth = {layer.stack: layer.number for layer in own}
    meant = []
    for layer in own:
        match word:
            case "first":
                is_meant = layer.number == 1
            case "last":
                is_meant = layer.number == depth[layer.stack]
            case "odd" | "even":
                is_meant = (layer.number % 2 == 1) == (word == "odd")
            case _:
                is_meant = layer.number % int(every) == 0 if every else layer.number == int(number)
        if is_meant:
            meant.append(layer)
    if not meant:
        has = " and ".join(f"the {stack} has {count}" for stack, count in depth.items()) or f"there is no {stack}"
        raise refuse(f"layers.{name}", f"no layer is `{name}`: {has}", allowed=ALLOWED)
    return meant


def _in_layer(
    error: ValidationError | PydanticCustomError, layer: LayerName, choices: Mapping[tuple[str, ...], tuple[str, Any]]
) -> ValidationError:
    """Return the error with its place in `layers`: where its field was written, or else the last name of the layer."""
    if isinstance(error, PydanticCustomError):
        error = _at(error, (), None)
    names = {path[0]: name for path, (name, _) in choices.items()}
    details = []
    for detail in error.errors(include_url=False):
        context = dict(detail.get("ctx", {}))
        field = str(detail["loc"][0] if detail["loc"] else context.get("field", "")).partition(".")[0]
        name = names.get(field) or [*names.values()][-1]
        if detail["type"] == "unfit":
            context["problem"] += f", in layer {layer.number} of the {layer.stack}"
        kind = PydanticCustomError(detail["type"], detail["msg"], context)
        details.append(InitErrorDetails(type=kind, loc=("layers", name, *detail["loc"]), input=detail["input"]))
    return ValidationError.from_exception_data("layers", details)


def _at(error: PydanticCustomError, loc: tuple[str, ...], given: Any) -> ValidationError:
    return ValidationError.from_exception_data("layers", [InitErrorDetails(type=error, loc=loc, input=given)])


def _differences(whole: Mapping[str, Any], of_layer: CellFields, layer: LayerName) -> dict[str, Any]:
    """Return the choices of a layer that are not the cell's, without those that it computes nothing with."""
    plain = of_layer.model_dump(mode="json", by_alias=True)
    if plain["placement"] == _own_placement(whole["placement"], layer):
        plain["placement"] = whole["placement"]
    if not any(_uses_vector(of_layer, attention) for attention in _OWN[layer.stack]):
        plain["encoding"] = whole["encoding"]
    differences: dict[str, Any] = {}
    for path, value in _leaves({key: plain[key] for key in plain if key in CHOICES or key in options_of_words()}):
        same: Any = whole
        for step in path:
            same = same.get(step, ...) if isinstance(same, Mapping) else ...
        if same != value:
            differences = overlaid(differences, _nested(path, value))
    return differences


def _uses_vector(cell: CellFields, attention: Attention) -> bool:
    """Return whether an attention reads the vectors of absolute positions."""
    schemes = map(POSITIONS.definition, positions_in(cell, attention))
    return VALUES.definition(value_in(cell, attention)).uses_vector or any(scheme.uses_vector for scheme in schemes)


def _leaves(plain: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in plain.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = {step: value}
    return dict(value)
