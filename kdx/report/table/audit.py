"""What keeps a comparison from being fair: cells that differ in more than the factors of their table.

Every factor of the cells, seeds, parameter counts, the text, the libraries and the code behind the compared cells.
Nothing is judged: a symmetric kernel is meant to have fewer parameters, but a reader has to know. Cells of one column
whose numbers do not compare are not compared at all, which a reader has to know, too, and why.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparable import BITS_PER_BYTE, ComparableCells, Trait, compares_by_bytes
from kdx.report.table.comparisons import BaselineOf
from kdx.report.table.layout import Layout
from kdx.store.records import CellRecord, Provenance, SweepRecord

PARAMETERS = "model/parameters"
"""The metric under which a run records how many numbers it learns."""

CHANGED = "conditions while training"
"""Topic of runs that went on with other libraries, threads, data or code than they had begun with."""
UNKNOWN = "unknown to this kdx"
"""Topic of cells with words of another kdx."""

_NO_MATTER = frozenset({"host", "commit", "training.record_every"})
"""Facts that cannot make a score better or worse; of commits, the code that decides is compared itself."""
CANARY = "canary"
"""Hash of some arithmetic, of an environment (`kdx.training.canary`)."""
CODE = "code"
_SHORT = 8
"""Digits of a hash that are shown."""


@dataclass(frozen=True)
class UnequalFact:
    """One fact in which cells differ."""

    topic: str
    """Such as `seeds`, `training.steps`, `parameters` or `torch`."""
    task: str
    metric: Metric
    values: Mapping[str, tuple[Address, ...]]
    """What the fact is → the places where it is so; the commonest first."""
    compared: bool = True
    """Whether the cells are compared all the same."""
    instead: str = ""
    """A metric by which they could be compared; empty: none was recorded, or they are compared."""


def audit(
    layout: Layout,
    groups: Sequence[ComparableCells],
    traits: Mapping[Address, Sequence[Trait]],
    baseline_of: BaselineOf,
    sweep: SweepRecord,
) -> tuple[UnequalFact, ...]:
    """Every fact in which compared cells with a score differ, beyond the factors of their table, and why cells of one
    column, or a cell and its baseline, are not compared.

    Args:
        traits: what has to be the same for two cells' numbers to compare.
    """
    meant = {*layout.row_factors, *layout.column_factors}
    edited = _edited(sweep)
    found = list(_not_compared(groups, traits, baseline_of, sweep))
    for group in groups:
        by_topic: dict[str, dict[str, list[Address]]] = {}
        for at, cell in group.cells.items():
            if cell.value is None:
                continue
            for topic, told in _facts(cell, layout.records[cell.id], sweep, edited):
                if topic not in meant:
                    by_topic.setdefault(topic, {}).setdefault(told, []).append(at)
        for topic, values in by_topic.items():
            # What went on under other conditions, or has words that nobody here knows, is told of every cell.
            if len(values) > 1 or topic in (CHANGED, UNKNOWN):
                found.append(UnequalFact(topic, group.task, group.metric, _commonest_first(values)))
    return tuple(found)


def _not_compared(
    groups: Sequence[ComparableCells],
    traits: Mapping[Address, Sequence[Trait]],
    baseline_of: BaselineOf,
    sweep: SweepRecord,
) -> Iterator[UnequalFact]:
    apart: dict[tuple[str, Metric], dict[Address, Cell]] = {}
    for group in groups:
        scored = {at: cell for at, cell in group.cells.items() if cell.value is not None}
        apart.setdefault((group.task, group.metric), {}).update(scored)
    for (task, metric), those in apart.items():
        # The cells of a column with the best of them, and each cell with its baseline.
        meant = [[at for at in those if at[1] == column] for column in dict.fromkeys(column for _, column in those)]
        meant += [[at, against] for at in those if (against := baseline_of(at)) is not None and against in those]
        by_topic: dict[str, dict[str, dict[Address, None]]] = {}
        for places in meant:
            its: dict[str, dict[Address, Trait]] = {}
            for at in places:
                for trait in traits[at]:
                    its.setdefault(trait.topic, {})[at] = trait
            for topic, told in its.items():
                if len({trait.key for trait in told.values()}) > 1 or len(told) < len(places):
                    for at, trait in told.items():
                        by_topic.setdefault(topic, {}).setdefault(trait.told, {})[at] = None
        bytewise = metric.unit != BITS_PER_BYTE and by_topic.keys() <= {"vocabulary", "tokenisation"}
        instead = BITS_PER_BYTE if bytewise and compares_by_bytes(those, sweep) else ""
        for topic, values in by_topic.items():
            yield UnequalFact(topic, task, metric, _commonest_first(values), compared=False, instead=instead)


def _commonest_first(values: Mapping[str, Collection[Address]]) -> dict[str, tuple[Address, ...]]:
    return {told: tuple(where) for told, where in sorted(values.items(), key=lambda entry: -len(entry[1]))}


def _edited(sweep: SweepRecord) -> frozenset[str]:
    """The modules of kdx that were not the same for all runs that they decided, or `code` where that is not known."""
    origins = list({id(one): one for one in sweep.provenance.values()}.values())
    hashes: dict[str, set[str]] = {}
    for one in origins:
        for module, sha256 in (one.modules or {}).items():
            hashes.setdefault(module, set()).add(sha256)
    before = {one.code for one in origins if one.code and one.modules is None}
    return frozenset({module for module, those in hashes.items() if len(those) > 1} | ({CODE} if before else set()))


def _code(origins: Iterable[Provenance], edited: Collection[str]) -> Iterator[tuple[str, str]]:
    """Two cells need not use the same modules; what both use must be the same."""
    of_all = [one for one in origins if one.code]
    if CODE in edited:
        # An earlier kdx recorded one hash of all code, whatever a cell used of it.
        yield from _agreed(CODE, ("told by module" if one.modules else (one.code or "")[:_SHORT] for one in of_all))
    for module in sorted(set(edited) - {CODE}):
        hashes = (sha256[:_SHORT] for one in of_all if one.modules and (sha256 := one.modules.get(module)))
        yield from _agreed(f"{CODE} of {module}", hashes)


def _facts(cell: Cell, record: CellRecord, sweep: SweepRecord, edited: Collection[str]) -> Iterator[tuple[str, str]]:
    runs = [one.run_id for one in cell.seeds if one.score is not None]
    yield from ((UNKNOWN, word) for word in record.spec.unknown)
    yield "seeds", _ranges(one.seed for one in cell.seeds if one.score is not None)
    for factor, word in (*record.spec.words.items(), ("select.metric", record.spec.selection_metric)):
        if factor not in _NO_MATTER:
            yield factor, word or "none"
    counts = [sweep.metrics.get(run, {}).get(PARAMETERS) for run in runs]
    yield from _agreed("parameters", (f"{count:,.0f}" for count in counts if count is not None))
    # Runs share their origins; each is looked at once.
    origins = list({id(one): one for run in runs if (one := sweep.provenance.get(run))}.values())
    yield from _agreed("data", (one.data[:_SHORT] for one in origins if one.data))
    yield from _code(origins, edited)
    precision = record.spec.word("training.precision")
    for key in dict.fromkeys(key for one in origins for key in one.environment or ()):
        values = [(one.environment or {}).get(key) for one in origins]
        if key == CANARY:
            # It is of the arithmetic of one precision, and those who did not record it may have had the same.
            yield from _agreed(f"arithmetic in {precision}", (str(value) for value in values if value is not None))
        elif key not in _NO_MATTER:
            yield from _agreed(key, ("not recorded" if value is None else str(value) for value in values))
    yield from _agreed(CHANGED, (f"{one.changes} (not bit-exact)" for one in origins if one.changes))
    yield from _agreed("definition", _definitions(cell.metric, origins))


def _definitions(metric: Metric, origins: Iterable[Provenance]) -> Iterator[str]:
    for one in origins:
        defined: Any = (one.definitions or {}).get(metric.recorded)
        if defined:
            yield str(defined)


def _agreed(topic: str, told: Iterable[str]) -> Iterator[tuple[str, str]]:
    """One fact of a cell's runs, all its values where they do not agree; nothing where none is known."""
    values = sorted(set(told))
    if values:
        yield topic, " and ".join(values)


def _ranges(seeds: Iterable[int]) -> str:
    """`0–2, 7` for 0, 1, 2, 7."""
    runs = []
    for _, group in groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0]):
        numbers = [seed for _, seed in group]
        runs.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}")
    return ", ".join(runs)
