"""A cell as a database keeps it: every field of its spec in plain words, those too that this kdx does not know.

A report renders a name that this kdx does not know like any other, so it asks here and not a `CellSpec`, which has
known names alone. Nothing is validated before somebody asks for it: reading ten thousand cells must not take as many
validations.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kdx.components.registry import components_of, meant_by
from kdx.grid.cell_selector import choice, factors, is_option, same_word
from kdx.grid.spec import CellSpec
from kdx.grid.words import chosen_in, known_options
from kdx.tasks import TASKS
from kdx.tasks.difficulty import slice_names, slices_of
from kdx.vocabulary import Direction

_SECTIONS = ("data", "model", "training", "evaluation")


@dataclass(frozen=True)
class ResolvedSpec:
    """Every field of a cell in plain words."""

    plain: Mapping[str, Any]
    """As its JSON has them."""

    @classmethod
    def of(cls, spec: CellSpec) -> "ResolvedSpec":
        """Of a cell whose words are known."""
        return cls(spec.model_dump(mode="json", by_alias=True))

    @classmethod
    def read(cls, text: str) -> "ResolvedSpec":
        """Return the cell of its JSON (`CellSpec.text`).

        Raises:
            ValueError: it is no JSON, or lacks what every cell has.
        """
        try:
            plain = json.loads(text)
        except RecursionError as error:
            raise ValueError("no cell") from error
        if not _is_cell(plain):
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
        """Its good end."""
        return Direction(self.plain["select"]["direction"])

    @property
    def test_metrics(self) -> Mapping[str, Direction]:
        """The metrics of its task on the test split, and their good ends; none are known of an unknown task.

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
        """What a field such as `training.length`, or a whole section, holds; None where it holds nothing."""
        value: Any = self.plain
        for step in field.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def word(self, factor: str) -> str | None:
        """The word of a factor (`kdx.grid.cell_selector`); None where the cell has no such field."""
        return choice(self.plain, factor)

    @cached_property
    def words(self) -> Mapping[str, str | None]:
        """Factor → its word, for every factor that this kdx knows and every option of the cell's custom components."""
        return {factor: choice(self.plain, factor) for factor in (*factors(), *self.own_options)}

    @property
    def own_options(self) -> tuple[str, ...]:
        """The options of its custom components, as far as no known source declares them."""
        if not self.components:
            return ()
        keys = (*self.plain, *(f"data.{name}" for name in self.plain["data"]))
        return tuple(key for key in keys if key not in factors() and not isinstance(self.value(key), Mapping))

    def lacks(self, factor: str) -> bool:
        """Whether the factor is an option that no word of the cell has, which is no difference to one that has it."""
        return self.value(factor) is None and (factor not in factors() or is_option(factor))

    def matches(self, selector: Mapping[str, str]) -> bool:
        """Whether the cell has every word of a selector."""
        return all(same_word(choice(self.plain, factor), word) for factor, word in selector.items())

    @property
    def known(self) -> CellSpec | None:
        """The cell itself; None where this kdx does not know all of it.

        What depends on its words is asked of it within `kdx.components.registry.meant_by` of its components.
        """
        with meant_by(self.components):
            return _valid(self.plain)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """What this kdx does not know of it, such as "kernel `mine`" or "key `model.depth`".

        For a cell of known words that this kdx nevertheless refuses, it is the reason.
        """
        with meant_by(self.components):
            # Validation reports an unknown key only if all known fields are valid, so keys are compared here.
            keys = [key for key in self.plain if key not in CellSpec.model_fields and key not in known_options()]
            try:
                CellSpec.model_validate(self.plain)
            except ValidationError as error:
                faults = [_fault(one) for one in error.errors(include_url=False)]
                return tuple(dict.fromkeys([*faults, *(f"key `{key}`" for key in keys)]))
        return ()

    @property
    def components(self) -> Mapping[str, str]:
        """Word → SHA-256 of the source of each of its custom components."""
        hashes = self.plain.get("components")
        if not isinstance(hashes, dict):
            return {}
        return {word: sha256 for word, sha256 in hashes.items() if isinstance(sha256, str)}

    @property
    def missing_components(self) -> Mapping[tuple[str, str], str]:
        """(axis, word) → hash of those whose code cannot be run here."""
        if not self.components:  # as nearly every cell
            return {}
        here = {(component.axis, component.word) for component in components_of(self.components)}
        chosen = [(family.axis, word) for family, word in chosen_in(self.plain)] + [("corpus", self.corpus)]
        return {
            (axis, word): self.components[word]
            for axis, word in chosen
            if word in self.components and (axis, word) not in here
        }


def _valid(plain: Mapping[str, Any]) -> CellSpec | None:
    try:
        return CellSpec.model_validate(plain)
    except ValidationError:
        return None


def _is_cell(plain: Any) -> bool:
    """Whether it has what every cell has, whatever its words."""
    if not isinstance(plain, dict):
        return False
    select = plain.get("select")
    return (
        isinstance(plain.get("task"), str)
        and isinstance(select, dict)
        and isinstance(select.get("metric"), str)
        and select.get("direction") in ("max", "min")
        and all(isinstance(plain.get(section), dict) for section in _SECTIONS)
    )


def _fault(detail: ErrorDetails) -> str:
    # The message names the word of a list, not its index.
    name = ".".join(step for step in detail["loc"] if isinstance(step, str))
    match detail["type"]:
        case "extra_forbidden":
            return f"key `{name}`"
        case "unknown_key":
            return f"key `{detail['ctx']['key']}`"
        case "unfit":
            field = ".".join(filter(None, (name, detail["ctx"]["field"])))
            return f"{field}: {detail['ctx']['problem']}"
        case "missing":
            return f"no {name}"
        case _:
            return f"{name} `{detail['input']}`"
