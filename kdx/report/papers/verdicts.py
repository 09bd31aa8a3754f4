"""Decides whether a claim holds in the recorded runs.

A contrast compares two sets of cells that agree in everything it does not name (`contrasted_cells`). Where other
factors vary too (say, the kernel), each side is averaged over them, choice by choice. Means are compared with the
spreads of the very cells (`kdx.report.statistics.estimates.contrast`), perplexities by their logarithm. In each
setting, that is task, data, size and training, a contrast holds, does not hold, or cannot be decided; a smoke run says
nothing about the paper's scale.

    better       holds if the whole interval is above the margin (0 if none is given); does not if it is wholly below.
    no-worse     holds if the lower end is above −margin; does not if the whole interval is below −margin.
    equivalent   holds if the interval is within ±margin (TOST); does not if it is wholly outside.

Each interval but the last is used at one end only, so a verdict that may be false with 5% takes a 90% interval. The
interval that is shown is the one that decides; where none does, the widest of those that could have.

Where a side diverges, the divergence rates are compared first: a cell that diverges is worse than one that does
not. While there are too few runs to distinguish the rates, the scores of completed runs decide nothing in favour of
the side that diverged more often.

A false "holds" and a false "does not hold" of a claim each have a probability of at most 5%. The parts that could each
cause the error share it (Bonferroni): parts of `any` share the 5% of "holds", parts of `all` the 5% of "does not hold".
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import NamedTuple

from kdx.grid.cell_selector import same_word
from kdx.report.papers.contrasted_cells import (
    ContrastedCells,
    RecordedRuns,
    contrasted_cells,
    distinguished,
    following,
    kept_apart,
)
from kdx.report.papers.paper_file import Claim, Contrast, Expect, Rule
from kdx.report.statistics.estimates import LEVEL, Estimate
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.rates import p_rates, rate_difference
from kdx.store.records import SweepRecord

NO_CELLS = "no such cells"
_SURVIVORS = (
    "one side diverged more often, but its completed runs have better scores; more runs have to tell rates apart"
)
_MOST_RUNS = 1000


class Verdict(StrEnum):
    """What the runs say of a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_TESTED = "not tested"
    """There are no such runs."""


class Errors(NamedTuple):
    """The allowed probability of each verdict being false."""

    holds: float
    does_not_hold: float


_DECIDED = (Verdict.HOLDS, Verdict.DOES_NOT_HOLD)
_WHOLE = Errors(1 - LEVEL, 1 - LEVEL)


@dataclass(frozen=True)
class ContrastOutcome:
    """A contrast in one setting."""

    contrast: Contrast
    verdict: Verdict
    errors: Errors
    cells: ContrastedCells | None = None
    """None where a side has no cell."""
    level: float = LEVEL
    """The confidence level of `interval`."""
    more: int | None = None
    """Number of further seeds that would decide with probability 0.8, if the difference stays; None if no number would,
    or if the contrast is decided."""
    toward: Verdict | None = None
    """What they would decide; None if `more` is, or if the seeds allow no estimate yet."""
    reason: str = ""
    """Why the contrast cannot be decided, such as `no such cells`; empty where the intervals show it."""

    @property
    def metric(self) -> Metric | None:
        """The metric of its cells; None where there are none."""
        return self.cells.metric if self.cells else None

    @property
    def estimate(self) -> Estimate | None:
        """The gain of a over b: positive is better; for perplexities in nats. None where the seeds allow no
        estimate."""
        return self.cells.estimate if self.cells else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence interval of the estimate that decides."""
        return self.estimate.interval(self.level) if self.estimate else None

    @property
    def rates(self) -> tuple[float, float] | None:
        """95% interval of b's divergence rate minus a's, where either diverged."""
        if self.cells is None or not any(self.cells.diverged):
            return None
        return rate_difference(self.cells.diverged[::-1], self.cells.ended[::-1])

    def after(self, seeds: int, guess: Verdict) -> Verdict:
        """The verdict to expect after so many further seeds; `guess` where the direction is unknown."""
        return (self.toward or guess) if self.more is not None and self.more <= seeds else self.verdict


@dataclass(frozen=True)
class SettingVerdict:
    """What the runs of one setting say of a claim."""

    setting: Mapping[str, str]
    """Factor → word, of `contrasted_cells.SHOWN_FACTORS` and what distinguishes it from others that are alike in these;
    empty where no setting has cells for any of its contrasts."""
    verdict: Verdict
    outcomes: tuple[ContrastOutcome, ...]
    deciding: tuple[ContrastOutcome, ...] = ()
    """Those that make the rule of the claim hold, or not hold; empty where it cannot be told."""
    more: int | None = None
    """Number of further seeds that would decide the claim, if the differences stay; None if seeds alone cannot."""

    @property
    def confounders(self) -> tuple[str, ...]:
        """The confounders of the contrasts that decide the claim."""
        compared = (outcome.cells for outcome in self.deciding)
        return tuple(dict.fromkeys(factor for cells in compared if cells for factor in cells.confounders))

    def __str__(self) -> str:
        """The verdict with its confounders, such as `holds, confounded by memory`."""
        return f"{self.verdict}, confounded by {', '.join(self.confounders)}" if self.confounders else self.verdict


@dataclass(frozen=True)
class Answer:
    """A claim, and what the runs say of it in each setting."""

    claim: Claim
    settings: tuple[SettingVerdict, ...]

    @property
    def tested(self) -> tuple[SettingVerdict, ...]:
        """The settings that have cells for one of its contrasts."""
        return tuple(setting for setting in self.settings if setting.verdict is not Verdict.NOT_TESTED)


class _Part(NamedTuple):
    """A part of the rule of a claim in one setting."""

    after: Callable[[int, Verdict], Verdict]
    """As `ContrastOutcome.after`."""
    deciding: Callable[[], list[ContrastOutcome]]
    """Returns the contrasts that its verdict rests on."""

    @property
    def verdict(self) -> Verdict:
        return self.after(0, Verdict.CANNOT_TELL)


def answers(claims: Iterable[Claim], sweeps: Sequence[SweepRecord]) -> list[Answer]:
    """Decides each claim from all runs of these sweeps; a cell of several sweeps counts once."""
    runs = RecordedRuns(sweeps)
    all_cells = [_cells_of(claim, runs) for claim in claims]
    # All claims have the same words for a setting, as far as none of them varies what tells settings apart.
    varied = frozenset[str]().union(*(each.varied for each in all_cells))
    words = distinguished({key: words for each in all_cells for key, words in each.settings.items()}, without=varied)
    return [_answer(each, runs, distinguished({key: words[key] for key in each.settings})) for each in all_cells]


class _ClaimCells(NamedTuple):
    """The cells that a claim compares."""

    claim: Claim
    varied: frozenset[str]
    """The factors that some contrast varies, and that therefore define no setting."""
    cells: Mapping[int, Mapping[str, ContrastedCells]]
    """Contrast, by its `id` → setting → its cells there."""

    @property
    def settings(self) -> dict[str, Mapping[str, str]]:
        """Setting → its words."""
        return {key: compared.words for by_setting in self.cells.values() for key, compared in by_setting.items()}


def _cells_of(claim: Claim, runs: RecordedRuns) -> _ClaimCells:
    contrasts = [contrast for _, contrast in claim.holds.contrasts()]
    varied = frozenset[str]().union(*(contrast.factors | following(contrast.factors) for contrast in contrasts))
    paired = claim.pairs is not None
    cells = {id(contrast): contrasted_cells(contrast, runs, varied, paired=paired) for contrast in contrasts}
    return _ClaimCells(claim, varied, cells)


def _answer(compared_cells: _ClaimCells, runs: RecordedRuns, settings: Mapping[str, Mapping[str, str]]) -> Answer:
    """Decide a claim in its settings, key → words."""
    claim, cells = compared_cells.claim, compared_cells.cells
    contrasts = [contrast for _, contrast in claim.holds.contrasts()]
    reasons = {}
    for contrast in contrasts:
        apart = () if cells[id(contrast)] else kept_apart(contrast, runs)
        differ = f": the closest cells of both sides also differ in {', '.join(apart)}" if apart else ""
        reasons[id(contrast)] = f"{NO_CELLS}{differ}"

    def in_setting(key: str, words: Mapping[str, str]) -> SettingVerdict:
        outcomes: list[ContrastOutcome] = []

        def compare(part: Rule | Contrast, errors: Errors) -> _Part:
            if isinstance(part, Rule):
                parts = [inner for inner in part.parts if _speaks_of(inner, json.loads(key)[0])]
                holds, does_not = errors
                shared = Errors(holds / len(parts), does_not) if part.any else Errors(holds, does_not / len(parts))
                return _of_rule([compare(inner, shared) for inner in parts], any=bool(part.any))
            compared = cells[id(part)].get(key)
            outcome = decide(compared, errors) if compared else untested(part, errors)
            outcomes.append(outcome)
            return _Part(outcome.after, lambda: [outcome])

        whole = compare(claim.holds, _WHOLE)
        deciding = whole.deciding() if whole.verdict in _DECIDED else ()
        numbers = sorted({outcome.more for outcome in outcomes if outcome.more})
        enough = (more for more in numbers if all(whole.after(more, guess) in _DECIDED for guess in _DECIDED))
        return SettingVerdict(words, whole.verdict, tuple(outcomes), tuple(deciding), next(enough, None))

    def untested(contrast: Contrast, errors: Errors) -> ContrastOutcome:
        return ContrastOutcome(contrast, Verdict.NOT_TESTED, errors, reason=reasons[id(contrast)])

    if settings:
        return Answer(claim, tuple(in_setting(key, words) for key, words in settings.items()))
    nothing = tuple(untested(contrast, _WHOLE) for contrast in contrasts)
    return Answer(claim, (SettingVerdict({}, Verdict.NOT_TESTED, nothing),))


def _speaks_of(part: Rule | Contrast, recipe: Mapping[str, str]) -> bool:
    """Whether the part applies to a setting of this recipe: no cell of a contrast has another word for a factor of it.

    So a claim may name the lengths of one training after those of another.
    """
    if isinstance(part, Rule):
        return any(_speaks_of(inner, recipe) for inner in part.parts)
    selectors = (part.where, part.a, part.b)
    return all(
        factor not in recipe or same_word(recipe[factor], word)
        for selector in selectors
        for factor, word in selector.items()
    )


def _of_rule(parts: Sequence[_Part], *, any: bool) -> _Part:
    def after(seeds: int, guess: Verdict) -> Verdict:
        return _together([part.after(seeds, guess) for part in parts], any=any)

    def deciding() -> list[ContrastOutcome]:
        verdict = after(0, Verdict.CANNOT_TELL)
        return [outcome for part in parts if part.verdict is verdict for outcome in part.deciding()]

    return _Part(after, deciding)


def _together(parts: Sequence[Verdict], *, any: bool) -> Verdict:
    decisive = Verdict.HOLDS if any else Verdict.DOES_NOT_HOLD
    if decisive in parts:
        return decisive
    return parts[0] if len(set(parts)) == 1 else Verdict.CANNOT_TELL


def decide(cells: ContrastedCells, errors: Errors) -> ContrastOutcome:
    """Decide a contrast from its cells in one setting."""
    contrast, estimate = cells.contrast, cells.estimate
    diverged, ended = cells.diverged, cells.ended
    regions = _regions(contrast, cells.margin, errors)
    verdict = _by_rates(contrast, diverged, ended, errors) if any(diverged) else None
    contrary = verdict is None and estimate is not None and _contrary(cells, estimate)
    level = max(level for *_, level in regions)
    more: int | None = None
    toward: Verdict | None = None
    if verdict is None and estimate and not contrary:
        for possible, low, high, at in regions:
            below, above = estimate.interval(at)
            if low < below and above < high:
                verdict, level = possible, at
                break
        else:
            more, toward = _more_scores(regions, estimate, cells.n)
    elif verdict is None:
        if any(diverged):
            more, toward = _more_rates(contrast, diverged, ended, errors)
        if estimate is None and more is None and (cells.n or not any(diverged)):
            more = max(1, 2 - cells.n)
    reason = _SURVIVORS if contrary else "" if estimate or any(diverged) else _without_spread(cells)
    return ContrastOutcome(contrast, verdict or Verdict.CANNOT_TELL, errors, cells, level, more, toward, reason)


def _by_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors) -> Verdict | None:
    """The verdict by divergence alone, that a diverges less than b, or more; None when the rates do not decide."""
    # The rates are compared as integers, so that equal rates are equal.
    less = diverged[0] * ended[1] < diverged[1] * ended[0]
    verdict = Verdict.HOLDS if less and contrast.expect is not Expect.EQUIVALENT else Verdict.DOES_NOT_HOLD
    allowed = errors.holds if verdict is Verdict.HOLDS else errors.does_not_hold
    return verdict if p_rates(diverged, ended) <= allowed else None


def _contrary(cells: ContrastedCells, estimate: Estimate) -> bool:
    """Whether the divergence rates and the scores of completed runs favour different sides."""
    a, b = cells.diverged[0] * cells.ended[1], cells.diverged[1] * cells.ended[0]
    expect, margin = cells.contrast.expect, cells.margin or 0.0
    if expect is Expect.EQUIVALENT and abs(estimate.value) < margin:
        return a != b
    return a > b if estimate.value > (-margin if expect is Expect.NO_WORSE else margin) else a < b


_Region = tuple[Verdict, float, float, float]
"""The verdict for an interval that lies wholly between two bounds, and the level of that interval."""


def _regions(contrast: Contrast, margin: float | None, errors: Errors) -> tuple[_Region, ...]:
    """The regions that decide a contrast.

    An interval errs at each end with half of what it leaves out. Where one end decides, or both must agree (TOST), it
    may leave out twice the allowed error; where either end may decide, once.
    """
    margin = margin or 0.0
    holds, does_not, at_either_end = 1 - 2 * errors.holds, 1 - 2 * errors.does_not_hold, 1 - errors.does_not_hold
    bound = -margin if contrast.expect is Expect.NO_WORSE else margin
    if contrast.expect is not Expect.EQUIVALENT:
        return (Verdict.HOLDS, bound, inf, holds), (Verdict.DOES_NOT_HOLD, -inf, bound, does_not)
    return (
        (Verdict.HOLDS, -margin, margin, holds),
        (Verdict.DOES_NOT_HOLD, margin, inf, at_either_end),
        (Verdict.DOES_NOT_HOLD, -inf, -margin, at_either_end),
    )


def _without_spread(cells: ContrastedCells) -> str:
    if cells.paired and all(cell.compared for cell in (*cells.a, *cells.b)):
        return "the cells have fewer than two seeds in common"
    return "a cell has a single seed"


def _more_scores(regions: Sequence[_Region], estimate: Estimate, n: int) -> tuple[int | None, Verdict | None]:
    """Number of seeds to add so that the interval decides, if the difference stays what it is, and what it decides."""
    needed = [
        (seeds, verdict)
        for verdict, low, high, level in regions
        if (seeds := estimate.seeds_to_show(low, high, max(n, 1), level)) is not None
    ]
    if not needed:
        return None, None
    seeds, verdict = min(needed)
    return max(1, seeds - n), verdict


def _more_rates(
    contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors
) -> tuple[int | None, Verdict | None]:
    """Number of runs to add on each side so that the rates decide, if they stay what they are, and what they decide."""
    more = 1
    while more < _MOST_RUNS:
        runs = (ended[0] + more, ended[1] + more)
        hits = (round(diverged[0] / ended[0] * runs[0]), round(diverged[1] / ended[1] * runs[1]))
        if verdict := _by_rates(contrast, hits, runs, errors):
            return more, verdict
        more += max(1, more // 4)
    return None, None
