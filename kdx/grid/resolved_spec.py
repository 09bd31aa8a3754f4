"""A cell as a database keeps it: every field of its spec in plain words, those too that this kdx does not know.

A report renders a name that this kdx does not know like any other, so it asks here and not a `CellSpec`, which has
known names alone. Nothing is validated before somebody asks for it: reading ten thousand cells must not take as many
validations.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kdx.components.registry import at_hand
from kdx.grid.cell_selector import choice, factors, is_option, same_word
from kdx.grid.sections import Data
from kdx.grid.spec import CellSpec
from kdx.grid.task_facts import TaskFacts, metrics_of
from kdx.grid.words import chosen_in, known_options
from kdx.vocabulary import Direction

_SECTIONS = ("data", "model", "training", "evaluation")


@dataclass(frozen=True)
class ResolvedSpec:
    """Every field of a cell in plain words."""

    plain: Mapping[str, Any]
    """As its JSON has them."""
    facts: TaskFacts | None = None
    """What its sweep recorded of its task and corpus; None where both are of kdx."""

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
        """The metrics of its task on the test split, and their good ends, see `kdx.grid.task_facts`."""
        return {**metrics_of(self.task, self.corpus), **(self.facts.metrics if self.facts else {})}

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
        """The options of its custom components, as far as their source is not at hand to declare them."""
        if not self.parts:
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
        """The cell itself; None where this kdx does not know all of it."""
        return _valid(self.plain)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """What this kdx does not know of it, such as "kernel `mine`" or "key `model.depth`".

        For a cell of known words that this kdx nevertheless refuses, it is the reason.
        """
        # Validation reports an unknown key only if all known fields are valid, so keys are compared here.
        keys = [key for key in self.plain if key not in CellSpec.model_fields and key not in known_options()]
        try:
            CellSpec.model_validate(self.plain)
        except ValidationError as error:
            errors = [one for one in error.errors(include_url=False) if one["input"] not in list(self.parts)]
            keys_of_parts = _UNKNOWN_KEY if self.missing_parts else ()
            faults = [_fault(one) for one in errors if one["type"] not in keys_of_parts]
            faults += [f"key `{key}`" for key in keys if not self.missing_parts]
            return tuple(dict.fromkeys(faults))
        return ()

    @property
    def parts(self) -> Mapping[str, str]:
        """Word → SHA-256 of the source of each of its parts that came from outside kdx."""
        parts = self.plain.get("parts")
        return {word: one for word, one in parts.items() if isinstance(one, str)} if isinstance(parts, dict) else {}

    @property
    def missing_parts(self) -> Mapping[tuple[str, str], str]:
        """(axis, word) → hash of those whose source is not at hand. Keys that nobody knows are their options."""
        if not self.parts:  # as nearly every cell
            return {}
        known = {part.word: part.sha256 for part in at_hand()}
        chosen = [(family.axis, word) for family, word in chosen_in(self.plain)] + [("corpus", self.corpus)]
        return {
            (axis, word): self.parts[word]
            for axis, word in chosen
            if word in self.parts and known.get(word) != self.parts[word]
        }

    @property
    def without_parts(self) -> CellSpec | None:
        """The cell with common words in the place of parts whose source is not at hand: enough to know how it is read.

        None where this kdx does not know the rest of it either.
        """
        if not (missing := {word for _, word in self.missing_parts}):
            return self.known
        return cell_without(self.plain, missing, self.facts.read_like if self.facts else ())


def cell_without(plain: Mapping[str, Any], words: Collection[str], tasks: Iterable[str]) -> CellSpec | None:
    """A cell with common words in the place of these, without options of words; None where there is no such cell.

    Args:
        tasks: those that may take the place of its task.
    """
    fields = {key: value for key, value in plain.items() if key in CellSpec.model_fields and key != "parts"}
    common = _without(fields, words)
    if "corpus" not in common["data"]:
        data = {key: value for key, value in common["data"].items() if key in Data.model_fields}
        common["data"] = {**data, "corpus": "unknown"}
    if "task" in common:
        return _valid(common)
    common.pop("select", None)  # by a metric that perhaps no other task has
    return next(filter(None, (_valid({**common, "task": task}) for task in tasks)), None)


def _valid(plain: Mapping[str, Any]) -> CellSpec | None:
    try:
        return CellSpec.model_validate(plain)
    except ValidationError:
        return None


def _without(plain: Mapping[str, Any], words: Collection[str]) -> dict[str, Any]:
    """What holds one of these words is left out, and so is the word in a list."""
    found: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, dict):
            found[key] = _without(value, words)
        elif isinstance(value, list):
            found[key] = [one for one in value if not isinstance(one, str) or one not in words]
        elif not isinstance(value, str) or value not in words:
            found[key] = value
    return found


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


_UNKNOWN_KEY = ("extra_forbidden", "unknown_key")


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
