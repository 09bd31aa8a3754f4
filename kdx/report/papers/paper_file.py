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

Cells are named by the words of their factors, as in a grid (`kdx.grid.cell_selector`), so they meet those of any grid.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from kdx.errors import FaultList, Faults, KdxError, by_place, did_you_mean
from kdx.grid.cell_selector import CellSelector, factors, unknown
from kdx.grid.faults import located
from kdx.grid.sections import Margin, OneOf, Section, refuse
from kdx.grid.source import Node, read
from kdx.tasks import TASKS

NOT_CONVERGE = "not converge"
_QUANTIFIERS = frozenset({"all", "any"})
_SHIPPED = Path(__file__).parent / "published"


def _known(metric: str) -> str:
    known = list(dict.fromkeys(name for task in TASKS.definitions() for name in task.test_metrics))
    if metric.removeprefix("valid/") not in known:
        raise refuse("", f"unknown metric `{metric}`", allowed=", ".join(known))
    return metric


MetricName = Annotated[str, AfterValidator(_known)]


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
    scale: dict[Annotated[str, OneOf(TASKS)], str] = Field(default_factory=dict)
    corpora: dict[Annotated[str, OneOf(TASKS)], str] = Field(default_factory=dict)
    tables: tuple[PublishedTable, ...] = ()
    claims: tuple[Any, ...] = ()


class _ClaimHead(Section):
    id: str = Field(min_length=1, max_length=64)
    statement: str = Field(min_length=1)
    source: str = ""
    holds: dict[str, Any]


def shipped() -> tuple[str, ...]:
    """Names of the papers inside kdx."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def load_paper(paper: str) -> Paper:
    """Read a paper's file.

    Args:
        paper: the name of a shipped one, such as `tsai2019`, or a path.

    Raises:
        Faults: there is no such file, or everything that is wrong with it.
    """
    path = _SHIPPED / f"{paper}.yaml" if paper in shipped() else Path(paper)
    # A name that no file can have, or a folder that cannot be read, counts as no file.
    with contextlib.suppress(OSError):
        if path.is_file():
            return _read(path)
    names = shipped()
    allowed, hint = f"a YAML file, or one of {', '.join(names)}", did_you_mean(paper, names)
    raise Faults([KdxError(f"no paper `{paper}`", allowed=allowed, hint=hint)])


def _read(path: Path) -> Paper:
    faults = FaultList()
    root = read(path, faults, what="paper")
    try:
        head = _Head.model_validate(root.plain())
    except ValidationError as error:
        raise by_place([*faults, *located(error, root, _Head)]) from error
    for table_index, table in enumerate(head.tables):
        _check(table.where, root, ("tables", table_index, "where"), faults)
        for index, cell in enumerate(table.cells):
            _check(cell.where, root, ("tables", table_index, "cells", index, "where"), faults)
    nodes = root.value["claims"].value if head.claims else []
    claims: dict[str, Claim] = {}
    for node in nodes:
        for claim in _claim(node, faults):
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


def _claim(node: Node, faults: list[KdxError]) -> Iterator[Claim]:
    try:
        head = _ClaimHead.model_validate(node.plain())
    except ValidationError as error:
        faults.extend(located(error, node, _ClaimHead))
        return
    rule = _rule(node.value["holds"], faults)
    if rule:
        yield Claim(head.id, head.statement, head.source, rule)


def _rule(node: Node, faults: list[KdxError]) -> Rule | None:
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
        parts.append(_rule(one, faults) if nested else _contrast(one, faults))
    return Rule(keys[0] == "any", tuple(part for part in parts if part))


def _contrast(node: Node, faults: list[KdxError]) -> Contrast | None:
    try:
        contrast = Contrast.model_validate(node.plain())
    except ValidationError as error:
        faults.extend(located(error, node, Contrast))
        return None
    before = len(faults)
    for side in ("where", "a", "b"):
        _check(getattr(contrast, side), node, (side,), faults)
    shared = contrast.a.keys() & contrast.b.keys()
    if len(faults) == before and all(contrast.a[factor] == contrast.b[factor] for factor in shared):
        hint = "give both sides a word of the same factor, each another one"
        faults.append(KdxError("a cell may be on both sides", place=node.at(("b",)), hint=hint))
    return contrast


def _check(selector: Mapping[str, str], node: Node, path: tuple[str | int, ...], faults: list[KdxError]) -> None:
    for factor, fault in unknown(selector):
        place = (node.at if factor in factors() else node.key)((*path, factor))
        faults.append(KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint))
