"""How often the report's statistics err, by simulation: `make calibration` prints the table (DRAWS=200 is quicker).

Each rate is of kdx's own functions (`contrast`, `tables`, `answers`) on scores drawn from a normal distribution. Rates
of errors are to be at most 5%, but for those marked *, which the report says beside its numbers; a rate of 5% from D
draws has a Monte-Carlo standard error of √(0.05 · 0.95 / D). The random numbers differ from call to call, unless SEED
says which.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any, Literal

import numpy as np

from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.papers.paper_file import Claim, Contrast, Rule, load_paper
from kdx.report.papers.verdicts import Verdict, answers
from kdx.report.statistics.by_document import by_document
from kdx.report.statistics.estimates import contrast, summarise
from kdx.report.table.comparisons import Mark
from kdx.report.tables import tables
from kdx.store.records import CellRecord, RunRecord, RunState, SweepRecord

SEEDS = (2, 3, 5, 10)
BLEU, PERPLEXITY = 34.0, 24.0
SD = {"translation": 0.15, "prediction": 0.08}
"""Over seeds at the paper's scale, in BLEU and in perplexity."""
GRIDS = [f"tsai2019/table{number}-mini" for number in (1, 2, 3, 4)]


@dataclass(frozen=True)
class Scenario:
    """How scores scatter."""

    name: str
    noisy: float = 1.0
    """How many times as much the polynomial kernel scatters; in a table, the last row."""
    missing: float = 0.0
    """Share of runs that are not there."""
    diverging: float = 0.0
    """Share of runs that diverge."""


SCENARIOS = (
    Scenario("equal spread"),
    Scenario("one 3 times as noisy", noisy=3),
    Scenario("one 8 times as noisy", noisy=8),
    Scenario("20% of runs missing", missing=0.2),
    Scenario("30% of runs diverging", diverging=0.3),
)


@dataclass(frozen=True)
class Rate:
    """How often something happened."""

    what: str
    scenario: str
    n: int
    hits: int
    draws: int

    @property
    def rate(self) -> float:
        return self.hits / self.draws

    @property
    def error(self) -> float:
        """Monte-Carlo standard error, were the rate 5% or what it is."""
        likely = max(self.rate, 0.05)
        return sqrt(likely * (1 - likely) / self.draws)


def _missed(parts: Sequence[tuple[float, Any]], documents: Sequence[Any] = ()) -> bool:
    """Whether the 95% interval of a weighted sum of means, over documents too if these are given, misses 0."""
    estimate = contrast(parts, documents)
    assert estimate and bool(estimate.documents) is bool(documents)
    low, high = estimate.interval()
    return not low <= 0 <= high


def misses(scenario: Scenario, n: int, draws: int, rng: np.random.Generator) -> Rate:
    """95% intervals of a difference between the noisy cell and a steady one that miss it."""
    hits = built = 0
    while built < draws:
        cells = [_scores(1.0, n, scenario, rng), _scores(scenario.noisy, n, scenario, rng)]
        summaries = [summarise(scores) for scores in cells if len(scores) > 1]
        if len(summaries) < 2:
            continue
        built, hits = built + 1, hits + _missed([(1.0, summaries[0]), (-1.0, summaries[1])])
    return Rate("a claim's 95% interval misses", scenario.name, n, hits, draws)


def _scores(sd: float, n: int, scenario: Scenario, rng: np.random.Generator) -> list[float]:
    lost = scenario.missing + scenario.diverging
    return [float(x) for x in rng.normal(0, sd, n) if rng.random() >= lost]


def misses_of_unequal(noisier: float, n: tuple[int, int], draws: int, rng: np.random.Generator) -> Rate:
    """95% intervals of a difference that miss it, where the noisier cell has fewer seeds."""
    hits = 0
    for _ in range(draws):
        few, many = (summarise(rng.normal(0, sd, k).tolist()) for sd, k in zip((noisier, 1.0), n, strict=True))
        hits += _missed([(1.0, few), (-1.0, many)])
    return Rate(f"95% interval misses, {n[0]} against {n[1]} seeds", f"{noisier:g} times as noisy", n[0], hits, draws)


def misses_of_tuned(trials: int, n: int, draws: int, rng: np.random.Generator, *, range_end: float = 10.0) -> Rate:
    """95% intervals of the difference of two equal cells that miss it, each at the best of some noisy trials.

    Both try the same settings, as the random sampler draws them. The loss rises with the square of the distance from
    the best setting, to `range_end` standard deviations over seeds at the ends of the range.
    """
    hits = 0
    for _ in range(draws):
        loss = range_end * rng.uniform(-1, 1, trials) ** 2
        winners = [loss[np.argmin(loss + rng.normal(size=trials))] for _ in range(2)]
        first, other = (summarise(rng.normal(winner, 1.0, n).tolist()) for winner in winners)
        hits += _missed([(1.0, first), (-1.0, other)])
    return Rate("interval of equal tuned cells misses*", f"{trials} trials", n, hits, draws)


@dataclass(frozen=True)
class Scatter:
    """How six cells scatter of which two are compared."""

    name: str
    sd: str = "equal"
    shared: float = 0.0
    """Correlation of cells that have a seed in common."""

    def drawn(self, n: int, effect: float, rng: np.random.Generator) -> Any:
        """Scores (6, n), the first cell better by `effect`."""
        sds = {
            "equal": np.ones(6),
            "lognormal": np.exp(rng.normal(0, 0.5, 6)),
            "half": np.repeat([5.0, 1.0], 3)[rng.permutation(6)],
            "3 times": np.array([3.0, 1, 1, 1, 1, 1]),
            "8 times": np.array([8.0, 1, 1, 1, 1, 1]),
        }[self.sd]
        noise = sqrt(self.shared) * rng.normal(size=n) + sqrt(1 - self.shared) * rng.normal(size=(6, n))
        return 30 + sds[:, None] * noise + effect * np.eye(6)[0][:, None]


SCATTERS = (
    Scatter("equal spreads"),
    Scatter("seeds correlate by 0.6", shared=0.6),
    Scatter("lognormal spreads", "lognormal"),
    Scatter("half 5 times as noisy", "half"),
    Scatter("the better one 3 times", "3 times"),
    Scatter("the better one 8 times", "8 times"),
)


def held(
    pairs: Literal["seed"] | None, scatter: Scatter, effect: float, n: int, draws: int, rng: np.random.Generator
) -> Rate:
    """Claims that one cell is better than another, with four more in the table, that hold."""
    records = [record for record in _table()[0] if record.spec.task == "translation"]
    first, other = (record.spec.words for record in records[:2])
    assert first["position"] == other["position"] == "none" != records[2].spec.words["position"]
    sides = [{"kernel": words["kernel"]} for words in (first, other)]
    compared = Contrast.model_validate(
        {"where": {"position": "none"}, "a": sides[0], "b": sides[1], "expect": "better"}
    )
    claim = Claim(id="c", statement="It is better.", holds=Rule(all=(compared,)), pairs=pairs)
    grid = {"tables": [], "axes": []}
    hits = 0
    for _ in range(draws):
        scores = scatter.drawn(n, effect, rng)
        runs = [_completed(record, 1000 * i + k, k, scores[i, k]) for i, record in enumerate(records) for k in range(n)]
        (answer,) = answers([claim], [SweepRecord(1, "t", 0.0, 0.0, grid, tuple(records), tuple(runs))])
        hits += answer.settings[0].verdict is Verdict.HOLDS
    how = "paired by seed" if pairs else "own spreads"
    what = f"better, {how}: " + (f"{effect:g} sd" if effect else "holds, though equal")
    return Rate(what, scatter.name, n, hits, draws)


@dataclass(frozen=True)
class Spread:
    """How much the scores of two cells scatter, in units of the same size; each is tested on the same documents."""

    name: str
    seeds: float
    documents: float
    """Of the difference between the cells; the documents move both alike by twice as much."""
    both: float
    """Of one seed in one document."""
    number: int = 100
    """Of documents."""
    unequal: float = 0.0
    """Standard deviation of the logarithm of their sizes."""


SPREADS = (
    Spread("seeds and documents", 1, 1, 1),
    Spread("seeds, documents 3 times", 1, 3, 1),
    Spread("documents, seeds 3 times", 3, 1, 1),
    Spread("documents alone", 0, 1, 0),
    Spread("seeds alone", 1, 0, 0.01),
    Spread("their interaction alone", 0, 0, 1),
    Spread("20 documents", 1, 1, 1, 20),
    Spread("60 unequal documents", 1, 1, 1, 60, 1.0),
    Spread("60 unequal documents alone", 0, 1, 0, 60, 1.0),
)


def misses_over_documents(spread: Spread, n: int, draws: int, rng: np.random.Generator, *, cells: int = 2) -> Rate:
    """95% intervals, over seeds and documents, of a mean or of the difference of two, that miss it."""
    hits = 0
    sign = (1.0, -1.0)[:cells]
    for _ in range(draws):
        targets = 1000 * np.exp(rng.normal(0, spread.unequal, spread.number))
        common = 2 * rng.normal(0, spread.documents, spread.number) * (cells - 1)
        parts, documents = [], []
        for weight in sign:
            own = common + rng.normal(0, spread.documents, spread.number)
            inner = own + rng.normal(0, spread.both, (n, spread.number))
            scores = rng.normal(0, spread.seeds, (n, 1)) / sqrt(spread.number) + inner
            sums = scores * targets
            summary = summarise([float(each) for each in sums.sum(1) / targets.sum()])
            parts.append((weight, summary))
            documents.append(by_document("block", targets.tolist(), sums.tolist()))
        hits += _missed(parts, documents)
    what = "a difference's" if cells == 2 else "a mean's"
    return Rate(f"{what} interval over documents misses", spread.name, n, hits, draws)


def marks(scenario: Scenario, n: int, draws: int, rng: np.random.Generator) -> Iterator[Rate]:
    """Cells of a table of six rows and two tasks, all equal, that are told to be worse than the best."""
    records, rows = _table()
    first = anyone = 0
    for _ in range(draws):
        runs = []
        for index, record in enumerate(records):
            sd = scenario.noisy if index % 6 == 5 else 1.0
            runs += _runs(record, index, 30.0, sd, n, scenario, rng)
        (built,) = tables(SweepRecord(1, "t", 0.0, 0.0, {"tables": rows, "axes": []}, tuple(records), tuple(runs)))
        worse = [
            cell.compared is not None and built.marks.get(at) not in (Mark.BEST, Mark.NOT_DISTINGUISHABLE)
            for at, cell in built.layout.places.items()
            if any(mark is Mark.BEST and other[1] == at[1] for other, mark in built.marks.items())
        ]
        # Each is as good as the best; whichever is taken for it beforehand, it must not be told to be worse.
        first += sum(worse)
        anyone += any(worse)
    # Six cells in each of two columns.
    yield Rate("the marked cells of a column lack its best", scenario.name, n, round(first / 12), draws)
    yield Rate("some of 12 equal cells is not marked*", scenario.name, n, anyone, draws)


@cache
def _table() -> tuple[list[CellRecord], list[dict[str, Any]]]:
    grid = load_grid("quickstart")
    cells = sorted(grid.cells, key=lambda cell: cell.spec.task)
    records = [CellRecord(cell.id, index, cell.labels, ResolvedSpec.of(cell.spec)) for index, cell in enumerate(cells)]
    return records, [{"name": "t", "rows": ["approach", "kernel"], "columns": ["task"]}]


def verdicts(
    scenario: Scenario, n: int, draws: int, rng: np.random.Generator, *, published: bool = False, sd: float = 1.0
) -> Mapping[str, Mapping[Verdict, int]]:
    """Claim → verdict → draws that give it, of runs with equal means, or with the paper's.

    Args:
        sd: times `SD`.
    """
    records, values = _paper()
    counts: dict[str, dict[str, dict[Verdict, int]]] = {}
    for _ in range(draws):
        runs = []
        for index, (record, value) in enumerate(zip(records, values, strict=True)):
            task = record.spec.task
            mean = value if published else BLEU if task == "translation" else PERPLEXITY
            spread = sd * SD[task] * (scenario.noisy if record.spec.word("kernel") == "polynomial" else 1.0)
            runs += _runs(record, index, mean, spread, n, scenario, rng)
        sweep = SweepRecord(1, "t", 0.0, 0.0, {"tables": [], "axes": []}, tuple(records), tuple(runs))
        for answer in answers(load_paper_once().claims, [sweep]):
            own = counts.setdefault(answer.claim.id, {})
            for setting in answer.settings:
                own.setdefault(setting.setting.get("task", ""), dict.fromkeys(Verdict, 0))[setting.verdict] += 1
    # Of the two tasks, that in which it errs more often, or on which it holds less often.
    return {
        claim: {verdict: (min if published else max)(task[verdict] for task in tasks.values()) for verdict in Verdict}
        for claim, tasks in counts.items()
    }


@cache
def load_paper_once() -> Any:
    return load_paper("tsai2019")


@cache
def _paper() -> tuple[list[CellRecord], list[float]]:
    """The cells of the four tables, each with its published value."""
    cells = {cell.id: cell for grid in GRIDS for cell in load_grid(grid).cells}
    paper = load_paper_once()
    records, values = [], []
    for index, cell in enumerate(cells.values()):
        spec = ResolvedSpec.of(cell.spec)
        met = [
            each.value for table in paper.tables for each in table.cells if spec.matches({**table.where, **each.where})
        ]
        number = next((float(value) for value in met if value != "not converge"), None)
        records.append(CellRecord(cell.id, index, cell.labels, spec))
        values.append(number if number is not None else (5.0 if spec.task == "translation" else 300.0))
    return records, values


def _runs(
    record: CellRecord, index: int, mean: float, sd: float, n: int, scenario: Scenario, rng: np.random.Generator
) -> list[RunRecord]:
    runs = []
    for seed in range(n):
        score = float(rng.normal(mean, sd))
        if rng.random() < scenario.missing:
            continue
        state = RunState.DIVERGED if rng.random() < scenario.diverging else RunState.COMPLETED
        known = None if state is RunState.DIVERGED else max(score, 1.01)
        runs.append(_completed(record, 1000 * index + seed, seed, known, state))
    return runs


def _completed(
    record: CellRecord, id: int, seed: int, score: float | None, state: RunState = RunState.COMPLETED
) -> RunRecord:
    score = None if score is None else float(score)
    return RunRecord(id, record.id, seed, 0, state, 1, None, None, 1, 0, score, 1, score, None, 1.0)


def table(draws: int, seed: int = 0) -> Iterator[Rate]:
    """Every rate of an error."""
    rng = np.random.default_rng(seed)
    for spread in SPREADS:
        for n in SEEDS:
            for cells in (1, 2):
                yield misses_over_documents(spread, n, 10 * draws, rng, cells=cells)
    for noisier in (1 / 3, 1.0, 3.0, 8.0):
        for few, many in ((2, 3), (2, 5), (2, 12), (3, 5), (3, 12)):
            yield misses_of_unequal(noisier, (few, many), 20 * draws, rng)
    for trials in (5, 10, 20):
        for n in SEEDS[1:]:
            yield misses_of_tuned(trials, n, 5 * draws, rng)
    for pairs in (None, "seed"):
        for scatter in SCATTERS:
            for n in SEEDS[:3]:
                yield held(pairs, scatter, 0.0, n, draws, rng)
    claims: list[Claim] = list(load_paper_once().claims)
    for scenario in SCENARIOS:
        for n in SEEDS:
            yield misses(scenario, n, 20 * draws, rng)
            yield from marks(scenario, n, draws, rng)
            result = verdicts(scenario, n, draws, rng)
            for claim in claims:
                if _asks_for_better(claim.holds):
                    hits = result[claim.id][Verdict.HOLDS]
                    yield Rate(f"{claim.id} holds, though all is equal", scenario.name, n, hits, draws)
                else:
                    hits = result[claim.id][Verdict.DOES_NOT_HOLD]
                    yield Rate(f"{claim.id} does not hold, though all is equal", scenario.name, n, hits, draws)


def power(draws: int, seed: int = 0) -> Iterator[Rate]:
    """How often each claim holds on the paper's own values, and at wider spreads."""
    rng = np.random.default_rng(seed)
    for pairs in (None, "seed"):
        for scatter in SCATTERS[:2]:
            for n in SEEDS[:3]:
                for effect in (1.0, 2.0, 3.0):
                    yield held(pairs, scatter, effect, n, draws, rng)
    for sd, spread in ((1.0, "sd 0.15 BLEU, 0.08 perplexity"), (5 / 3, "sd 0.25 BLEU, 0.13 perplexity")):
        for n in SEEDS:
            for claim, values in verdicts(SCENARIOS[0], n, draws, rng, published=True, sd=sd).items():
                yield Rate(f"{claim} holds on the paper's values", spread, n, values[Verdict.HOLDS], draws)


def _asks_for_better(rule: Rule) -> bool:
    return all(part.expect == "better" if isinstance(part, Contrast) else _asks_for_better(part) for part in rule.parts)


def printed(rates: Iterator[Rate]) -> Iterator[str]:
    """A line for each thing and scenario, its rates at each number of seeds beside each other."""
    rows: dict[tuple[str, str], list[Rate]] = {}
    for rate in rates:
        rows.setdefault((rate.what, rate.scenario), []).append(rate)
    yield f"{'':58} {'':32} " + "  ".join(f"{f'n = {n}':>13}" for n in SEEDS)
    for (what, scenario), values in sorted(rows.items(), key=lambda entry: entry[0][0]):
        rates = {it.n: f"{100 * it.rate:5.1f} ± {100 * it.error:3.1f}%" for it in values}
        yield f"{what:58} {scenario:32} " + "  ".join(f"{rates.get(n, ''):>13}" for n in SEEDS).rstrip()


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    drawn_from = int(os.environ.get("SEED", np.random.SeedSequence().entropy % 2**32))  # type: ignore[operator]
    print(f"SEED={drawn_from}, {many} draws")
    for line in printed(table(many, drawn_from)):
        print(line, flush=True)
    print()
    for line in printed(power(max(200, many // 4), drawn_from)):
        print(line, flush=True)
    print("* said beside it; a mark promises the line below: whichever is the best cell, it is marked (Hsu 1984).")
