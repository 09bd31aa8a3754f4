"""Decides whether a claim holds in the recorded runs.

A contrast compares two sets of cells that agree in everything it does not name (`contrasted_cells`). Where other
factors vary too (say, the kernel), each side is averaged over them, choice by choice. Means are compared with the
spreads of the very cells (`kdx.report.statistics.estimates.contrast`), perplexities by their logarithm.

There is a verdict for each setting, that is task, data, size and training, since a smoke run says nothing about the
paper's scale. In each setting a contrast holds, does not hold, or cannot be decided (`decisions`).

A false "holds" and a false "does not hold" each have a probability of at most 5%. The parts that could each cause the
error share it (Bonferroni): parts of `any` share the 5% of "holds", parts of `all` the 5% of "does not hold".
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdx.grid.cell_selector import same_word
from kdx.report.papers.contrasted_cells import (
    RecordedRuns,
    contrasted_cells,
    distinguished,
    following,
    kept_apart,
)
from kdx.report.papers.decisions import ContrastOutcome, Errors, Verdict, decide
from kdx.report.papers.paper_file import Claim, Contrast, Rule
from kdx.report.statistics.estimates import LEVEL
from kdx.store.records import SweepRecord

NO_CELLS = "no such cells"
_WHOLE = Errors(1 - LEVEL, 1 - LEVEL)


@dataclass(frozen=True)
class SettingVerdict:
    """What the runs of one setting say of a claim."""

    setting: Mapping[str, str]
    """Factor → word, of `contrasted_cells.SHOWN_FACTORS` and what distinguishes it from others that are alike in these;
    empty where no setting has cells for any of its contrasts."""
    verdict: Verdict
    outcomes: tuple[ContrastOutcome, ...]

    @property
    def confounders(self) -> tuple[str, ...]:
        """The confounders of all contrasts that hold."""
        held = (outcome for outcome in self.outcomes if outcome.verdict is Verdict.HOLDS)
        return tuple(dict.fromkeys(factor for outcome in held for factor in outcome.confounders))

    @property
    def more(self) -> int | None:
        """Number of further seeds that would decide every undecided contrast; None if seeds alone cannot."""
        undecided = [
            outcome.more for outcome in self.outcomes if outcome.verdict in (Verdict.CANNOT_TELL, Verdict.NOT_TESTED)
        ]
        known = [more for more in undecided if more is not None]
        return max(known) if known and len(known) == len(undecided) else None

    def __str__(self) -> str:
        """The verdict with its confounders, such as `holds, confounded by memory`."""
        doubt = f", confounded by {', '.join(self.confounders)}" if self.verdict is Verdict.HOLDS else ""
        return f"{self.verdict}{doubt if self.confounders else ''}"


@dataclass(frozen=True)
class Answer:
    """A claim, and what the runs say of it in each setting."""

    claim: Claim
    settings: tuple[SettingVerdict, ...]

    @property
    def tested(self) -> tuple[SettingVerdict, ...]:
        """The settings that have cells for one of its contrasts."""
        return tuple(setting for setting in self.settings if setting.verdict is not Verdict.NOT_TESTED)


def answers(claims: Iterable[Claim], sweeps: Sequence[SweepRecord]) -> list[Answer]:
    """Decides each claim from all runs of these sweeps; a cell of several sweeps counts once."""
    runs = RecordedRuns(sweeps)
    return [_answer(claim, runs) for claim in claims]


def _answer(claim: Claim, runs: RecordedRuns) -> Answer:
    contrasts = list(_contrasts(claim.holds))
    # A factor that some contrast varies does not define a setting.
    varied = frozenset[str]().union(*(contrast.factors | following(contrast.factors) for contrast in contrasts))
    cells = {
        id(contrast): contrasted_cells(contrast, runs, varied, paired=claim.pairs is not None) for contrast in contrasts
    }
    reasons = {
        id(contrast): _without_cells(() if cells[id(contrast)] else kept_apart(contrast, runs))
        for contrast in contrasts
    }

    def in_setting(key: str, words: Mapping[str, str]) -> SettingVerdict:
        outcomes: list[ContrastOutcome] = []

        def verdict_on(part: Rule | Contrast, errors: Errors) -> Verdict:
            if isinstance(part, Rule):
                parts = [inner for inner in part.parts if _speaks_of(inner, json.loads(key)[0])]
                holds, does_not = errors
                shared = Errors(holds / len(parts), does_not) if part.any else Errors(holds, does_not / len(parts))
                return _together([verdict_on(inner, shared) for inner in parts], any=bool(part.any))
            compared = cells[id(part)].get(key)
            outcomes.append(decide(compared, errors) if compared else untested(part, errors))
            return outcomes[-1].verdict

        return SettingVerdict(words, verdict_on(claim.holds, _WHOLE), tuple(outcomes))

    def untested(contrast: Contrast, errors: Errors) -> ContrastOutcome:
        return ContrastOutcome(contrast, Verdict.NOT_TESTED, errors, reason=reasons[id(contrast)])

    settings = distinguished(
        {key: compared.words for by_setting in cells.values() for key, compared in by_setting.items()}
    )
    if settings:
        return Answer(claim, tuple(in_setting(key, words) for key, words in settings.items()))
    nothing = tuple(untested(contrast, _WHOLE) for contrast in contrasts)
    return Answer(claim, (SettingVerdict({}, Verdict.NOT_TESTED, nothing),))


def _without_cells(apart: Sequence[str]) -> str:
    return f"{NO_CELLS}: the closest cells of both sides also differ in {', '.join(apart)}" if apart else NO_CELLS


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


def _contrasts(rule: Rule) -> Iterator[Contrast]:
    for part in rule.parts:
        yield from _contrasts(part) if isinstance(part, Rule) else (part,)


def _together(parts: Sequence[Verdict], *, any: bool) -> Verdict:
    decisive = Verdict.HOLDS if any else Verdict.DOES_NOT_HOLD
    if decisive in parts:
        return decisive
    return parts[0] if len(set(parts)) == 1 else Verdict.CANNOT_TELL
