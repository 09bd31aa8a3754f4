"""Evaluations: further readings of a trained run, at another length, with another beam, of another text.

They are no part of a cell. An evaluation is identified by the settings in which it differs from the run's own test, so
two grids that ask for the same reading share it, whatever they call it and however many settings they write.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from kdx.errors import KdxError, shortened
from kdx.grid.field_types import Count, Natural, NotNegative, OneOf, Section, ToList
from kdx.grid.identity import hash_of
from kdx.grid.reading import reading_of
from kdx.grid.sections import STORED_NAME
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.metrics import METRICS
from kdx.tasks import TASKS
from kdx.vocabulary import LengthPenalty, Split

MOST_EVALUATIONS = 100


class EvaluationSettings(Section):
    """The settings of an evaluation; None: as in the run's own test."""

    beam: Count | None = None
    """Hypotheses kept at each word of a translation; 1 is greedy."""
    length_penalty: NotNegative | None = None
    """a of the penalty, see `penalty`."""
    penalty: LengthPenalty | None = None
    """What the log-probability of a hypothesis of n tokens is divided by."""
    longest: tuple[NotNegative, Natural] | None = None
    """Largest number of tokens of a translation: a multiple of the source tokens, and a constant."""
    streams: Count | None = None
    """Streams read side by side (prediction only)."""
    length: Count | None = None
    """Tokens of a stream in one batch (prediction only)."""
    memory: Natural | None = None
    """Tokens of the segment before that stay visible (prediction only)."""
    corpus: str | None = Field(None, min_length=1, max_length=64, pattern=STORED_NAME)
    """Another text, read with the vocabulary that the run was trained with."""
    split: Annotated[str, OneOf((Split.VALID, Split.TEST))] | None = None
    """The part of the corpus that is read."""
    metric: str | None = Field(None, min_length=1, max_length=128)
    """A metric of the translations that the run's own test kept, which needs no model."""

    @property
    def plain(self) -> dict[str, Any]:
        """The settings that are not None, as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)


def _one_or_several(value: Any) -> Any:
    """Return a value that stands alone as a list of one."""
    return value if isinstance(value, list) else [value]


def _one_or_several_pairs(value: Any) -> Any:
    """Return a pair that stands alone as a list of one."""
    return (
        value if value == [] or (isinstance(value, list) and any(isinstance(item, list) for item in value)) else [value]
    )


def _choices(name: str, field: FieldInfo) -> Any:
    several = _one_or_several_pairs if name == "longest" else _one_or_several
    value = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return Annotated[list[value], ToList(several), Field(min_length=1)], []  # type: ignore[valid-type]


EvaluationChoices: Any = create_model(
    "EvaluationChoices",
    __base__=EvaluationSettings,
    **{name: _choices(name, field) for name, field in EvaluationSettings.model_fields.items()},
)
"""`EvaluationSettings` as a grid has them: each combination of the values of its lists is one evaluation."""


@dataclass(frozen=True)
class EvaluationRequest:
    """One evaluation that a grid asks for, of all its runs."""

    name: str
    """The author's; several evaluations share it where a setting is a list."""
    settings: EvaluationSettings
    node: Node | None = field(default=None, compare=False, repr=False)
    """The mapping in the file that asks for it; None if it does not come from a file."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Word → hash of the source that was recorded, of a custom metric; empty if it does not come from a database."""

    @property
    def components(self) -> dict[str, str]:
        """Word → hash of the source, of its metric if that is a custom one."""
        word = self.settings.metric
        if self.recorded:
            return dict(self.recorded)
        return {word: METRICS.outside[word].sha256} if word in METRICS.outside else {}

    def __str__(self) -> str:
        """Its name and its settings: `longer` (length 128)."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.plain.items())
        return f"`{shortened(self.name)}`{f' ({settings})' if settings else ''}"

    def is_of(self, task: str) -> bool:
        """Return whether an evaluation of the task has these settings; one of another task may lack them."""
        return set(self.settings.plain) <= set(TASKS.definition(task).evaluation_settings)

    def in_file(self, fault: KdxError) -> KdxError:
        """Return the fault, located in the file; its own place is a setting of this evaluation or none."""
        assert self.node is not None
        place, key = self.node.place, str(fault.place or "").removeprefix("evaluation.")
        if (node := self.node.inner((key,))) is not None:
            values, value = node.plain(), self.settings.plain[key]
            place = node.at((values.index(value),) if isinstance(values, list) and value in values else ())
        problem = f"evaluation `{shortened(self.name)}`: {fault.problem}"
        # In the section of a cell the same settings have its name before them.
        hint = fault.hint and fault.hint.replace("evaluation.", "")
        return KdxError(problem, place=place, allowed=fault.allowed, hint=hint)


@dataclass(frozen=True)
class ResolvedEvaluation:
    """One evaluation of the runs of one cell."""

    request: EvaluationRequest
    spec: CellSpec
    """The cell, its section `evaluation` as this evaluation reads."""
    settings: Mapping[str, Any]
    """Every setting that an evaluation of the task has, as JSON values."""
    changes: Mapping[str, Any]
    """The settings in which it differs from the run's own test; with the cell they determine the evaluation."""

    @cached_property
    def id(self) -> str:
        """128 bits of the SHA-256 of the changes, as 32 hexadecimal digits; a custom metric counts by its source."""
        return hash_of(self.changes, self.request.components)

    @property
    def metric(self) -> str | None:
        """The metric of kept outputs that it is; None if the model reads a text once more."""
        return self.changes.get("metric")

    @property
    def split(self) -> Split:
        return Split(self.settings["split"])

    @property
    def other_corpus(self) -> str | None:
        """The corpus that is read instead of the run's own; None: the run's own is read."""
        return self.changes.get("corpus")

    @property
    def words(self) -> dict[str, str]:
        """Setting → its word, for every setting."""
        return {
            name: "/".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in self.settings.items()
        }


def read_evaluations(
    evaluations: Mapping[str, Any], node: Node | None, faults: list[KdxError]
) -> list[EvaluationRequest]:
    """Return one for each combination of the values that lists give its settings.

    Args:
        evaluations: name → `EvaluationChoices`.
        node: what is under `evaluations` in the file.
    """
    requests: list[EvaluationRequest] = []
    for name, choices in evaluations.items():
        assert node is not None
        values = {key: getattr(choices, key) for key in node.value[name].value}
        if len(requests) + prod(map(len, values.values())) > MOST_EVALUATIONS:
            faults.append(KdxError("too many evaluations", place=node.place, allowed=f"at most {MOST_EVALUATIONS}"))
            break
        for chosen in product(*values.values()):
            settings = EvaluationSettings.model_validate(dict(zip(values, chosen, strict=True)))
            requests.append(EvaluationRequest(name, settings, node.value[name]))
    return requests


def check_evaluations(requests: Sequence[EvaluationRequest], specs: Collection[CellSpec]) -> Iterator[KdxError]:
    """Refuse an evaluation that no cell can have. One that some cells can have is made for these alone."""
    faults: dict[str, KdxError] = {}
    for evaluation in requests:
        reasons: list[KdxError] = []
        for spec in specs:
            try:
                resolve_evaluation(spec, evaluation)
                break
            except KdxError as error:
                reasons.append(evaluation.in_file(error))
        else:
            faults |= {str(reason): reason for reason in reasons[:1]}
    yield from faults.values()


def resolve_evaluation(spec: CellSpec, request: EvaluationRequest) -> ResolvedEvaluation:
    """Return the evaluation of the runs of this cell.

    Raises:
        KdxError: the cell cannot be evaluated in this way; the place is the setting that is at fault, if there is one.
    """
    wanted, known = request.settings.plain, TASKS.definition(spec.task).evaluation_settings
    for key in wanted:
        if key not in known:
            raise KdxError(f"an evaluation of {spec.task} has no `{key}`", place=key, allowed=known)
    section = {key: value for key, value in wanted.items() if key not in ("corpus", "split", "metric")}
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
    now = _settings_of(changed) | {key: wanted[key] for key in ("corpus", "split", "metric") if key in wanted}
    changes = {key: now[key] for key, value in _settings_of(spec).items() if now[key] != value}
    if "metric" in changes:
        _refuse_metric(changes)
    # A setting that equals the test's own is dropped, so that writing it out changes nothing.
    read = {key: getattr(changed.evaluation, key) for key in section if key in changes}
    evaluation = spec.evaluation.model_copy(update=read)
    return ResolvedEvaluation(request, spec.model_copy(update={"evaluation": evaluation}), now, changes)


def _refuse_metric(changes: Mapping[str, Any]) -> None:
    """Refuse an unknown metric, and other settings beside it: it scores what the run's own test has kept."""
    if changes["metric"] not in METRICS:
        allowed = (*METRICS, "FILE.py:Class")
        raise KdxError(f"unknown metric `{shortened(changes['metric'])}`", place="metric", allowed=allowed)
    if other := next((key for key in changes if key != "metric"), None):
        problem = f"a metric scores the translations of the run's own test, which `{other}` would change"
        raise KdxError(problem, place=other, hint="ask for two evaluations")


def _refuse_other_positions(spec: CellSpec, changed: CellSpec) -> None:
    """Refuse a memory longer than any of the cell: positions begin after the longest memory, and would move."""
    longest = max(spec.memory, spec.evaluation.memory or 0)
    if any(part.encoding for part in spec.parts) and (changed.evaluation.memory or 0) > longest:
        raise KdxError(
            f"a memory of {changed.evaluation.memory}, but the cell counts its positions from a memory of {longest}",
            place="memory",
            allowed=f"at most {longest}, or a position scheme that sees distances only",
        )


def _settings_of(spec: CellSpec) -> dict[str, Any]:
    """Return the settings of the cell's own test, for each setting that an evaluation of its task has."""
    read = reading_of(spec)._asdict() if TASKS.definition(spec.task).data.streams else {}
    section = spec.evaluation.model_dump(mode="json") | read | {"corpus": spec.data.corpus, "split": Split.TEST.value}
    section["metric"] = spec.selection[0].removeprefix("valid/")
    return {key: section[key] for key in TASKS.definition(spec.task).evaluation_settings}
