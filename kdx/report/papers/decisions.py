"""Decides a contrast from the runs of one setting: it holds, does not hold, or cannot be decided.

    better       holds if the whole interval is above the margin (0 if none is given); does not if it is wholly below.
    no-worse     holds if the lower end is above −margin; does not if the whole interval is below −margin.
    equivalent   holds if the interval is within ±margin (TOST); does not if it is wholly outside.

Each interval but the last is used at one end only, so a verdict that may be false with 5% takes a 90% interval. The
interval that is shown is the one that decides; where none does, the widest of those that could have.

Where a side diverges, the divergence rates are compared first: a cell that diverges is worse than one that does
not. While there are too few runs to distinguish the rates, the scores of completed runs decide nothing in favour of
the side that diverged more often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import NamedTuple

from kdx.report.papers.contrasted_cells import ContrastedCells, lost_runs
from kdx.report.papers.paper_file import Contrast, Expect
from kdx.report.statistics.estimates import LEVEL, Estimate
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.rates import p_rates, rate_difference

_SURVIVORS = (
    "one side diverged more often, and the scores of what completed speak for it; more runs have to tell the rates"
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


@dataclass(frozen=True)
class ContrastOutcome:
    """A contrast in one setting."""

    contrast: Contrast
    verdict: Verdict
    errors: Errors
    metric: Metric | None = None
    """None where there are no such cells."""
    a: tuple[str, ...] = ()
    """Ids of the cells of side a; `b` has those of side b."""
    b: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    """Factors that the contrast is averaged over."""
    confounders: tuple[str, ...] = ()
    """Factors, beside the first one that the contrast names, in which all cells of a differ from all cells of b."""
    estimate: Estimate | None = None
    """The gain of a over b: positive is better; for perplexities in nats. None where the seeds allow no estimate."""
    level: float = LEVEL
    """The confidence level of `interval`."""
    margin: float | None = None
    """The margin on the same scale."""
    n: int = 0
    """The smallest number of seeds of a cell; of those that a rule added, as many as all cells have."""
    diverged: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that diverged."""
    ended: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that completed or diverged."""
    searched: bool = False
    """Whether a search found the settings of some of its cells, so that everything is conditional on it."""
    rates: tuple[float, float] | None = None
    """95% interval of b's divergence rate minus a's, where either diverged."""
    more: int | None = None
    """Number of further seeds that would decide with probability 0.8, if the difference stays; None if no number would,
    or if the contrast is decided."""
    reason: str = ""
    """Why the contrast cannot be decided, such as `no such cells`; empty where the intervals show it."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence interval of the estimate that decides."""
        return self.estimate.interval(self.level) if self.estimate else None


def decide(cells: ContrastedCells, errors: Errors) -> ContrastOutcome:
    """Decide a contrast from its cells in one setting."""
    contrast, estimate, margin = cells.contrast, cells.estimate, cells.margin
    diverged = (sum(map(lost_runs, cells.a)), sum(map(lost_runs, cells.b)))
    scored = (sum(len(cell.scores) for cell in cells.a), sum(len(cell.scores) for cell in cells.b))
    ended = (diverged[0] + scored[0], diverged[1] + scored[1])
    regions = _regions(contrast, margin, errors)
    verdict = _by_rates(contrast, diverged, ended, errors) if any(diverged) else None
    contrary = verdict is None and estimate is not None and _contrary(contrast, margin, estimate, diverged, ended)
    level = max(level for *_, level in regions)
    more = None
    if verdict is None and estimate and not contrary:
        for possible, low, high, at in regions:
            below, above = estimate.interval(at)
            if low < below and above < high:
                verdict, level = possible, at
                break
        else:
            more = _more_scores(regions, estimate, cells.n)
    elif verdict is None:
        more = _more_rates(contrast, diverged, ended, errors) if any(diverged) else max(1, 2 - cells.n)
    return ContrastOutcome(
        contrast=contrast,
        verdict=verdict or Verdict.CANNOT_TELL,
        errors=errors,
        metric=cells.metric,
        a=tuple(cell.id for cell in cells.a),
        b=tuple(cell.id for cell in cells.b),
        over=cells.over,
        confounders=cells.confounders,
        estimate=estimate,
        level=level,
        margin=margin,
        n=cells.n,
        diverged=diverged,
        ended=ended,
        searched=cells.searched,
        rates=rate_difference(diverged[::-1], ended[::-1]) if any(diverged) else None,
        more=more,
        reason=_SURVIVORS if contrary else "" if estimate or any(diverged) else _without_spread(cells),
    )


def _by_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors) -> Verdict | None:
    """The verdict by divergence alone, that a diverges less than b, or more; None when the rates do not decide."""
    # The rates are compared as integers, so that equal rates are equal.
    less = diverged[0] * ended[1] < diverged[1] * ended[0]
    verdict = Verdict.HOLDS if less and contrast.expect is not Expect.EQUIVALENT else Verdict.DOES_NOT_HOLD
    allowed = errors.holds if verdict is Verdict.HOLDS else errors.does_not_hold
    return verdict if p_rates(diverged, ended) <= allowed else None


def _contrary(
    contrast: Contrast, margin: float | None, estimate: Estimate, diverged: tuple[int, int], ended: tuple[int, int]
) -> bool:
    """Whether the divergence rates and the scores of completed runs favour different sides."""
    a, b = diverged[0] * ended[1], diverged[1] * ended[0]
    margin = margin or 0.0
    if contrast.expect is Expect.EQUIVALENT and abs(estimate.value) < margin:
        return a != b
    return a > b if estimate.value > (-margin if contrast.expect is Expect.NO_WORSE else margin) else a < b


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


def _more_scores(regions: Sequence[_Region], estimate: Estimate, n: int) -> int | None:
    """Number of seeds to add so that the interval decides, if the difference stays what it is."""
    needed = [estimate.seeds_to_show(low, high, max(n, 1), level) for _, low, high, level in regions]
    known = [seeds for seeds in needed if seeds is not None]
    return max(1, min(known) - n) if known else None


def _more_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors) -> int | None:
    """Number of runs to add on each side so that the rates decide, if they stay what they are."""
    more = 1
    while more < _MOST_RUNS:
        runs = (ended[0] + more, ended[1] + more)
        hits = (round(diverged[0] / ended[0] * runs[0]), round(diverged[1] / ended[1] * runs[1]))
        if _by_rates(contrast, hits, runs, errors):
            return more
        more += max(1, more // 4)
    return None
