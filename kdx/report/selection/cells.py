"""The cell of a table: its seeds, their summary, and the selected run."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from math import isfinite
from types import MappingProxyType

from kdx.grid.plan import Shown
from kdx.grid.seeds import SeedRule
from kdx.metrics import METRICS
from kdx.report.selection.best_seed import best_seed, standing_runs
from kdx.report.selection.evaluated import EvaluatedCell
from kdx.report.statistics.by_document import ByDocument, Documents, bleu_by_document, by_document
from kdx.report.statistics.estimates import Summary, contrast, summarise
from kdx.report.statistics.expected_best import expected_best
from kdx.report.statistics.looks import Look
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.rates import wilson
from kdx.store.records import ENDED, CellRecord, DocumentRecord, RunRecord, RunState
from kdx.vocabulary import Direction

INVALIDATED, PRUNED, UNDERTRAINED = "invalidated", RunState.PRUNED.value, "undertrained"
"""Why a seed has no score, or one that says little: its run was excluded from reports, stopped early, or learned too
little."""


class State(StrEnum):
    """What a place of a table shows: a score, nothing yet, or why no run has a score."""

    VALUE = "value"
    MISSING = "missing"
    DIVERGED = RunState.DIVERGED.value
    OUT_OF_MEMORY = "out of memory"
    FAILED = RunState.FAILED.value
    INVALIDATED = INVALIDATED


@dataclass(frozen=True)
class Seed:
    """The result of one seed of a cell, that is of the run that stands for it, see `Cell`."""

    seed: int
    run_id: int
    state: RunState
    validation: float | None
    score: float | None
    """Its test score, or in a table of a validation metric its validation score; None unless completed and in the
    table."""
    undertrained: str | None = None
    """Why its score says little: the model learned no more than the frequencies of the tokens."""
    invalidated: str | None = None
    """Why its run was excluded from reports; None if it was not."""
    generation: int = 0
    """The generation of its run; each deliberate repetition adds one."""

    @property
    def outcome(self) -> str:
        """The state of its run, or that the run is excluded from reports."""
        return self.state.value if self.invalidated is None else INVALIDATED


@dataclass(frozen=True)
class Cell:
    """One place of a table, in full precision.

    Each seed counts once, by its newest final generation, or by its newest one if none is final. Generations that are
    excluded from reports count as missing.
    """

    id: str
    metric: Metric
    """The metric of `score`, such as bleu."""
    selected_by: Metric
    """The metric of `validation`, such as valid/bleu."""
    state: State
    run_id: int | None
    """The selected run."""
    seed: int | None
    validation: float | None
    score: float | None
    """Its test score; in a table of a validation metric, its best validation score."""
    summary: Summary | None
    """Mean and spread of these scores over every completed run."""
    seeds: tuple[Seed, ...]
    """Every seed, from the lowest."""
    out_of_memory: int = 0
    """Number of failed runs that ran out of memory."""
    shown: Shown = Shown.BEST_SEED
    """Whether `value` is the selected test score or the mean."""
    sums: Mapping[int, DocumentRecord] = field(default_factory=dict)
    """Seed → what its test measured by document; seeds for which that is not recorded are left out."""
    seed_rule: SeedRule | None = None
    """What decides how many seeds it has; None: it has all of its seeds in any case."""

    @property
    def value(self) -> float | None:
        """The number that the table shows; None where it shows none."""
        if self.state is not State.VALUE:
            return None
        return self.score if self.shown is Shown.BEST_SEED else self.summary.mean if self.summary else None

    @cached_property
    def scores(self) -> dict[int, float]:
        """Seed → test score on the scale on which it is compared; seeds without one are left out."""
        on_scale = self.metric.on_scale
        scaled = {seed.seed: on_scale(seed.score) for seed in self.seeds if seed.score is not None}
        return {seed: score for seed, score in scaled.items() if score is not None}

    @cached_property
    def compared(self) -> Summary | None:
        """Mean and spread of `scores`; None where a score is missing on that scale, there are fewer than two scores,
        or the table shows no number."""
        able = self.value is not None and self.reference is not None and len(self.scores) > 1
        return summarise([*self.scores.values()]) if able else None

    @cached_property
    def by_document(self) -> ByDocument | None:
        """How each of `scores` depends on single documents; None where that is not recorded of all, or the metric is
        neither a mean over targets nor BLEU."""
        known = [self.sums.get(seed) for seed in self.scores]
        records = [record for record in known if record]
        if not records or len(records) < len(known):
            return None
        unit, targets = records[0].unit, records[0].sums["targets"]
        if any((record.unit, record.sums["targets"]) != (unit, targets) for record in records):
            return None
        if self.metric.name == "bleu":
            measured = all("words" in record.sums for record in records)
            return bleu_by_document(unit, targets, [record.sums for record in records]) if measured else None
        if not self.metric.summed or any(self.metric.summed[0] not in record.sums for record in records):
            return None
        quantity, times = self.metric.summed
        return by_document(unit, targets, [record.sums[quantity] for record in records], times=times)

    @property
    def documents(self) -> Documents | None:
        """The documents that errors are over as well; None where they are over seeds alone."""
        return self.by_document.documents if self.by_document else None

    @cached_property
    def half_width(self) -> float | None:
        """Half of the 95% interval of the mean over seeds, and over documents too where `by_document` is known.

        None where there is no finite spread.
        """
        if self.summary is None:
            return None
        documents = None
        if self.by_document and len(self.scores) == self.summary.n:
            # A perplexity is the exponential of what is averaged over documents.
            scores = [seed.score or 0.0 for seed in self.seeds if seed.seed in self.scores]
            documents = self.by_document.scaled(scores if self.metric.in_nats else [1.0] * len(scores))
        mean = contrast([(1.0, self.summary)], [documents], self.look)
        if mean is None:
            return None
        low, high = mean.interval()
        return (high - low) / 2

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the mean, within the metric's scale; None where there is no spread."""
        half = self.half_width
        if self.summary is None or half is None:
            return None
        return self.metric.within((self.summary.mean - half, self.summary.mean + half))

    @property
    def ended(self) -> int:
        """Seeds that have ended, counted from 0 to the first that has not."""
        ended = {seed.seed for seed in self.seeds if seed.state in ENDED}
        return sum(1 for _ in takewhile(lambda seed: seed in ended, range(len(ended))))

    @property
    def look(self) -> Look | None:
        """The last look at its seeds by its rule; None without a rule."""
        if self.seed_rule is None:
            return None
        first, last = self.seed_rule.min, self.seed_rule.max
        return Look(min(max(self.ended, first), last), first, last)

    def until(self, n: int) -> "Cell":
        """The cell as its first n seeds make it, by their mean."""
        return self.only({seed.seed for seed in self.seeds if seed.seed < n})

    def only(self, kept: Container[int]) -> "Cell":
        """The cell as some of its seeds make it, by their mean."""
        seeds = tuple(seed for seed in self.seeds if seed.seed in kept)
        summary = summarise([seed.score for seed in seeds if seed.score is not None])
        state = State.VALUE if summary else State.MISSING
        return replace(self, seeds=seeds, summary=summary, state=state, shown=Shown.MEAN)

    @property
    def reference(self) -> float | None:
        """The mean to which a margin refers; None where a score is missing on the scale on which it is compared."""
        return self.summary.mean if self.summary and len(self.scores) == self.summary.n else None

    @property
    def planned(self) -> int:
        return len(self.seeds)

    @property
    def completed(self) -> int:
        return self._count(RunState.COMPLETED)

    @property
    def diverged(self) -> int:
        return self._count(RunState.DIVERGED)

    @property
    def pruned(self) -> int:
        """Number of runs that a search stopped early; they have no test score."""
        return self._count(RunState.PRUNED)

    @property
    def undertrained(self) -> int:
        """Number of completed runs that learned no more than the frequencies of the tokens."""
        return sum(seed.undertrained is not None and seed.invalidated is None for seed in self.seeds)

    @property
    def invalidated(self) -> int:
        """Number of seeds whose every run is excluded from reports."""
        return sum(seed.invalidated is not None for seed in self.seeds)

    @property
    def failed(self) -> int:
        """Number of failed runs, including those out of memory."""
        return self._count(RunState.FAILED)

    @property
    def unfinished(self) -> int:
        """Number of runs that are pending, running, interrupted or cancelled."""
        return self.planned - self.completed - self.diverged - self.pruned - self.failed - self.invalidated

    @property
    def cancelled(self) -> int:
        """Number of runs that somebody cancelled, which kdx resume leaves as they are; they are unfinished too."""
        return self._count(RunState.CANCELLED)

    @property
    def counts(self) -> dict[str, int]:
        """Why seeds have no score, or one that says little → their number; in the order in which tables say it."""
        counts = {
            State.DIVERGED: self.diverged,
            State.OUT_OF_MEMORY: self.out_of_memory,
            State.FAILED: self.failed - self.out_of_memory,
            PRUNED: self.pruned,
            State.INVALIDATED: self.invalidated,
            UNDERTRAINED: self.undertrained,
        }
        return {word: count for word, count in counts.items() if count}

    @property
    def divergence_rate(self) -> tuple[float, float]:
        """Wilson's 95% interval of the probability that a seed diverges, from the runs that completed or diverged."""
        return wilson(self.diverged, self.diverged + self.completed)

    def expected(self, draws: int) -> float | None:
        """The expected test score of the best-validation seed among `draws` seeds; None when there are not as many."""
        return self.expected_best[draws - 1] if 1 <= draws <= len(self.expected_best) else None

    @cached_property
    def expected_best(self) -> list[float]:
        """The expected test score of the best-validation seed among 1, 2, … seeds."""
        sign = 1 if self.selected_by.direction is Direction.MAX else -1
        ranked = sorted(
            (sign * seed.validation, -seed.seed, seed.score)
            for seed in self.seeds
            if seed.score is not None and seed.validation is not None and isfinite(seed.validation)
        )
        return expected_best([score for *_, score in ranked])

    def _count(self, state: RunState) -> int:
        return sum(seed.state is state and seed.invalidated is None for seed in self.seeds)


def cell_of(
    record: CellRecord | EvaluatedCell,
    runs: Iterable[RunRecord],
    metrics: Mapping[int, Mapping[str, float]],
    documents: Mapping[int, DocumentRecord] = MappingProxyType({}),
    *,
    metric: str | None = None,
    shown: Shown = Shown.BEST_SEED,
    seed_rule: SeedRule | None = None,
) -> Cell | None:
    """Summarise the runs of a cell; None when its task has no such metric.

    Args:
        record: the cell, or one of its evaluations, whose metrics and documents then stand in the place of the tests'.
        runs: all runs of the cell, in any state and generation.
        metrics: run id → `test/…` → value.
        documents: run id → what its test measured by document.
        metric: a test metric, or the validation metric that the cell was selected by; None for that one on the test
            split.
        seed_rule: what decides how many seeds the cell has, if a rule does.
    """
    scored_by, broken, of_test = None, frozenset[int](), not isinstance(record, EvaluatedCell)
    if isinstance(record, EvaluatedCell):
        scored_by, broken = record.evaluation.metric, record.failed
        metrics, documents, record = record.metrics, record.documents, record.record
    known = {scored_by: METRICS.definition(scored_by).measure} if scored_by else record.spec.test_metrics
    selected_by = Metric(record.spec.selection_metric, record.spec.selection_measure)
    own = scored_by or selected_by.name.removeprefix("valid/")
    name = metric or own
    if name not in known and name not in (own, selected_by.name):
        return None

    def score_of(run: RunRecord) -> float | None:
        if run.state is not RunState.COMPLETED or run.invalidated is not None:
            return None
        if name == selected_by.name:
            return run.valid_score
        return run.test_score if of_test and name == own else metrics.get(run.id, {}).get(f"test/{name}")

    standing = standing_runs(runs)
    seeds = tuple(
        Seed(
            seed=run.seed,
            run_id=run.id,
            state=RunState.FAILED if run.id in broken else run.state,
            validation=run.valid_score,
            score=score_of(run),
            undertrained=run.undertrained,
            invalidated=run.invalidated,
            generation=run.generation,
        )
        for run in standing
    )
    best = best_seed(standing, selected_by.direction)
    score = score_of(best) if best else None
    summary = summarise([seed.score for seed in seeds if seed.score is not None])
    memory = sum(run.out_of_memory and run.invalidated is None for run in standing)
    states = Counter(seed.state for seed in seeds if seed.invalidated is None)
    out = bool(standing) and not states
    has_value = score is not None if shown is Shown.BEST_SEED else summary is not None
    return Cell(
        id=record.id,
        metric=selected_by if name == selected_by.name else Metric(name, known.get(name, selected_by.measure)),
        selected_by=selected_by,
        state=State.VALUE if has_value else State.INVALIDATED if out else _without_value(states, memory),
        run_id=best.id if best else None,
        seed=best.seed if best else None,
        validation=best.valid_score if best else None,
        score=score,
        summary=summary,
        seeds=seeds,
        shown=shown,
        out_of_memory=memory,
        sums={run.seed: documents[run.id] for run in standing if run.id in documents},
        seed_rule=seed_rule,
    )


def _without_value(states: Mapping[RunState, int], memory: int) -> State:
    """The state of a cell without a score: divergence counts at once, a failure only when every run has failed.

    Args:
        states: state → number of runs that are not excluded from reports.
    """
    if states[RunState.COMPLETED]:
        return State.MISSING
    if states[RunState.DIVERGED]:
        return State.DIVERGED
    failed = states[RunState.FAILED]
    if not failed or failed < sum(states.values()):
        return State.MISSING
    return State.OUT_OF_MEMORY if memory == failed else State.FAILED
