"""Reads what a paper published and claims: one YAML file for each paper; kdx ships those of the study.

    title: Transformer Dissection
    source: EMNLP 2019, arXiv 1908.11775
    protocol: five seeds, test score of the one with the best validation score
    scale: {translation: "IWSLT'14 De-En, d 512, 6+6 layers"}
    corpora: {translation: iwslt14}
    tables:
      - table: Table 1
        where: {kernel: exponential}
        cells:
          - {where: {task: translation, position: product}, metric: bleu, value: 34.71}
    claims:
      - id: product
        statement: A product of kernels does better than a sum.
        source: Sec. 3.5, A1
        holds:
          all:
            - {a: {position: product}, b: {position: direct-sum}, where: {task: translation}, expect: better}
        grids: [tsai2019/table1-mini]

Cells are named by the words of their factors, as in a grid (`kdx.grid.cell_selector`), so they meet those of any grid.
Tasks, metrics and words that only some sweep has, of custom components, are known where that sweep is at hand.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, model_validator

from kdx.errors import Faults, KdxError, by_place, did_you_mean
from kdx.grid import synonyms
from kdx.grid.cell_selector import CellSelector, factors, unknown
from kdx.grid.messages import located
from kdx.grid.sections import Margin, Section, refuse
from kdx.grid.source import Node, read
from kdx.store.records import SweepRecord
from kdx.tasks import TASKS

NOT_CONVERGE = "not converge"
_QUANTIFIERS = frozenset({"all", "any"})
_SHIPPED = Path(__file__).parent / "published"


@dataclass(frozen=True)
class _Known:
    """What a file may name beside what kdx itself has: what cells of the sweeps at hand have."""

    metrics: frozenset[str] = frozenset()
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Factor → words."""

    @classmethod
    def of(cls, sweeps: Iterable[SweepRecord]) -> "_Known":
        specs = [cell.spec for sweep in sweeps for cell in sweep.cells if cell.spec.components]
        measured = {name for spec in specs for name in spec.test_metrics if "/" not in name}
        words: dict[str, set[str]] = {}
        for spec in specs:
            for factor, word in spec.words.items():
                words.setdefault(factor, set()).add(word)
        return cls(frozenset(measured), {factor: frozenset(those) for factor, those in words.items()})


def _own(info: ValidationInfo) -> _Known:
    return info.context or _Known()


def _metric(metric: str, info: ValidationInfo) -> str:
    known = dict.fromkeys(
        [*(name for task in TASKS.definitions() for name in task.test_metrics), *sorted(_own(info).metrics)]
    )
    if metric.removeprefix("valid/") not in known:
        raise refuse("", f"unknown metric `{metric}`", allowed=", ".join(known))
    return metric


def _task(task: str, info: ValidationInfo) -> str:
    known = list(dict.fromkeys([*TASKS, *sorted(_own(info).words.get("task", ()))]))
    if task not in known:
        raise refuse("", f"unknown task `{task}`", allowed=", ".join(known), hint=synonyms.did_you_mean(task, known))
    return task


MetricName = Annotated[str, AfterValidator(_metric)]
TaskName = Annotated[str, AfterValidator(_task)]


class PublishedCell(Section):
    """One published number."""

    where: CellSelector = Field(default_factory=dict)
    metric: MetricName
    """A metric of the test split, such as `bleu`, or of the validation split, such as `valid/bleu`."""
    value: Literal["not converge"] | float
    note: str = ""
    """A remark on the value, such as that it is unverified."""


class PublishedTable(Section):
    """The cells of one table."""

    table: str = Field(min_length=1)
    where: CellSelector = Field(default_factory=dict)
    """Words that all of its cells have."""
    cells: tuple[PublishedCell, ...] = ()


class ErrorModel(StrEnum):
    """What the error of a claim's contrasts is taken from; a claim declares it before there are runs."""

    OWN_SPREADS = "own spreads"
    """Each cell's own spread over seeds, whatever that of the others."""
    PAIRED = "paired by seed"
    """The differences at each seed that all cells have. Exact whatever the spreads; more powerful where a seed moves
    all cells alike, less where it does not."""
    EXCHANGEABLE = "exchangeable spreads"
    """The spreads of all cells of the setting, which are supposed to be alike."""


class Expect(StrEnum):
    """What a claim expects of a compared with b."""

    BETTER = "better"
    NO_WORSE = "no-worse"
    """Worse by less than the margin, if at all."""
    EQUIVALENT = "equivalent"
    """Within the margin either way."""


class Contrast(Section):
    """One comparison that a claim rests on."""

    where: CellSelector = Field(default_factory=dict)
    """Words that the cells of both sides have."""
    a: CellSelector = Field(min_length=1)
    b: CellSelector = Field(min_length=1)
    expect: Expect
    metric: MetricName | None = None
    """None for the metric that the cells were selected by."""
    margin: Margin | None = None
    """The difference below which the two sides count as equal: in units of the metric, or as a share of b such as 1%;
    `better` may do without."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.margin is None and self.expect is not Expect.BETTER:
            raise refuse(
                "margin", f"`{self.expect}` needs a margin", hint="write margin: 0.3, in units of the metric, or 1%"
            )
        twice = self.where.keys() & (self.a.keys() | self.b.keys())
        if twice:
            name = sorted(twice)[0]
            raise refuse("where", f"`{name}` stands under `where` and in a side", hint="keep one of them")
        return self


@dataclass(frozen=True)
class Rule:
    """When a claim holds: if all of its parts hold, or if any does."""

    any: bool
    of: "tuple[Rule | Contrast, ...]"


@dataclass(frozen=True)
class Claim:
    """A statement, and the comparisons that decide it."""

    id: str
    statement: str
    source: str
    holds: Rule
    error_model: ErrorModel = ErrorModel.OWN_SPREADS
    grids: tuple[str, ...] = ()
    """The grids inside kdx that would test it."""


@dataclass(frozen=True)
class Paper:
    """The content of one file."""

    name: str
    """The name of the file without its suffix."""
    title: str
    source: str
    protocol: str
    scale: Mapping[str, str]
    """Task → corpus, size and training, in words."""
    tables: tuple[PublishedTable, ...]
    claims: tuple[Claim, ...]
    corpora: Mapping[str, str] = field(default_factory=dict)
    """Task → the corpus of its numbers, as grids name it; cells of another corpus are compared by their order only."""


class _Head(Section):
    title: str = ""
    source: str = ""
    protocol: str = ""
    scale: dict[TaskName, str] = Field(default_factory=dict)
    corpora: dict[TaskName, str] = Field(default_factory=dict)
    tables: tuple[PublishedTable, ...] = ()
    claims: tuple[Any, ...] = ()


class _ClaimHead(Section):
    id: str = Field(min_length=1, max_length=64)
    statement: str = Field(min_length=1)
    source: str = ""
    holds: dict[str, Any]
    pairs: Literal["seed"] | None = None
    spread: Literal["exchangeable"] | None = None
    grids: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pairs and self.spread:
            hint = "keep one: differences by seed have a spread of their own"
            raise refuse("spread", "`spread: exchangeable` beside `pairs: seed`", hint=hint)
        return self

    @property
    def error_model(self) -> ErrorModel:
        if self.pairs:
            return ErrorModel.PAIRED
        return ErrorModel.EXCHANGEABLE if self.spread else ErrorModel.OWN_SPREADS


def shipped() -> tuple[str, ...]:
    """Names of the papers inside kdx."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def load_paper(paper: str, sweeps: Iterable[SweepRecord] = ()) -> Paper:
    """Read a paper's file.

    Args:
        paper: the name of a shipped one, such as `tsai2019`, or a path.
        sweeps: whose cells it may name by custom components, with the metrics of their tasks.

    Raises:
        Faults: there is no such file, or everything that is wrong with it.
    """
    path = _SHIPPED / f"{paper}.yaml" if paper in shipped() else Path(paper)
    # A name that no file can have, or a folder that cannot be read, counts as no file.
    with contextlib.suppress(OSError):
        if path.is_file():
            return _read(path, _Known.of(sweeps))
    names = shipped()
    allowed, hint = f"a YAML file, or one of {', '.join(names)}", did_you_mean(paper, names)
    raise Faults([KdxError(f"no paper `{paper}`", allowed=allowed, hint=hint)])


def _read(path: Path, known: _Known) -> Paper:
    faults: list[KdxError] = []
    root = read(path, faults, what="paper")
    try:
        head = _Head.model_validate(root.plain(), context=known)
    except ValidationError as error:
        raise by_place([*faults, *located(error, root, _Head)]) from error
    for table_index, table in enumerate(head.tables):
        _check(table.where, root, ("tables", table_index, "where"), known, faults)
        for index, cell in enumerate(table.cells):
            _check(cell.where, root, ("tables", table_index, "cells", index, "where"), known, faults)
    nodes = root.value["claims"].value if head.claims else []
    claims: dict[str, Claim] = {}
    for node in nodes:
        for claim in _claim(node, known, faults):
            if claim.id in claims:
                faults.append(KdxError(f"two claims `{claim.id}`", place=node.at(("id",))))
            claims[claim.id] = claim
    if faults:
        raise by_place(faults)
    return Paper(
        name=path.stem,
        title=head.title,
        source=head.source,
        protocol=head.protocol,
        scale=head.scale,
        tables=head.tables,
        claims=tuple(claims.values()),
        corpora=head.corpora,
    )


def _claim(node: Node, known: _Known, faults: list[KdxError]) -> Iterator[Claim]:
    try:
        head = _ClaimHead.model_validate(node.plain())
    except ValidationError as error:
        faults.extend(located(error, node, _ClaimHead))
        return
    rule = _rule(node.value["holds"], known, faults)
    if rule:
        yield Claim(head.id, head.statement, head.source, rule, head.error_model, head.grids)


def _rule(node: Node, known: _Known, faults: list[KdxError]) -> Rule | None:
    """`{all: […]}` or `{any: […]}`, of contrasts and of such rules."""
    keys = list(node.value) if isinstance(node.value, dict) else []
    if len(keys) != 1 or keys[0] not in _QUANTIFIERS:
        faults.append(KdxError(f"`{node}` as a rule", place=node.place, allowed="all: […], or any: […]"))
        return None
    inner = node.value[keys[0]]
    if not isinstance(inner.value, list) or not inner.value:
        faults.append(KdxError(f"`{inner}` under `{keys[0]}`", place=inner.place, allowed="a list of contrasts"))
        return None
    parts: list[Rule | Contrast | None] = []
    for one in inner.value:
        nested = isinstance(one.value, dict) and not _QUANTIFIERS.isdisjoint(one.value)
        parts.append(_rule(one, known, faults) if nested else _contrast(one, known, faults))
    return Rule(keys[0] == "any", tuple(part for part in parts if part))


def _contrast(node: Node, known: _Known, faults: list[KdxError]) -> Contrast | None:
    try:
        contrast = Contrast.model_validate(node.plain(), context=known)
    except ValidationError as error:
        faults.extend(located(error, node, Contrast))
        return None
    before = len(faults)
    for side in ("where", "a", "b"):
        _check(getattr(contrast, side), node, (side,), known, faults)
    shared = contrast.a.keys() & contrast.b.keys()
    if len(faults) == before and all(contrast.a[factor] == contrast.b[factor] for factor in shared):
        hint = "give both sides a word of the same factor, each another one"
        faults.append(KdxError("a cell may be on both sides", place=node.at(("b",)), hint=hint))
    return contrast


def _check(
    selector: Mapping[str, str], node: Node, path: tuple[str | int, ...], known: _Known, faults: list[KdxError]
) -> None:
    for factor, fault in unknown(selector, known.words):
        place = (node.at if factor in factors() else node.key)((*path, factor))
        faults.append(KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint))
