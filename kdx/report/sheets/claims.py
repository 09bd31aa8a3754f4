"""Listings of the verdicts on claims."""

from collections.abc import Iterator, Mapping, Sequence

from kdx.grid.words import owners
from kdx.report.papers.contrasted_cells import following
from kdx.report.papers.decisions import ContrastOutcome, Verdict
from kdx.report.papers.paper_file import Claim, Contrast, Expect
from kdx.report.papers.verdicts import NO_CELLS, Answer, SettingVerdict
from kdx.report.sheet import Sheet
from kdx.report.table.notes import CONDITIONAL
from kdx.report.wording import difference, interval, over, setting, word_of
from kdx.shell import kdx_command


def claim(answer: Answer) -> Iterator[Sheet]:
    """A listing for each setting of a claim, with its contrasts; contrasts without cells stand in a note.

    A claim that no run tests has none (`not_tested`).
    """
    for index, one in enumerate(answer.tested):
        yield _claim(answer.claim, one, first=index == 0)


def not_tested(answers: Sequence[Answer], options: str = "") -> Iterator[Sheet]:
    """One listing of the claims that no run tests, with the commands that would; none where there is no such claim.

    Args:
        options: of these commands, such as ` --db FILE`.
    """
    untested = [answer for answer in answers if not answer.tested]
    if not untested:
        return
    notes = [
        f"{one.claim.id}: {text}"
        for one in untested
        for text in _missing(one.settings[0])
        if not one.claim.grids or any(outcome.reason != NO_CELLS for outcome in one.settings[0].outcomes)
    ]
    yield Sheet(
        title=f"{Verdict.NOT_TESTED.capitalize()}: no contrast has runs of both sides",
        key=(Verdict.NOT_TESTED,),
        headers=("claim", "statement", "tested by"),
        names=3,
        rows=tuple((one.claim.id, one.claim.statement, _tested_by(one.claim, options)) for one in untested),
        notes=tuple(notes),
    )


def _tested_by(claim: Claim, options: str) -> str:
    return "; ".join(kdx_command("sweep", grid, options=options) for grid in claim.grids) or "–"


def _claim(claim: Claim, found: SettingVerdict, *, first: bool) -> Sheet:
    with_cells = [one for one in found.outcomes if one.metric]
    levels = {one.level for one in with_cells}
    same = len(levels) == 1
    at_level = f"{100 * levels.pop():.4g}% interval" if same else "interval"
    # Words that all contrasts share are left out.
    selectors = [_selector(one, found.setting) for one in with_cells]
    varying = [factor for where in selectors for factor in where if len({other.get(factor) for other in selectors}) > 1]
    rows = []
    for one, where in zip(with_cells, selectors, strict=True):
        assert one.metric
        words = setting({factor: word for factor, word in where.items() if factor in varying})
        rows.append(
            (
                _contrast(one.contrast) + (f" ({words})" if words else ""),
                _expected(one.contrast),
                difference(one.estimate.value, one.metric) if one.estimate else "–",
                _interval(one, named=not same),
                str(one.n),
                str(one.verdict),
                _more(one),
            )
        )
    at = f" ({setting(found.setting)})" if found.setting else ""
    notes = [f"Source: {claim.source}."] if claim.source and first else []
    return Sheet(
        title=f"{claim.id}: {found}{at}: {claim.statement}",
        key=(claim.id, *found.setting.values()),
        headers=("a over b", "expected", "a better by", at_level, "n", "verdict", "more seeds"),
        names=2,
        rows=tuple(rows),
        notes=(*notes, *dict.fromkeys(_remarks(found, paired=claim.pairs is not None))),
    )


def _contrast(contrast: Contrast) -> str:
    """Names both sides by the words in which they differ, without words that only follow from others."""
    differ = {
        factor for factor in contrast.a.keys() | contrast.b.keys() if contrast.a.get(factor) != contrast.b.get(factor)
    }
    both = differ & contrast.a.keys() & contrast.b.keys()
    words = [{one for factor in both for one in side[factor].split("+")} for side in (contrast.a, contrast.b)]
    differ -= following(both) | {factor for factor in differ if _of_one_side(factor, *words)}

    def side(its: Mapping[str, str]) -> str:
        return " ".join(word_of(factor, word) for factor, word in its.items() if factor in differ)

    return f"{side(contrast.a)} over {side(contrast.b)}"


def _of_one_side(factor: str, a: set[str], b: set[str]) -> bool:
    """Whether it is an option that the words of one side bring along, and those of the other do not."""
    return a.isdisjoint(owners(factor)) != b.isdisjoint(owners(factor))


def _expected(contrast: Contrast) -> str:
    if contrast.margin is None:
        return str(contrast.expect)
    joint = {Expect.BETTER: "from", Expect.NO_WORSE: "than", Expect.EQUIVALENT: "within"}[contrast.expect]
    margin = contrast.margin if isinstance(contrast.margin, str) else f"{contrast.margin:g}"
    return f"{contrast.expect} {joint} {margin}"


def _selector(one: ContrastOutcome, of: Mapping[str, str]) -> dict[str, str]:
    return {factor: word for factor, word in one.contrast.where.items() if factor not in of}


def _interval(one: ContrastOutcome, *, named: bool) -> str:
    if one.interval is None or one.metric is None:
        return "–"
    return interval(one.interval, one.metric) + (f" ({100 * one.level:.4g}%)" if named else "")


def _more(one: ContrastOutcome) -> str:
    if one.verdict is not Verdict.CANNOT_TELL:
        return ""
    return str(one.more) if one.more is not None else "none in sight"


def _remarks(found: SettingVerdict, *, paired: bool) -> Iterator[str]:
    outcomes = found.outcomes
    tested = [one for one in outcomes if one.estimate]
    if tested:
        errors = dict.fromkeys(over(one.estimate.documents) for one in tested if one.estimate)
        nats = any(one.metric and one.metric.in_nats for one in tested)
        spread = (
            "of the differences at each seed, as the claim declares"
            if paired
            else "from the spread of these cells alone, with cautious degrees of freedom"
        )
        yield (
            f"Differences of means{', of perplexities in nats' if nats else ''}, t {spread}, "
            f"over {' or '.join(errors)}. Each interval is the one used for the verdict (one-sided where the claim "
            "is); the contrasts of a claim share its 5%."
        )
        if any(one.more for one in tested):
            yield (
                "more seeds: for a decision with probability 0.8 if the difference stays. Seeds added after a look are "
                "not allowed for; seeds: {min: …, max: …, until: decided} in the grid allows for every look."
            )
    if any(one.searched for one in tested):
        yield f"A search found settings of these cells: {CONDITIONAL}."
    looked = [one for one in tested if one.estimate and one.estimate.look]
    if looked:
        which = (
            ""
            if len(looked) == len(tested)
            else f"{'; '.join(dict.fromkeys(_contrast(one.contrast) for one in looked))}: "
        )
        yield (
            f"{which}a rule added the seeds, with a look after each; intervals and verdicts are over the seeds of the "
            "last look of all cells and allow for all looks, as those of tables do."
        )
    for one in outcomes:
        if one.rates:
            yield (
                f"{_contrast(one.contrast)}: {one.diverged[0]}/{one.ended[0]} against {one.diverged[1]}/{one.ended[1]} "
                f"runs diverged; difference of the rates {one.rates[0]:.0%} to {one.rates[1]:.0%}."
            )
    for field, what in (("over", "averaged over"), ("confounders", "the sides differ also in")):
        by_factors: dict[tuple[str, ...], dict[str, None]] = {}
        for one in outcomes:
            if its := getattr(one, field):
                by_factors.setdefault(its, {})[_contrast(one.contrast)] = None
        for factors, contrasts in by_factors.items():
            yield f"{'; '.join(contrasts)}: {what} {', '.join(factors)}."
    for one in outcomes:
        if one.reason and one.metric:
            yield f"{_contrast(one.contrast)}: {one.reason}."
    yield from _missing(found)


def _missing(found: SettingVerdict) -> Iterator[str]:
    """The sentences on contrasts without cells, and on what keeps cells of both sides apart."""
    missing: dict[str, dict[str, None]] = {}
    for one in found.outcomes:
        if not one.metric:
            where = setting(_selector(one, found.setting))
            what = _contrast(one.contrast) + (f" ({where})" if where else "")
            missing.setdefault(one.reason, {})[what] = None
    for reason, contrasts in missing.items():
        yield f"No cells here for {'; '.join(contrasts)}{reason.removeprefix(NO_CELLS)}."
