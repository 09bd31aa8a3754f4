"""Lists what makes a comparison unfair: facts beyond the factors of a table in which its cells differ.

The facts are the cells' factors, seeds, parameter counts, text, libraries and code. The audit does not judge: a
symmetric kernel is meant to have fewer parameters, but a reader has to know it. A reader also has to know why cells of
one column are not compared at all, where their numbers do not compare.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from kdx.grid.table_layout import Address
from kdx.report.selection.best_seed import by_cell
from kdx.report.selection.cells import INVALIDATED, Cell
from kdx.report.selection.evaluated import EvaluatedCell
from kdx.report.selection.searched import SearchedCell, space_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparable import BITS_PER_BYTE, ComparableCells, Trait, compares_by_bytes
from kdx.report.table.comparisons import BaselineOf
from kdx.report.table.layout import Layout
from kdx.store.records import CellRecord, Provenance, RunRecord, SweepRecord, TrialState

PARAMETERS = "model/parameters"
"""The metric under which a run records how many numbers it learns."""

CHANGED = "conditions while training"
"""Topic of runs that continued with other libraries, threads, data or code than they began with."""
TUNED = "tuning seeds that score it"
"""Topic of cells that are scored with seeds that the trials of their own search used."""
OUT = INVALIDATED
"""Topic of runs that somebody excluded from reports."""
FAST = "arithmetic"
"""Topic, and key of an environment, of runs computed with fast arithmetic, whose bits do not repeat."""
UNKNOWN = "unknown to this kdx"
"""Topic of cells with names that this kdx does not know."""

SEEDS_BY_RULE = "seeds (chosen by their rule)"
"""Topic of seeds in a sweep that adds them until something is decided."""

_NO_MATTER = frozenset({"host", "gpu", "commit", "training.record_every"})
"""Facts that cannot change a score; instead of the commit, the code that a run uses is compared."""
CANARY = "canary"
"""Key of an environment that holds the hash of some arithmetic (`kdx.training.canary`)."""
ALWAYS = frozenset({CHANGED, FAST, OUT, TUNED, UNKNOWN})
"""Topics that are listed even where all cells share the fact."""
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
    """Value of the fact → the places that have it; the commonest value first."""
    compared: bool = True
    """Whether the cells are compared nevertheless."""
    instead: str = ""
    """A metric by which the cells could be compared; empty if none was recorded, or if they are compared."""

    @property
    def only_listed(self) -> bool:
        """Whether notes give its topic alone, and a listing which cell has which value."""
        return self.compared and self.topic not in ALWAYS


def audit(
    layout: Layout,
    groups: Sequence[ComparableCells],
    traits: Mapping[Address, Sequence[Trait]],
    baseline_of: BaselineOf,
    sweep: SweepRecord,
    searches: Mapping[Address, SearchedCell] = MappingProxyType({}),
) -> tuple[UnequalFact, ...]:
    """Every fact beyond the factors of the table in which compared cells with a score differ, and why cells of one
    column, or a cell and its baseline, are not compared.

    Args:
        traits: the facts that have to be the same for two cells' numbers to compare.
        searches: place → the search that found its cell.
    """
    meant = {*layout.row_factors, *layout.column_factors}
    edited = _edited(sweep.provenance.values())
    evaluations = [each for cell in layout.evaluations.values() for each in cell.by_run.values()]
    edited_since = _edited(evaluation.provenance for evaluation in evaluations if evaluation.provenance)
    excluded = by_cell(run for run in sweep.runs if run.invalidated is not None)
    unequal = list(_not_compared(groups, traits, baseline_of, sweep))
    for group in groups:
        unequal += _excluded_runs(group, layout, excluded)
        scored = {at: cell for at, cell in group.cells.items() if cell.value is not None}
        # What every search was free to choose is meant to differ.
        spaces = [set(searches[at].search.space) if at in searches else set() for at in scored]
        chosen = set.intersection(*spaces) if spaces else set()
        by_topic: dict[str, dict[str, list[Address]]] = {}
        for at, cell in scored.items():
            facts = [*_facts(cell, layout.records[cell.id], sweep, edited)]
            if cell.id in layout.evaluations:
                facts += _facts_of_evaluation(cell, layout.evaluations[cell.id], edited_since)
            if any(spaces):
                facts += _facts_of_search(searches.get(at), cell)
            for topic, value in facts:
                if topic not in meant and topic not in chosen:
                    by_topic.setdefault(topic, {}).setdefault(value, []).append(at)
        unequal += (
            UnequalFact(topic, group.task, group.metric, _commonest_first(values))
            for topic, values in by_topic.items()
            if len(values) > 1 or topic in ALWAYS
        )
    return tuple(unequal)


def _facts_of_search(searched: SearchedCell | None, cell: Cell) -> Iterator[tuple[str, str]]:
    """The budget of a cell's search, the space, and how trials were ended early; `none` for a cell without a search."""
    if searched is None:
        yield "tuning", "none"
        return
    tuning, space = searched.search.tuning, searched.search.space
    yield "tuning", str(tuning.sampler)
    yield "tuning trials", str(len(searched.ended))
    yield "tuning seeds", _ranges(tuning.seeds)
    yield "tuning steps", f"{sum(trial.steps for trial in searched.trials):,}"
    yield "tuning pruner", str(tuning.pruner)
    yield "pruned trials", str(searched.count(TrialState.PRUNED))
    yield "failed trials", str(searched.count(TrialState.FAILED))
    yield "tuning space", "; ".join(f"{name} {space_in_words(space[name])}" for name in sorted(space))
    if seeds := {seed.seed for seed in cell.seeds if seed.score is not None}.intersection(tuning.seeds):
        yield TUNED, f"seed{'' if len(seeds) == 1 else 's'} {_ranges(seeds)}"


def _excluded_runs(
    group: ComparableCells, layout: Layout, excluded: Mapping[str, Sequence[RunRecord]]
) -> Iterator[UnequalFact]:
    """The runs that would stand for a seed, had nobody excluded them from reports, with the reason; also of cells
    without a score."""
    by_reason: dict[str, list[Address]] = {}
    for at, cell in group.cells.items():
        standing = {seed.seed: seed.generation for seed in cell.seeds}
        for run in sorted(excluded.get(layout.trained(cell), ()), key=lambda run: (run.seed, run.generation)):
            if run.generation >= standing[run.seed]:
                by_reason.setdefault(f"run {run.id} of seed {run.seed} ({run.invalidated})", []).append(at)
    if by_reason:
        yield UnequalFact(OUT, group.task, group.metric, _commonest_first(by_reason))


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
    for (task, metric), cells in apart.items():
        # The cells of a column with the best of them, and each cell with its baseline.
        meant = [[at for at in cells if at[1] == column] for column in dict.fromkeys(column for _, column in cells)]
        meant += [[at, against] for at in cells if (against := baseline_of(at)) is not None and against in cells]
        by_topic: dict[str, dict[str, dict[Address, None]]] = {}
        for places in meant:
            traits_by_topic: dict[str, dict[Address, Trait]] = {}
            for at in places:
                for trait in traits[at]:
                    traits_by_topic.setdefault(trait.topic, {})[at] = trait
            for topic, by_place in traits_by_topic.items():
                if len({trait.key for trait in by_place.values()}) > 1 or len(by_place) < len(places):
                    for at, trait in by_place.items():
                        by_topic.setdefault(topic, {}).setdefault(trait.text, {})[at] = None
        bytewise = metric.unit == metric.whole != BITS_PER_BYTE and by_topic.keys() <= {"vocabulary", "tokenisation"}
        instead = BITS_PER_BYTE if bytewise and compares_by_bytes(cells, sweep) else ""
        for topic, values in by_topic.items():
            yield UnequalFact(topic, task, metric, _commonest_first(values), compared=False, instead=instead)


def _commonest_first(values: Mapping[str, Collection[Address]]) -> dict[str, tuple[Address, ...]]:
    return {value: tuple(places) for value, places in sorted(values.items(), key=lambda entry: -len(entry[1]))}


def _edited(provenance: Iterable[Provenance]) -> frozenset[str]:
    """The modules of kdx that differ between the results that use them."""
    hashes: dict[str, set[str]] = {}
    for origin in {id(origin): origin for origin in provenance}.values():
        for module, sha256 in (origin.modules or {}).items():
            hashes.setdefault(module, set()).add(sha256)
    return frozenset(module for module, versions in hashes.items() if len(versions) > 1)


def _facts(cell: Cell, record: CellRecord, sweep: SweepRecord, edited: Collection[str]) -> Iterator[tuple[str, str]]:
    seeds = [seed for seed in cell.seeds if seed.score is not None]
    runs = [seed.run_id for seed in seeds]
    yield from ((UNKNOWN, word) for word in record.spec.unknown)
    yield SEEDS_BY_RULE if cell.seed_rule else "seeds", _ranges(seed.seed for seed in seeds)
    yield from ((factor, word) for factor, word in record.spec.words.items() if factor not in _NO_MATTER)
    yield "select.metric", record.spec.selection_metric
    counts = [sweep.metrics.get(run, {}).get(PARAMETERS) for run in runs]
    yield from _agreed("parameters", (f"{count:,.0f}" for count in counts if count is not None))
    # Runs share their origins; each origin counts once.
    origins = list({id(origin): origin for run in runs if (origin := sweep.provenance.get(run))}.values())
    yield from _conditions(origins, edited, record.spec.word("training.precision"))
    yield from _agreed(CHANGED, (f"{origin.changes} (not bit-exact)" for origin in origins if origin.changes))
    definitions = ((origin.definitions or {}).get(cell.metric.recorded) for origin in origins)
    yield from _agreed("definition", (str(definition) for definition in definitions if definition))


def _conditions(
    origins: Sequence[Provenance], edited: Collection[str], precision: str | None
) -> Iterator[tuple[str, str]]:
    """The data, code and environment of a cell's results."""
    yield from _agreed("data", (origin.data[:_SHORT] for origin in origins if origin.data))
    # Module by module, since two cells need not use the same ones.
    for module in sorted(edited):
        hashes = (sha256[:_SHORT] for origin in origins if (sha256 := (origin.modules or {}).get(module)))
        yield from _agreed(f"code of {module}", hashes)
    for key in dict.fromkeys(key for origin in origins for key in origin.environment or ()):
        values = [(origin.environment or {}).get(key) for origin in origins]
        if key == CANARY:
            # The hash is of one precision, and runs that did not record it may have had the same arithmetic.
            known = (str(value) for value in values if value is not None)
            yield from _agreed(f"processor arithmetic in {precision}", known)
        elif key not in _NO_MATTER:
            yield from _agreed(key, ("not recorded" if value is None else str(value) for value in values))


def _facts_of_evaluation(cell: Cell, evaluated: EvaluatedCell, edited: Collection[str]) -> Iterator[tuple[str, str]]:
    """The data, code and environment of a cell's evaluations."""
    evaluations = (evaluated.by_run.get(seed.run_id) for seed in cell.seeds if seed.score is not None)
    origins = [evaluation.provenance for evaluation in evaluations if evaluation and evaluation.provenance]
    for topic, value in _conditions(origins, edited, evaluated.record.spec.word("training.precision")):
        yield f"{topic} of evaluations", value


def _agreed(topic: str, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """One fact of a cell's runs, with all values where the runs differ; nothing where no value is known."""
    different = sorted(set(values))
    if different:
        yield topic, " and ".join(different)


def _ranges(seeds: Iterable[int]) -> str:
    """`0–2, 7` for 0, 1, 2, 7."""
    runs = []
    for _, group in groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0]):
        numbers = [seed for _, seed in group]
        runs.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}")
    return ", ".join(runs)
