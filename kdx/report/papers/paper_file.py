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
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo, model_validator

from kdx.errors import Faults, KdxError, by_place, did_you_mean
from kdx.grid import synonyms
from kdx.grid.cell_selector import CellSelector, factors, unknown
from kdx.grid.field_types import Margin, Section, not_allowed, refuse
from kdx.grid.messages import checked
from kdx.grid.source import read
from kdx.store.records import SweepRecord
from kdx.tasks import TASKS

NOT_CONVERGE = "not converge"
_QUANTIFIERS = frozenset({"all", "any"})
_SHIPPED = Path(__file__).parent / "published"


class _Recorded(NamedTuple):
    """What the cells of the sweeps at hand have, which a file may name as well."""

    metrics: frozenset[str]
    words: Mapping[str, frozenset[str]]
    """Factor → words."""


def _recorded(sweeps: Iterable[SweepRecord]) -> _Recorded:
    specs = [cell.spec for sweep in sweeps for cell in sweep.cells]
    words: dict[str, set[str]] = {}
    for spec in specs:
        for factor, word in spec.words.items():
            words.setdefault(factor, set()).add(word)
    metrics = frozenset(name for spec in specs for name in spec.test_metrics if "/" not in name)
    return _Recorded(metrics, {factor: frozenset(names) for factor, names in words.items()})


def _metric(metric: str, info: ValidationInfo) -> str:
    recorded = sorted(info.context.metrics) if info.context else ()
    known = dict.fromkeys([*(name for task in TASKS.definitions() for name in task.test_metrics), *recorded])
    if metric.removeprefix("valid/") not in known:
        raise refuse("", f"unknown metric `{metric}`", allowed=", ".join(known))
    return metric


def _task(task: str, info: ValidationInfo) -> str:
    recorded = sorted(info.context.words.get("task", ())) if info.context else ()
    known = list(dict.fromkeys([*TASKS, *recorded]))
    if task not in known:
        raise refuse("", f"unknown task `{task}`", allowed=", ".join(known), hint=synonyms.did_you_mean(task, known))
    return task


def _number(value: Any) -> Any:
    if value != NOT_CONVERGE and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise not_allowed(f"a number, or {NOT_CONVERGE}")
    return value


MetricName = Annotated[str, AfterValidator(_metric)]
TaskName = Annotated[str, AfterValidator(_task)]


class PublishedCell(Section):
    """A number: one that the paper printed."""

    where: CellSelector = Field(default_factory=dict)
    """Values of its cell, by axis or key; with those of its table they should name one cell."""
    metric: MetricName
    """A metric of the test split, such as `bleu`, or of the validation split, such as `valid/bleu`."""
    value: Annotated[Literal["not converge"] | float, BeforeValidator(_number)]
    """The number, or `not converge`."""
    note: str = ""
    """A remark on the value, such as that it is unverified."""


class PublishedTable(Section):
    """A table: numbers that stand together."""

    table: str = Field(min_length=1)
    """Its name in the paper."""
    where: CellSelector = Field(default_factory=dict)
    """Values that all of its cells have."""
    cells: tuple[PublishedCell, ...] = ()
    """Its numbers."""


class Expect(StrEnum):
    """What a claim expects of a compared with b."""

    BETTER = "better"
    NO_WORSE = "no-worse"
    EQUIVALENT = "equivalent"


class Contrast(Section):
    """A contrast: one comparison that a claim rests on."""

    where: CellSelector = Field(default_factory=dict)
    """Values that the cells of both sides have."""
    a: CellSelector = Field(min_length=1)
    """Values of the cells on one side, such as `kernel: rbf` or `evaluation.length: 256`."""
    b: CellSelector = Field(min_length=1)
    """Values of the cells on the other side; no cell may be on both."""
    expect: Expect
    """What a is beside b: better; no-worse: worse by less than the margin, if at all; equivalent: within the margin
    either way."""
    metric: MetricName | None = None
    """None for the metric that the cells were selected by."""
    margin: Margin | None = None
    """The difference below which the two sides count as equal: in units of the metric, or as a share of b such as 1%;
    `better` may do without."""

    @property
    def factors(self) -> frozenset[str]:
        """The factors that a side names."""
        return frozenset(self.a.keys() | self.b.keys())

    @property
    def sides_overlap(self) -> bool:
        """Whether a cell may be on both sides."""
        return all(self.a[factor] == self.b[factor] for factor in self.a.keys() & self.b.keys())

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.margin is None and self.expect is not Expect.BETTER:
            raise refuse(
                "margin", f"`{self.expect}` needs a margin", hint="write margin: 0.3, in units of the metric, or 1%"
            )
        if twice := self.where.keys() & self.factors:
            name = sorted(twice)[0]
            raise refuse("where", f"`{name}` stands under `where` and in a side", hint="keep one of them")
        return self


def _kind(part: Any) -> str:
    is_rule = not _QUANTIFIERS.isdisjoint(part) if isinstance(part, dict) else isinstance(part, Rule)
    return "kdx.Rule" if is_rule else "kdx.Contrast"


Part = Annotated["Annotated[Rule, Tag('kdx.Rule')] | Annotated[Contrast, Tag('kdx.Contrast')]", Discriminator(_kind)]


class Rule(Section):
    """A rule: when a claim holds; it has one of these keys."""

    all: tuple[Part, ...] = ()
    """Contrasts and further rules, each of which has to hold."""
    any: tuple[Part, ...] = ()
    """Contrasts and further rules, one of which has to hold."""

    @property
    def parts(self) -> tuple["Rule | Contrast", ...]:
        return self.all or self.any

    def contrasts(self, *keys: str | int) -> Iterator[tuple[tuple[str | int, ...], Contrast]]:
        """Every contrast, each with the keys that lead to it in the file.

        Args:
            keys: those that lead to the rule.
        """
        for index, part in enumerate(self.parts):
            inner = (*keys, "all" if self.all else "any", index)
            if isinstance(part, Rule):
                yield from part.contrasts(*inner)
            else:
                yield inner, part

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.all) == bool(self.any):
            raise refuse("", "a rule of no parts, or of two kinds", allowed="all: a list of contrasts, or any: a list")
        return self


class Claim(Section):
    """A claim: a statement, and the comparisons that decide it."""

    id: str = Field(min_length=1, max_length=64)
    """Its name in a report, unique in the file."""
    statement: str = Field(min_length=1)
    """What is claimed, in one sentence."""
    source: str = ""
    """Where the paper says it."""
    holds: Rule
    """The rule that decides it."""
    pairs: Literal["seed"] | None = None
    """`seed`: errors are those of the differences at each seed that all cells have. This is exact whatever the spreads,
    more powerful where a seed moves all cells alike, and less where it does not. None: each cell has its own spread."""
    grids: tuple[str, ...] = ()
    """The grids inside kdx that would test it."""


class PaperFile(Section):
    """The file: what one paper published and claims."""

    title: str = ""
    """The title of the paper."""
    source: str = ""
    """Where it was published."""
    protocol: str = ""
    """How its numbers were made, in words."""
    scale: dict[TaskName, str] = Field(default_factory=dict)
    """Task → corpus, size and training, in words."""
    corpora: dict[TaskName, str] = Field(default_factory=dict)
    """Task → the corpus of its numbers, as grids name it; cells of another corpus are compared by their order only."""
    tables: tuple[PublishedTable, ...] = ()
    """Published numbers, which `kdx report --against` shows."""
    claims: tuple[Claim, ...] = ()
    """What `kdx claims` tests."""


class Paper(PaperFile):
    """The content of one file."""

    name: str
    """The name of the file without its suffix."""


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
            return _read(path, _recorded(sweeps))
    names = shipped()
    allowed, hint = f"a YAML file, or one of {', '.join(names)}", did_you_mean(paper, names)
    what = "file" if path.suffix in (".yaml", ".yml") else "paper"
    raise Faults([KdxError(f"no {what} `{paper}`", allowed=allowed, hint=hint)])


def _read(path: Path, recorded: _Recorded) -> Paper:
    faults: list[KdxError] = []
    file, root = checked(PaperFile, read(path, faults, what="paper"), faults, context=recorded)

    def check(selector: Mapping[str, str], *keys: str | int) -> None:
        for factor, fault in unknown(selector, recorded.words):
            place = (root.at if factor in factors() else root.key)((*keys, factor))
            faults.append(KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint))

    values: dict[tuple[str, frozenset[tuple[str, str]]], str | float] = {}
    for number, table in enumerate(file.tables):
        check(table.where, "tables", number, "where")
        for index, cell in enumerate(table.cells):
            check(cell.where, "tables", number, "cells", index, "where")
            words = frozenset({**table.where, **cell.where}.items())
            if (before := values.setdefault((cell.metric, words), cell.value)) != cell.value:
                problem = f"{cell.value} where a cell of the same words has {before}"
                place = root.at(("tables", number, "cells", index, "value"))
                faults.append(KdxError(problem, place=place, hint="name what differs between them under `where`"))
    for number, claim in enumerate(file.claims):
        if claim.id in [earlier.id for earlier in file.claims[:number]]:
            faults.append(KdxError(f"two claims `{claim.id}`", place=root.at(("claims", number, "id"))))
        for keys, contrast in claim.holds.contrasts("claims", number, "holds"):
            before = len(faults)
            for side in ("where", "a", "b"):
                check(getattr(contrast, side), *keys, side)
            if len(faults) == before and contrast.sides_overlap:
                hint = "give both sides a word of the same factor, each another one"
                faults.append(KdxError("a cell may be on both sides", place=root.at((*keys, "b")), hint=hint))
    if faults:
        raise by_place(faults)
    return Paper.model_construct(name=path.stem, **dict(file))
