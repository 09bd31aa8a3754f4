"""A cell as a database keeps it: every field of its spec in plain values, those too that this kdx does not know.

A report renders a name that this kdx does not know like any other, so it reads this and not a `CellSpec`, which has
known names alone. Nothing is validated until `known` or `unknown` is read, so ten thousand cells are read quickly.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kdx.components.registry import components_of, meant_by
from kdx.grid.cell_selector import factors, in_layer, leaves, same_word, word
from kdx.grid.spec import CellSpec, read_plain
from kdx.grid.words import chosen_in, known_options
from kdx.tasks import TASKS
from kdx.tasks.definition import Measure, Per, Scale
from kdx.tasks.difficulty import slice_names, slices_of
from kdx.vocabulary import Direction

_NO_FACTORS = ("select.", "components.")
"""Begin the fields that decide no choice of a cell."""


@dataclass(frozen=True)
class ResolvedSpec:
    """Every field of a cell in plain values."""

    plain: dict[str, Any]
    """The fields as JSON has them."""

    @classmethod
    def of(cls, spec: CellSpec) -> "ResolvedSpec":
        """Return a cell whose names are known."""
        return cls(spec.model_dump(mode="json", by_alias=True))

    @classmethod
    def read(cls, text: str) -> "ResolvedSpec":
        """Return the cell of its JSON (`CellSpec.text`).

        Raises:
            ValueError: it is no JSON object.
        """
        plain = read_plain(text)
        if not isinstance(plain, dict):
            raise ValueError("no cell")
        return cls(plain)

    @property
    def task(self) -> str:
        return str(self.plain["task"])

    @property
    def corpus(self) -> str:
        return str(self.plain["data"].get("corpus"))

    @property
    def selection_metric(self) -> str:
        """The validation metric by which weights and seeds are selected, such as `valid/bleu`."""
        return str(self.plain["select"]["metric"])

    @property
    def selection_direction(self) -> Direction:
        """Whether a larger or a smaller selection metric is better."""
        return Direction(self.plain["select"]["direction"])

    @property
    def selection_measure(self) -> Measure:
        """What the selection metric measures; of an unknown one, nothing that lets it compare with another cell's."""
        known = self.test_metrics.get(self.selection_metric.removeprefix("valid/"))
        return known or Measure(self.selection_direction, Scale.OTHER, Per.TOKEN)

    @property
    def test_metrics(self) -> Mapping[str, Measure]:
        """The metrics of the task on the test split, each with what it measures; none of an unknown task.

        Some are also measured by slice, such as `accuracy/pairs=5-8`: accuracy by the slices of a generated corpus,
        others by those of the task.
        """
        with meant_by(self.components):
            if self.task not in TASKS:
                return {}
            task = TASKS.definition(self.task)
            metrics = task.test_metrics
            sliced = [(metric, slicing.respect) for slicing in task.slicings for metric in slicing.metrics]
            sliced += [("accuracy", respect) for respect in slices_of(self.corpus) if "accuracy" in metrics]
        by_slice = {f"{metric}/{name}": metrics[metric] for metric, respect in sliced for name in slice_names(respect)}
        return {**metrics, **by_slice}

    def value(self, field: str) -> Any:
        """Return what a field such as `training.length`, or a whole section, holds; None if it holds nothing."""
        value: Any = self.plain
        for step in field.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def word(self, factor: str) -> str | None:
        """Return the value of a factor as a word: `none` for an option that the cell lacks; None if it is no factor.

        A layer that has no choice of its own has that of the cell.
        """
        value = self.value(factor)
        layer, own = in_layer(factor)
        if value is None and layer and factor not in self._fields:
            return self.word(own)
        if isinstance(value, dict) or (value is None and factor not in factors()):
            return None
        return word(factor, value)

    @cached_property
    def _fields(self) -> Mapping[str, Any]:
        return {field: value for field, value in leaves(self.plain) if not field.startswith(_NO_FACTORS)}

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Factor → its word, for every factor that the cell has: known ones in the order of `factors`, then others."""
        fields = self._fields
        ordered = (*(factor for factor in factors() if factor in fields), *fields)
        return {factor: word(factor, fields[factor]) for factor in ordered}

    def matches(self, selector: Mapping[str, str]) -> bool:
        """Return whether the cell has every word of a selector."""
        return all(same_word(self.word(factor), wanted) for factor, wanted in selector.items())

    @property
    def known(self) -> CellSpec | None:
        """The cell, validated; None if this kdx does not know all of it.

        What depends on its names is read within `kdx.components.registry.meant_by` of its components.
        """
        with meant_by(self.components), suppress(ValidationError):
            return CellSpec.model_validate(self.plain)
        return None

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """What this kdx does not know of the cell, such as "kernel `mine`" or "key `model.depth`".

        If it knows all names and nevertheless refuses the cell, this is the reason.
        """
        with meant_by(self.components):
            # Validation reports an unknown key only if all known fields are valid, so keys are compared here.
            keys = [key for key in self.plain if key not in CellSpec.model_fields and key not in known_options()]
            try:
                CellSpec.model_validate(self.plain)
            except ValidationError as error:
                faults = [_fault(detail) for detail in error.errors(include_url=False)]
                return tuple(dict.fromkeys([*faults, *(f"key `{key}`" for key in keys)]))
        return ()

    @property
    def components(self) -> Mapping[str, str]:
        """Name → SHA-256 of its source, of each custom component."""
        hashes: Mapping[str, str] = self.plain.get("components", {})
        return hashes

    @property
    def missing_components(self) -> Mapping[tuple[str, str], str]:
        """(axis, name) → hash of the source, of each custom component whose code cannot be run here."""
        if not self.components:  # as nearly every cell
            return {}
        here = {(component.axis, component.word) for component in components_of(self.components)}
        chosen = [(family.axis, name) for family, name in chosen_in(self.plain)] + [("corpus", self.corpus)]
        return {
            (axis, name): self.components[name]
            for axis, name in chosen
            if name in self.components and (axis, name) not in here
        }


def _fault(detail: ErrorDetails) -> str:
    # The message has the name in a list, not its index.
    name = ".".join(step for step in detail["loc"] if isinstance(step, str))
    match detail["type"]:
        case "extra_forbidden":
            return f"key `{name}`"
        case "unknown_key":
            return f"key `{detail['ctx']['key']}`"
        case "unfit":
            field = ".".join(filter(None, (name, detail["ctx"]["field"])))
            return f"{field}: {detail['ctx']['problem']}"
        case _:
            return f"{name} `{detail['input']}`"
