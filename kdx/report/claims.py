"""Does a claim hold in the runs at hand?

A contrast compares two sets of cells that agree in everything it does not name. Where other factors vary too (say, the
kernel), each side is averaged over them, choice by choice. Means are compared within seeds, with one residual variance
for all cells at hand of the same setting, that is task, data, size and training (`SeedModel`): whether the claim speaks
of them or not, they tell how far seeds scatter. Where a side diverges, the
divergence rates are compared first: a cell that does not converge is worse than one that does. While too few runs tell
the rates apart, the scores of those that completed decide nothing in favour of the side that diverged more often.

Each contrast holds, does not hold, or cannot be told:

    better       holds: the whole 95% interval is above the margin (0 if none is given). Does not: all of it is below.
    no-worse     holds: the 90% interval is above −margin. Does not: the whole 95% interval is below −margin.
    equivalent   holds: the 90% interval is within ±margin (TOST). Does not: the 95% interval is wholly outside.

`all` holds if every part does and fails if any part does, each at its own 5%; `any` the other way round, and shares its
5% out among its parts (Bonferroni), since a claim that has several chances is right more often by luck.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from kdx.grid.where import choice, factors, matches
from kdx.report.cells import Cell, Metric, cell_of
from kdx.report.comparisons import Pool, pool
from kdx.report.papers import Claim, Contrast, Expect, Rule
from kdx.report.statistics import LEVEL, Estimate, rate_difference
from kdx.store.records import CellRecord, RunRecord, SweepRecord

# What a factor decides about other fields: naming it names them, unless the contrast names them itself.
_FOLLOWS: dict[str, frozenset[str]] = {
    "position": frozenset(
        {
            *("placement", "value", "inject", "encoding", "sinusoids"),
            *("clip", "sharing", "xl_bias", "position_dropout"),
            # A direct sum at the input goes with none.
            *("memory", "evaluation.memory"),
        }
    ),
    "value": frozenset({"encoding", "sinusoids", "clip", "sharing"}),
    "inject": frozenset({"value"}),
    "symmetry": frozenset({"xl_bias"}),
    "mixer": frozenset({"neighbours"}),
    "model.width": frozenset({"model.inner", "model.heads"}),
    "filter.encoder-self": frozenset({"stride", "summary"}),
    "filter.encoder-decoder": frozenset({"stride", "summary"}),
    "filter.decoder-self": frozenset({"stride", "summary"}),
}
_SETTING = ("task", "data.", "model.", "training.", "evaluation.")
TOLD = ("task", "data.corpus", "model.width", "training.steps")
"""What is told of a setting."""
_SURVIVORS = (
    "one side diverged more often, and the scores of what completed speak for it; more runs have to tell the rates"
)
_MOST_RUNS = 1000
_FEWEST_RUNS = 3
"""On each side, before divergence rates decide: of two runs that diverge against two that do not, Newcombe's interval
is so narrow that it misses 0 in up to 12% of the cases though the rates are equal; from three on in 9% at the worst."""


class Verdict(StrEnum):
    """What the runs say of a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Outcome:
    """A contrast in one setting: the same task, data, size and training."""

    contrast: Contrast
    verdict: Verdict
    setting: Mapping[str, str]
    """Factor → word, of `TOLD`; empty where there are no such cells."""
    level: float
    """Of the interval, above 0.95 where the claim has several chances."""
    metric: Metric | None = None
    a: tuple[str, ...] = ()
    """Ids of the cells of side a, and of b below."""
    b: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    """Factors that the contrast is averaged over."""
    also: tuple[str, ...] = ()
    """Factors in which all of a differ from all of b though the contrast does not speak of them."""
    estimate: Estimate | None = None
    """a over b, as what is gained: positive is better. None where no seeds tell it."""
    n: int = 0
    """Seeds with a score on both sides."""
    diverged: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that diverged."""
    pooled: int = 0
    """Cells that the error is pooled over."""
    unequal: float | None = None
    """p-value of Bartlett's test that they spread alike."""
    ended: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that completed or diverged."""
    rates: tuple[float, float] | None = None
    """Interval of b's divergence rate minus a's, where either diverged."""
    more: int | None = None
    """More seeds that would tell with probability 0.8, if the difference stays; None: no number in sight, or told."""
    reason: str = ""
    """Why it cannot be told, such as `no such cells`; empty where the intervals say so."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the estimate, at `level`."""
        return self.estimate.interval(self.level) if self.estimate else None


@dataclass(frozen=True)
class Answer:
    """A claim, and what the runs say of it."""

    claim: Claim
    verdict: Verdict
    outcomes: tuple[Outcome, ...]

    @property
    def more(self) -> int | None:
        """More seeds that would decide whatever could not be told, as far as seeds can."""
        wanted = [one.more for one in self.outcomes if one.verdict is Verdict.CANNOT_TELL]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None


def answer(claim: Claim, sweeps: Sequence[SweepRecord]) -> Answer:
    """Decide `claim` from all runs of these sweeps; a cell that several have counts once."""
    runs = _Runs(sweeps)
    comparisons = {id(contrast): tuple(_comparisons(contrast, runs)) for contrast in _contrasts(claim.holds)}
    pools: dict[tuple[str, Metric], Pool] = {}
    for one in (one for those in comparisons.values() for one in those):
        if one.group not in pools:
            pools[one.group] = pool((*one.a, *one.b, *one.pooled), one.words.get("task", ""))
    outcomes: list[Outcome] = []

    def decided(part: Rule | Contrast, level: float) -> Verdict:
        if isinstance(part, Rule):
            inner = 1 - (1 - level) / len(part.of) if part.any else level
            return _together([decided(one, inner) for one in part.of], any=part.any)
        found = [_outcome(one, pools[one.group], level) for one in comparisons[id(part)]]
        found = found or [Outcome(part, Verdict.CANNOT_TELL, {}, level, reason="no such cells")]
        outcomes.extend(found)
        return _together([one.verdict for one in found], any=False)

    verdict = decided(claim.holds, LEVEL)
    return Answer(claim, verdict, tuple(outcomes))


class _Runs:
    """Cells of all sweeps, each once, with the runs of all."""

    def __init__(self, sweeps: Sequence[SweepRecord]) -> None:
        self.records = {cell.id: cell for sweep in sweeps for cell in sweep.cells}
        self.words = {
            id: {factor: choice(record.spec, factor) for factor in factors()} for id, record in self.records.items()
        }
        self._cells: dict[tuple[str, str | None], Cell | None] = {}
        self._metrics: dict[int, Mapping[str, float]] = {}
        self._runs: dict[str, dict[int, RunRecord]] = {}
        for sweep in sweeps:
            self._metrics |= sweep.metrics
            for run in sweep.runs:
                self._runs.setdefault(run.cell_id, {})[run.id] = run

    def cell(self, record: CellRecord, metric: str | None) -> Cell | None:
        key = record.id, metric
        if key not in self._cells:
            runs = list(self._runs.get(record.id, {}).values())
            self._cells[key] = cell_of(record, runs, self._metrics, metric=metric)
        return self._cells[key]


@dataclass(frozen=True)
class _Comparison:
    """A contrast's cells in one setting, in pairs of sides that agree in everything that is not named."""

    contrast: Contrast
    setting: str
    words: Mapping[str, str]
    over: tuple[str, ...]
    also: tuple[str, ...]
    sides: tuple[tuple[tuple[Cell, ...], tuple[Cell, ...]], ...]
    pooled: tuple[Cell, ...]
    """Every cell of the setting that has scores of the metric."""

    @property
    def a(self) -> tuple[Cell, ...]:
        return tuple(cell for side, _ in self.sides for cell in side)

    @property
    def b(self) -> tuple[Cell, ...]:
        return tuple(cell for _, side in self.sides for cell in side)

    @property
    def group(self) -> tuple[str, Metric]:
        """Cells of one group share their error."""
        return self.setting, self.a[0].metric

    @property
    def weights(self) -> dict[str, float]:
        """Cell id → weight, such that the sum is what a gains over b."""
        found: dict[str, float] = {}
        sign = self.a[0].metric.gain(1.0) / len(self.sides)
        for pair in self.sides:
            for side, direction in zip(pair, (sign, -sign), strict=True):
                for cell in side:
                    found[cell.id] = found.get(cell.id, 0.0) + direction / len(side)
        return found


def following(named: Iterable[str]) -> frozenset[str]:
    """Factors that these decide, or at least limit."""
    return frozenset[str]().union(*(_FOLLOWS.get(factor, frozenset()) for factor in named))


def _contrasts(rule: Rule) -> Iterator[Contrast]:
    for part in rule.of:
        if isinstance(part, Rule):
            yield from _contrasts(part)
        else:
            yield part


def _comparisons(contrast: Contrast, runs: _Runs) -> Iterator[_Comparison]:
    """One for each setting that has both sides."""
    named = contrast.a.keys() | contrast.b.keys()
    follows = following(named) - named
    settings: dict[str, dict[str, tuple[list[CellRecord], list[CellRecord]]]] = {}
    alike: dict[str, list[CellRecord]] = {}
    for record in runs.records.values():
        rest = {one: word for one, word in runs.words[record.id].items() if one not in named | follows}
        recipe = {one: word for one, word in rest.items() if one.startswith(_SETTING)}
        # What a cell was selected by decides what its score is, but is no factor.
        setting = json.dumps([recipe, record.spec["select"]])
        alike.setdefault(setting, []).append(record)
        if not matches(contrast.where, record.spec):
            continue
        background = json.dumps({one: word for one, word in rest.items() if not one.startswith(_SETTING)})
        for index, side in enumerate((contrast.a, contrast.b)):
            if matches(side, record.spec):
                settings.setdefault(setting, {}).setdefault(background, ([], []))[index].append(record)
    for setting, by_background in settings.items():
        sides = []
        used: tuple[list[CellRecord], list[CellRecord]] = ([], [])
        for halves in by_background.values():
            cells = [[(one, runs.cell(one, contrast.metric)) for one in half] for half in halves]
            told = [[(one, cell) for one, cell in half if cell and (cell.scores or cell.diverged)] for half in cells]
            if all(told):
                sides.append((tuple(cell for _, cell in told[0]), tuple(cell for _, cell in told[1])))
                for records, half in zip(used, told, strict=True):
                    records.extend(one for one, _ in half)
        if sides:
            spec = used[0][0].spec
            words = {one: choice(spec, one) or "none" for one in TOLD if one not in named}
            over, also = _unspoken(used, named, follows)
            at_hand = (runs.cell(one, contrast.metric) for one in alike[setting])
            metric = sides[0][0][0].metric
            pooled = tuple(cell for cell in at_hand if cell and cell.scores and cell.metric == metric)
            yield _Comparison(contrast, setting, words, over, also, tuple(sides), pooled)


def _unspoken(
    sides: tuple[Sequence[CellRecord], Sequence[CellRecord]], named: Iterable[str], follows: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Factors that the contrast does not name: those that vary, and those in which the sides differ.

    What only one side has, such as an encoding, is no difference.
    """
    over, also = [], []
    for factor in factors():
        a, b = ({_word(record, factor) for record in side} for side in sides)
        if factor in named:
            continue
        if factor not in follows:
            over += [factor] if len(a | b) > 1 else []
        elif len(a) > 1 or len(b) > 1:
            over.append(factor)
        elif a != b and "none" not in a | b:
            also.append(factor)
    return tuple(over), tuple(also)


def _word(record: CellRecord, factor: str) -> str | None:
    # A spec names sinusoids even where nothing uses them.
    unused = factor == "sinusoids" and record.spec["encoding"] != "sinusoidal"
    return "none" if unused else choice(record.spec, factor)


def _outcome(one: _Comparison, shared: Pool, level: float) -> Outcome:
    seeds = [{seed for cell in side for seed in cell.scores} for side in (one.a, one.b)]
    n = len(seeds[0] & seeds[1])
    diverged = (sum(cell.diverged for cell in one.a), sum(cell.diverged for cell in one.b))
    ended = (
        diverged[0] + sum(cell.completed for cell in one.a),
        diverged[1] + sum(cell.completed for cell in one.b),
    )
    estimate = shared.model.contrast(one.weights) if shared.model else None
    rates = rate_difference(diverged[::-1], ended[::-1], level) if any(diverged) else None
    verdict = _by_rates(one.contrast, rates, ended)
    contrary = verdict is None and estimate is not None and _contrary(one.contrast, estimate, diverged, ended)
    if verdict is None and estimate and not contrary:
        verdict = _by_scores(one.contrast, estimate, level)
    more = None
    if verdict is None and estimate and not contrary:
        more = _more_scores(one.contrast, estimate, n, level)
    elif verdict is None:
        more = _more_rates(one.contrast, diverged, ended, level) if rates else max(1, 2 - n)
    return Outcome(
        contrast=one.contrast,
        verdict=verdict or Verdict.CANNOT_TELL,
        setting=one.words,
        level=level,
        metric=one.a[0].metric,
        a=tuple(cell.id for cell in one.a),
        b=tuple(cell.id for cell in one.b),
        over=one.over,
        also=one.also,
        estimate=estimate,
        n=n,
        diverged=diverged,
        pooled=shared.cells,
        unequal=shared.unequal,
        ended=ended,
        rates=rates,
        more=more,
        reason=_SURVIVORS if contrary else "" if estimate or rates else "too few seeds in common",
    )


def _by_rates(contrast: Contrast, rates: tuple[float, float] | None, ended: tuple[int, int]) -> Verdict | None:
    """What divergence alone decides: a diverges less than b, or more; None when it does not."""
    if rates is None or min(ended) < _FEWEST_RUNS or rates[0] <= 0 <= rates[1]:
        return None
    good = rates[0] > 0 and contrast.expect is not Expect.EQUIVALENT
    return Verdict.HOLDS if good else Verdict.DOES_NOT_HOLD


def _contrary(contrast: Contrast, estimate: Estimate, diverged: tuple[int, int], ended: tuple[int, int]) -> bool:
    """Whether runs that diverged point the other way than the scores of those that did not."""
    # Rates as wholes, so that equal ones are equal.
    a, b = diverged[0] * ended[1], diverged[1] * ended[0]
    margin = contrast.margin or 0.0
    if contrast.expect is Expect.EQUIVALENT and abs(estimate.value) < margin:
        return a != b
    return a > b if estimate.value > (-margin if contrast.expect is Expect.NO_WORSE else margin) else a < b


def _regions(contrast: Contrast, level: float) -> tuple[tuple[Verdict, float, float, float], ...]:
    """What is decided where the whole interval lies between two bounds; at the end, the level of that interval.

    A bound that is tested on one side alone takes the interval whose end leaves out as much as both ends do of `level`.
    """
    margin, one_sided = contrast.margin or 0.0, 1 - 2 * (1 - level)
    return {
        Expect.BETTER: (
            (Verdict.HOLDS, margin, inf, level),
            (Verdict.DOES_NOT_HOLD, -inf, margin, level),
        ),
        Expect.NO_WORSE: (
            (Verdict.HOLDS, -margin, inf, one_sided),
            (Verdict.DOES_NOT_HOLD, -inf, -margin, level),
        ),
        Expect.EQUIVALENT: (
            (Verdict.HOLDS, -margin, margin, one_sided),
            (Verdict.DOES_NOT_HOLD, margin, inf, level),
            (Verdict.DOES_NOT_HOLD, -inf, -margin, level),
        ),
    }[contrast.expect]


def _by_scores(contrast: Contrast, estimate: Estimate, level: float) -> Verdict | None:
    for verdict, low, high, at in _regions(contrast, level):
        below, above = estimate.interval(at)
        if low < below and above < high:
            return verdict
    return None


def _more_scores(contrast: Contrast, estimate: Estimate, n: int, level: float) -> int | None:
    """Seeds to add so that the interval lies where something is decided, if the difference stays what it is."""
    # Cells that share no seed, but are joined by others, count as if they shared one.
    needed = [estimate.seeds_to_show(low, high, max(n, 1), at) for _, low, high, at in _regions(contrast, level)]
    known = [seeds for seeds in needed if seeds is not None]
    return min(known) - n if known else None


def _more_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], level: float) -> int | None:
    """Runs to add on each side so that the rates are told apart, if they stay what they are."""
    for more in range(1, _MOST_RUNS):
        of = (ended[0] + more, ended[1] + more)
        hits = tuple(round(k / n * m) for k, n, m in zip(diverged, ended, of, strict=True))
        if _by_rates(contrast, rate_difference((hits[1], hits[0]), of[::-1], level), of):
            return more
    return None


def _together(parts: Sequence[Verdict], *, any: bool) -> Verdict:
    decisive, other = (Verdict.HOLDS, Verdict.DOES_NOT_HOLD) if any else (Verdict.DOES_NOT_HOLD, Verdict.HOLDS)
    if decisive in parts:
        return decisive
    return other if all(part is other for part in parts) else Verdict.CANNOT_TELL
