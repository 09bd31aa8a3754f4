"""Listings of the verdicts on claims."""

from collections.abc import Iterator, Mapping

from kdx.grid.words import owners
from kdx.report.papers.contrasted_cells import following
from kdx.report.papers.decisions import ContrastOutcome, Verdict
from kdx.report.papers.paper_file import Claim, Contrast, Expect
from kdx.report.papers.verdicts import Answer, SettingVerdict
from kdx.report.render.listings.listing import Listing
from kdx.report.render.wording import difference, interval, over, setting, word_of


def claim(answer: Answer) -> Iterator[Listing]:
    """A listing for each setting of a claim, with its contrasts; contrasts without cells stand in a note."""
    for index, one in enumerate(answer.settings):
        yield _claim(answer.claim, one, first=index == 0)


def _claim(claim: Claim, found: SettingVerdict, *, first: bool) -> Listing:
    with_cells = [one for one in found.outcomes if one.metric]
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
                _interval(one) if one.estimate else "–",
                str(one.n),
                str(one.verdict),
                _more(one),
            )
        )
    at = f" ({setting(found.setting)})" if found.setting else ""
    notes = [f"Source: {claim.source}."] if claim.source and first else []
    return Listing(
        title=f"{claim.id}: {found}{at}: {claim.statement}",
        key=(claim.id, *found.setting.values()),
        headers=("a over b", "expected", "a better by", "interval", "n", "verdict", "more seeds"),
        names=2,
        rows=tuple(rows),
        notes=(*notes, *dict.fromkeys(_remarks(found))),
    )


def _interval(one: ContrastOutcome) -> str:
    """The interval that decides, or would, with its level."""
    assert one.estimate and one.metric
    error = one.errors.does_not_hold if one.verdict is Verdict.DOES_NOT_HOLD else one.errors.holds
    # A one-sided test uses the interval that leaves out as much at one end as the two-sided one does at both.
    one_sided = one.verdict is not Verdict.DOES_NOT_HOLD and one.contrast.expect is not Expect.BETTER
    level = 1 - (2 * error if one_sided else error)
    return f"{interval(one.estimate.interval(level), one.metric)} ({100 * level:.4g}%)"


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


def _more(one: ContrastOutcome) -> str:
    if one.verdict is not Verdict.CANNOT_TELL:
        return ""
    return str(one.more) if one.more is not None else "none in sight"


def _remarks(found: SettingVerdict) -> Iterator[str]:
    outcomes = found.outcomes
    tested = [one for one in outcomes if one.estimate]
    if tested:
        errors = dict.fromkeys(over(one.estimate.documents) for one in tested if one.estimate)
        nats = any(one.metric and one.metric.in_nats for one in tested)
        levels = sorted({1 - error for one in tested for error in one.errors})
        yield (
            f"Differences of means{', of perplexities in nats' if nats else ''}, t from the spread of these "
            f"cells alone, with cautious degrees of freedom, over {' or '.join(errors)}; decided at "
            f"{' and '.join(f'{100 * level:.4g}%' for level in levels)}, since contrasts share 5%; more seeds: for a "
            "decision with probability 0.8 if the difference stays."
        )
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
    missing = dict.fromkeys(
        _contrast(one.contrast) + (f" ({where})" if (where := setting(_selector(one, found.setting))) else "")
        for one in outcomes
        if not one.metric
    )
    if missing:
        yield f"No cells here for {'; '.join(missing)}."
