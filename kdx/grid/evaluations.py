"""Evaluations: further readings of a trained run, at another length, with another beam, of another text.

They are no part of a cell. What an evaluation is follows from what it does otherwise than the run's own test, so the
same reading that two grids ask for is one, whatever its name and however much of it is written out.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, ValidationError

from kdx.errors import KdxError
from kdx.grid.reading import reading_of
from kdx.grid.sections import Count, Natural, OneOf, Section
from kdx.grid.source import Node, shortened
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.vocabulary import LengthPenalty, Split


class EvaluationSettings(Section):
    """What an evaluation sets; None: as the run's own test has it."""

    beam: Count | None = None
    length_penalty: Annotated[float, Field(ge=0, strict=True)] | None = None
    penalty: LengthPenalty | None = None
    longest: tuple[Annotated[float, Field(ge=0, strict=True)], Natural] | None = None
    streams: Count | None = None
    length: Count | None = None
    memory: Natural | None = None
    corpus: str | None = Field(None, min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Another text, read with the vocabulary that the run was trained with."""
    split: Annotated[str, OneOf((Split.VALID, Split.TEST))] | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """Those that are set, as JSON has them."""
        return self.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True)
class AskedEvaluation:
    """One evaluation that a grid asks for, of all its runs."""

    name: str
    """The author's; several evaluations share it where a setting is a list."""
    settings: EvaluationSettings
    node: Node | None = field(default=None, compare=False, repr=False)
    """Where the file has it; None where it does not come from a file."""

    def in_file(self, fault: KdxError) -> KdxError:
        """A fault of the evaluation, whose place is a setting of it or none, told where the file has it."""
        key = str(fault.place or "").removeprefix("evaluation.")
        place = None if self.node is None else self.node.at((key,) if key in self.settings.asked else ())
        problem = f"evaluation `{shortened(self.name)}`: {fault.problem}"
        # In the section of a cell the same settings have its name before them.
        hint = fault.hint and fault.hint.replace("evaluation.", "")
        return KdxError(problem, place=place, allowed=fault.allowed, hint=hint)


@dataclass(frozen=True)
class ResolvedEvaluation:
    """One evaluation of the runs of one cell."""

    asked: AskedEvaluation
    spec: CellSpec
    """The cell, its section `evaluation` as this evaluation reads."""
    settings: Mapping[str, Any]
    """Every setting that an evaluation of the task has, as JSON has them."""
    changes: Mapping[str, Any]
    """Those that the run's own test has otherwise; with the cell, all that is needed to make the evaluation."""

    @cached_property
    def id(self) -> str:
        """128 bits of the SHA-256 of what is other than in the run's own test, as 32 hexadecimal digits."""
        told = json.dumps(self.changes, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def split(self) -> Split:
        return Split(self.settings["split"])

    @property
    def other_corpus(self) -> str | None:
        """The text that is read in the place of the run's own; None: its own is."""
        return self.changes.get("corpus")

    @property
    def words(self) -> dict[str, str]:
        """Setting → its word, of all of them."""
        return {
            name: "/".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in self.settings.items()
        }


def resolve_evaluation(spec: CellSpec, asked: AskedEvaluation) -> ResolvedEvaluation:
    """What an evaluation is of a cell.

    Raises:
        KdxError: the cell cannot be evaluated so; the place is the setting, where one is to blame.
    """
    wanted, known = asked.settings.asked, TASKS[spec.task].evaluation_settings
    for key in wanted:
        if key not in known:
            raise KdxError(f"an evaluation of {spec.task} has no `{key}`", place=key, allowed=known)
    section = {key: value for key, value in wanted.items() if key not in ("corpus", "split")}
    plain = spec.model_dump(mode="json", by_alias=True)
    try:
        changed = CellSpec.model_validate(plain | {"evaluation": plain["evaluation"] | section})
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        context = detail.get("ctx", {})
        key = ".".join([*map(str, detail["loc"]), *filter(None, [context.get("field")])]).removeprefix("evaluation.")
        raise KdxError(
            context.get("problem", detail["msg"]),
            place=key if key in wanted else None,
            allowed=context.get("allowed"),
            hint=context.get("hint"),
        ) from error
    _refuse_other_positions(spec, changed)
    now = _settings_of(changed) | {key: wanted[key] for key in ("corpus", "split") if key in wanted}
    changes = {key: now[key] for key, value in _settings_of(spec).items() if now[key] != value}
    # Of what is asked for and is so already, nothing is left, so that it is treated like what nobody asked for.
    read = {key: getattr(changed.evaluation, key) for key in section if key in changes}
    evaluation = spec.evaluation.model_copy(update=read)
    return ResolvedEvaluation(asked, spec.model_copy(update={"evaluation": evaluation}), now, changes)


def _refuse_other_positions(spec: CellSpec, changed: CellSpec) -> None:
    """Positions begin after the longest memory that a cell has, which a longer one would move them away from."""
    longest = max(spec.memory, spec.evaluation.memory or 0)
    if spec.encoding and (changed.evaluation.memory or 0) > longest:
        raise KdxError(
            f"a memory of {changed.evaluation.memory}, but the cell counts its positions from a memory of {longest}",
            place="memory",
            allowed=f"at most {longest}, or a position scheme that sees distances only",
        )


def _settings_of(spec: CellSpec) -> dict[str, Any]:
    """How the test of a cell reads, by the settings that an evaluation of its task has."""
    read = reading_of(spec)._asdict() if TASKS[spec.task].data.streams else {}
    section = spec.evaluation.model_dump(mode="json") | read | {"corpus": spec.data.corpus, "split": Split.TEST.value}
    return {key: section[key] for key in TASKS[spec.task].evaluation_settings}
