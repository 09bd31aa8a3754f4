"""Does a claim hold in the runs at hand?

A contrast compares two sets of cells that agree in everything it does not name. Where other factors vary too (say, the
kernel), each side is averaged over them, choice by choice. Means are compared with the spreads of the very cells
(`kdx.report.statistics.contrast`), perplexities by their logarithm. Where a side diverges, the divergence rates are
compared first: a cell that does not converge is worse than one that does. While too few runs tell the rates apart, the
scores of those that completed decide nothing in favour of the side that diverged more often.

There is a verdict for each setting, that is task, data, size and training: a smoke run says nothing of the paper's
scale. In it each contrast holds, does not hold, or cannot be told:

    better       holds: the whole interval is above the margin (0 if none is given). Does not: all of it is below.
    no-worse     holds: the lower end is above −margin. Does not: the whole interval is below −margin.
    equivalent   holds: the interval is within ±margin (TOST). Does not: it is wholly outside.

A false "holds" and a false "does not hold" have 5% each, which parts share that could each bring it about (Bonferroni):
those of `any` share the 5% of "holds", those of `all` the 5% of "does not hold".
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import NamedTuple

from kdx.grid.cell_selector import factors
from kdx.report.papers.paper_file import Claim, Contrast, Expect, Rule
from kdx.report.selection.cells import Cell, Metric, cell_of
from kdx.report.statistics.estimates import LEVEL, Estimate, Summary, contrast, p_rates, rate_difference
from kdx.report.table.comparisons import margin_on_scale
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


class Verdict(StrEnum):
    """What the runs say of a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


class Errors(NamedTuple):
    """The chance that each verdict may have to be false, of a two-sided comparison."""

    holds: float
    does_not_hold: float


_WHOLE = Errors(1 - LEVEL, 1 - LEVEL)


@dataclass(frozen=True)
class Outcome:
    """A contrast in one setting."""

    contrast: Contrast
    verdict: Verdict
    errors: Errors
    metric: Metric | None = None
    """None where there are no such cells."""
    a: tuple[str, ...] = ()
    """Ids of the cells of side a, and of b below."""
    b: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    """Factors that the contrast is averaged over."""
    confounders: tuple[str, ...] = ()
    """Factors in which all of a differ from all of b beside the first one that the contrast names."""
    estimate: Estimate | None = None
    """a over b, as what is gained: positive is better; of perplexities in nats. None where no seeds tell it."""
    margin: float | None = None
    """On the same scale."""
    n: int = 0
    """Seeds of the cell that has the fewest."""
    diverged: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that diverged."""
    ended: tuple[int, int] = (0, 0)
    """Runs of a, and of b, that completed or diverged."""
    rates: tuple[float, float] | None = None
    """95% interval of b's divergence rate minus a's, where either diverged."""
    more: int | None = None
    """More seeds that would tell with probability 0.8, if the difference stays; None: no number in sight, or told."""
    reason: str = ""
    """Why it cannot be told, such as `no such cells`; empty where the intervals say so."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% interval of the estimate."""
        return self.estimate.interval() if self.estimate else None


@dataclass(frozen=True)
class Finding:
    """What the runs of one setting say of a claim."""

    setting: Mapping[str, str]
    """Factor → word, of `TOLD`; empty where no setting has cells for any of its contrasts."""
    verdict: Verdict
    outcomes: tuple[Outcome, ...]

    @property
    def confounders(self) -> tuple[str, ...]:
        """In what else the sides differ of contrasts that hold."""
        held = (one for one in self.outcomes if one.verdict is Verdict.HOLDS)
        return tuple(dict.fromkeys(factor for one in held for factor in one.confounders))

    @property
    def more(self) -> int | None:
        """More seeds that would decide whatever could not be told, as far as seeds can."""
        wanted = [one.more for one in self.outcomes if one.verdict is Verdict.CANNOT_TELL]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None

    def __str__(self) -> str:
        """Such as `holds, confounded by memory`."""
        doubt = f", confounded by {', '.join(self.confounders)}" if self.verdict is Verdict.HOLDS else ""
        return f"{self.verdict}{doubt if self.confounders else ''}"


@dataclass(frozen=True)
class Answer:
    """A claim, and what the runs say of it in each setting."""

    claim: Claim
    findings: tuple[Finding, ...]


def answers(claims: Iterable[Claim], sweeps: Sequence[SweepRecord]) -> list[Answer]:
    """Decide each claim from all runs of these sweeps; a cell that several have counts once."""
    runs = _Runs(sweeps)
    return [_answer(claim, runs) for claim in claims]


def _answer(claim: Claim, runs: "_Runs") -> Answer:
    contrasts = list(_contrasts(claim.holds))
    # What decides no setting, since some contrast varies it.
    varied = frozenset[str]().union(*(_named(one) | following(_named(one)) for one in contrasts))
    comparisons = {id(one): _comparisons(one, runs, varied) for one in contrasts}
    settings = {key: one.words for those in comparisons.values() for key, one in those.items()}
    findings = [_finding(claim, comparisons, key, words) for key, words in settings.items()]
    if not findings:
        nothing = tuple(Outcome(one, Verdict.CANNOT_TELL, _WHOLE, reason="no such cells") for one in contrasts)
        findings = [Finding({}, Verdict.CANNOT_TELL, nothing)]
    return Answer(claim, tuple(findings))


def _finding(
    claim: Claim, comparisons: "Mapping[int, Mapping[str, _Comparison]]", key: str, words: Mapping[str, str]
) -> Finding:
    outcomes: list[Outcome] = []

    def decided(part: Rule | Contrast, errors: Errors) -> Verdict:
        if isinstance(part, Rule):
            its = [one for one in part.of if _speaks_of(one, words.get("task"))]
            holds, does_not = errors
            inner = Errors(holds / len(its), does_not) if part.any else Errors(holds, does_not / len(its))
            return _together([decided(one, inner) for one in its], any=part.any)
        found = comparisons[id(part)].get(key)
        outcome = (
            _outcome(found, errors) if found else Outcome(part, Verdict.CANNOT_TELL, errors, reason="no such cells")
        )
        outcomes.append(outcome)
        return outcome.verdict

    verdict = decided(claim.holds, _WHOLE)
    return Finding(words, verdict, tuple(outcomes))


def _speaks_of(part: Rule | Contrast, task: str | None) -> bool:
    """Whether the part asks something of this task; None: of whatever task its sides name."""
    if task is None:
        return True
    if isinstance(part, Rule):
        return any(_speaks_of(one, task) for one in part.of)
    return all(side.get("task", task) == task for side in (part.where, part.a, part.b))


class _Runs:
    """Cells of all sweeps, each once, with the runs of all."""

    def __init__(self, sweeps: Sequence[SweepRecord]) -> None:
        self.records = {cell.id: cell for sweep in sweeps for cell in sweep.cells}
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
    words: Mapping[str, str]
    over: tuple[str, ...]
    confounders: tuple[str, ...]
    sides: tuple[tuple[tuple[Cell, ...], tuple[Cell, ...]], ...]

    @property
    def a(self) -> tuple[Cell, ...]:
        return tuple(cell for side, _ in self.sides for cell in side)

    @property
    def b(self) -> tuple[Cell, ...]:
        return tuple(cell for _, side in self.sides for cell in side)

    @property
    def metric(self) -> Metric:
        return self.a[0].metric

    @cached_property
    def estimate(self) -> Estimate | None:
        """What a gains over b; None where a cell has no spread to judge by."""
        cells = {cell.id: cell for cell in (*self.a, *self.b)}
        weights = dict.fromkeys(cells, 0.0)
        sign = self.metric.gain(1.0) / len(self.sides)
        for pair in self.sides:
            for side, direction in zip(pair, (sign, -sign), strict=True):
                for cell in side:
                    weights[cell.id] += direction / len(side)
        parts: list[tuple[float, Summary]] = []
        for id, weight in weights.items():
            if (summary := cells[id].compared) is None:
                return None
            parts.append((weight, summary))
        return contrast(parts)

    @property
    def margin(self) -> float | None:
        """On the scale of the estimate."""
        means = [mean for cell in self.b if (mean := cell.reference) is not None]
        if self.contrast.margin is None or not means:
            return None
        return margin_on_scale(self.metric, self.contrast.margin, sum(mean / len(means) for mean in means))


def following(named: Iterable[str]) -> frozenset[str]:
    """Factors that these decide, or at least limit."""
    return frozenset[str]().union(*(_FOLLOWS.get(factor, frozenset()) for factor in named))


def _named(contrast: Contrast) -> frozenset[str]:
    return frozenset(contrast.a.keys() | contrast.b.keys())


def _contrasts(rule: Rule) -> Iterator[Contrast]:
    for part in rule.of:
        if isinstance(part, Rule):
            yield from _contrasts(part)
        else:
            yield part


def _comparisons(contrast: Contrast, runs: _Runs, varied: frozenset[str]) -> dict[str, _Comparison]:
    """Setting → the contrast in it, for each setting that has both sides."""
    named = _named(contrast)
    follows = following(named) - named
    settings: dict[str, dict[str, tuple[list[CellRecord], list[CellRecord]]]] = {}
    for record in runs.records.values():
        if not _matches(contrast.where, record):
            continue
        sides_of = [index for index, side in enumerate((contrast.a, contrast.b)) if _matches(side, record)]
        if not sides_of:
            continue
        rest = {one: word for one, word in record.words.items() if one not in named | follows}
        recipe = {one: word for one, word in rest.items() if one.startswith(_SETTING) and one not in varied}
        # What a cell was selected by decides what its score is, but is no factor.
        setting = json.dumps([recipe, record.spec["select"]])
        background = json.dumps({one: word for one, word in rest.items() if one not in recipe})
        for index in sides_of:
            settings.setdefault(setting, {}).setdefault(background, ([], []))[index].append(record)
    found = {}
    for setting, by_background in settings.items():
        sides = []
        used: tuple[list[CellRecord], list[CellRecord]] = ([], [])
        for halves in by_background.values():
            cells = [[(one, runs.cell(one, contrast.metric)) for one in half] for half in halves]
            told = [[(one, cell) for one, cell in half if cell and (cell.scores or _lost(cell))] for half in cells]
            if all(told):
                sides.append((tuple(cell for _, cell in told[0]), tuple(cell for _, cell in told[1])))
                for records, half in zip(used, told, strict=True):
                    records.extend(one for one, _ in half)
        if sides:
            words = {one: used[0][0].words[one] or "none" for one in TOLD if one not in varied}
            over, confounders = _unspoken(used, contrast, follows)
            found[setting] = _Comparison(contrast, words, over, confounders, tuple(sides))
    return found


def _matches(where: Mapping[str, str], record: CellRecord) -> bool:
    return all(record.words.get(factor) == word for factor, word in where.items())


def _lost(cell: Cell) -> int:
    """Runs that diverged, or completed with a score that is no finite number."""
    return cell.diverged + (cell.summary.n - len(cell.scores) if cell.summary else 0)


def _unspoken(
    sides: tuple[Sequence[CellRecord], Sequence[CellRecord]], contrast: Contrast, follows: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Factors that vary within the sides, and those in which the sides differ beside the first that is named.

    What only one side has, such as an encoding, is no difference.
    """
    named = _named(contrast)
    about = next(iter(contrast.a))
    over, confounders = [], []
    for factor in factors():
        a, b = ({_word(record, factor) for record in side} for side in sides)
        if factor == about:
            continue
        if factor in named or factor in follows:
            if not a & b and "none" not in a | b:
                confounders.append(factor)
            elif factor not in named and (len(a) > 1 or len(b) > 1):
                over.append(factor)
        elif len(a | b) > 1:
            over.append(factor)
    return tuple(over), tuple(confounders)


def _word(record: CellRecord, factor: str) -> str | None:
    # A spec names sinusoids even where nothing uses them.
    unused = factor == "sinusoids" and record.spec["encoding"] != "sinusoidal"
    return "none" if unused else record.words[factor]


def _outcome(one: _Comparison, errors: Errors) -> Outcome:
    n = min((len(cell.scores) for cell in (*one.a, *one.b)), default=0)
    diverged = (sum(map(_lost, one.a)), sum(map(_lost, one.b)))
    ended = (diverged[0] + sum(len(cell.scores) for cell in one.a), diverged[1] + sum(len(c.scores) for c in one.b))
    estimate, margin = one.estimate, one.margin
    verdict = _by_rates(one.contrast, diverged, ended, errors) if any(diverged) else None
    contrary = verdict is None and estimate is not None and _contrary(one.contrast, margin, estimate, diverged, ended)
    if verdict is None and estimate and not contrary:
        verdict = _by_scores(one.contrast, margin, estimate, errors)
    more = None
    if verdict is None and estimate and not contrary:
        more = _more_scores(one.contrast, margin, estimate, n, errors)
    elif verdict is None:
        more = _more_rates(one.contrast, diverged, ended, errors) if any(diverged) else max(1, 2 - n)
    return Outcome(
        contrast=one.contrast,
        verdict=verdict or Verdict.CANNOT_TELL,
        errors=errors,
        metric=one.metric,
        a=tuple(cell.id for cell in one.a),
        b=tuple(cell.id for cell in one.b),
        over=one.over,
        confounders=one.confounders,
        estimate=estimate,
        margin=margin,
        n=n,
        diverged=diverged,
        ended=ended,
        rates=rate_difference(diverged[::-1], ended[::-1]) if any(diverged) else None,
        more=more,
        reason=_SURVIVORS if contrary else "" if estimate or any(diverged) else "a cell has a single seed",
    )


def _by_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors) -> Verdict | None:
    """What divergence alone decides: a diverges less than b, or more; None when it does not."""
    # Rates as wholes, so that equal ones are equal.
    less = diverged[0] * ended[1] < diverged[1] * ended[0]
    verdict = Verdict.HOLDS if less and contrast.expect is not Expect.EQUIVALENT else Verdict.DOES_NOT_HOLD
    allowed = errors.holds if verdict is Verdict.HOLDS else errors.does_not_hold
    return verdict if p_rates(diverged, ended) <= allowed else None


def _contrary(
    contrast: Contrast, margin: float | None, estimate: Estimate, diverged: tuple[int, int], ended: tuple[int, int]
) -> bool:
    """Whether runs that diverged point the other way than the scores of those that did not."""
    a, b = diverged[0] * ended[1], diverged[1] * ended[0]
    margin = margin or 0.0
    if contrast.expect is Expect.EQUIVALENT and abs(estimate.value) < margin:
        return a != b
    return a > b if estimate.value > (-margin if contrast.expect is Expect.NO_WORSE else margin) else a < b


def _regions(
    contrast: Contrast, margin: float | None, errors: Errors
) -> tuple[tuple[Verdict, float, float, float], ...]:
    """What is decided where the whole interval lies between two bounds; at the end, the level of that interval.

    A bound that is tested on one side alone takes the interval whose end leaves out as much as both ends do otherwise.
    """
    margin = margin or 0.0
    holds, one_sided, does_not = 1 - errors.holds, 1 - 2 * errors.holds, 1 - errors.does_not_hold
    return {
        Expect.BETTER: (
            (Verdict.HOLDS, margin, inf, holds),
            (Verdict.DOES_NOT_HOLD, -inf, margin, does_not),
        ),
        Expect.NO_WORSE: (
            (Verdict.HOLDS, -margin, inf, one_sided),
            (Verdict.DOES_NOT_HOLD, -inf, -margin, does_not),
        ),
        Expect.EQUIVALENT: (
            (Verdict.HOLDS, -margin, margin, one_sided),
            (Verdict.DOES_NOT_HOLD, margin, inf, does_not),
            (Verdict.DOES_NOT_HOLD, -inf, -margin, does_not),
        ),
    }[contrast.expect]


def _by_scores(contrast: Contrast, margin: float | None, estimate: Estimate, errors: Errors) -> Verdict | None:
    for verdict, low, high, at in _regions(contrast, margin, errors):
        below, above = estimate.interval(at)
        if low < below and above < high:
            return verdict
    return None


def _more_scores(contrast: Contrast, margin: float | None, estimate: Estimate, n: int, errors: Errors) -> int | None:
    """Seeds to add so that the interval lies where something is decided, if the difference stays what it is."""
    regions = _regions(contrast, margin, errors)
    needed = [estimate.seeds_to_show(low, high, max(n, 1), at) for _, low, high, at in regions]
    known = [seeds for seeds in needed if seeds is not None]
    return max(1, min(known) - n) if known else None


def _more_rates(contrast: Contrast, diverged: tuple[int, int], ended: tuple[int, int], errors: Errors) -> int | None:
    """Runs to add on each side so that the rates are told apart, if they stay what they are."""
    more = 1
    while more < _MOST_RUNS:
        of = (ended[0] + more, ended[1] + more)
        hits = (round(diverged[0] / ended[0] * of[0]), round(diverged[1] / ended[1] * of[1]))
        if _by_rates(contrast, hits, of, errors):
            return more
        more += max(1, more // 4)
    return None


def _together(parts: Sequence[Verdict], *, any: bool) -> Verdict:
    decisive, other = (Verdict.HOLDS, Verdict.DOES_NOT_HOLD) if any else (Verdict.DOES_NOT_HOLD, Verdict.HOLDS)
    if decisive in parts:
        return decisive
    return other if all(part is other for part in parts) else Verdict.CANNOT_TELL
