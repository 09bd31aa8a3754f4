"""Listings of the verdicts on claims."""

from collections.abc import Iterator, Mapping, Sequence

from kdx.grid.words import owners
from kdx.report.papers.contrasted_cells import ContrastedCells, following
from kdx.report.papers.paper_file import Claim, Contrast, Expect, Paper, Rule
from kdx.report.papers.verdicts import NO_CELLS, Answer, ContrastOutcome, SettingVerdict, Verdict
from kdx.report.sheet import Sheet, listing
from kdx.report.statistics.by_document import over
from kdx.report.table.notes import CONDITIONAL
from kdx.report.wording import difference, interval, setting, word_of
from kdx.shell import kdx_command

CONFOUNDED = ", confounded"
"""The end of the verdict of a summary where the sides of a contrast that decides differ in more than it names."""


def claim(answer: Answer) -> Iterator[Sheet]:
    """A listing for each setting of a claim, with its contrasts; contrasts without cells stand in a note.

    A claim that no run tests has none (`not_tested`).
    """
    for index, verdict in enumerate(answer.tested):
        yield _claim(answer.claim, verdict, first=index == 0)


def of_papers(papers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> Iterator[tuple[str, list[Sheet]]]:
    """The heading of each paper with the listings of its claims.

    Args:
        options: see `not_tested`.
    """
    for paper, answers in papers:
        listings = [listing for answer in answers for listing in claim(answer)]
        yield heading(paper), [*summary(answers), *listings, *not_tested(answers, options)]


def heading(paper: Paper) -> str:
    """The title of a paper, and where it was published."""
    return f"{paper.title or paper.name}. {paper.source}".rstrip()


def summary(answers: Sequence[Answer]) -> Iterator[Sheet]:
    """One listing of the verdict on each claim in each setting, and how verdicts come about; none without a verdict."""
    tested = [answer for answer in answers if answer.tested]
    if not tested:
        return
    decided = [verdict for answer in tested for verdict in answer.tested]
    settings = {setting(verdict.setting): verdict.setting for verdict in decided}
    verdicts = [{setting(each.setting): each for each in answer.tested} for answer in tested]
    columns = [
        (name, [_short(of_claim[key]) if key in of_claim else "–" for of_claim in verdicts])
        for key, name in zip(settings, _distinguished([*settings.values()]), strict=True)
    ]
    estimates = [outcome for verdict in decided for outcome in verdict.outcomes if outcome.estimate]
    notes = []
    if any(verdict.confounders for verdict in decided):
        notes.append("confounded: the sides of a contrast that decides differ in more than what it names.")
    if estimates:
        nats = ", of perplexities in nats" if any(each.metric and each.metric.in_nats for each in estimates) else ""
        notes.append(
            f"a better by: difference of the means{nats}; t from the spread of the cells of both sides alone, with "
            "cautious degrees of freedom. Each interval is the one used for the verdict (one-sided where the claim "
            "is); the contrasts of a claim share its 5%."
        )
        if not all(each.estimate and each.estimate.look for each in estimates):
            notes.append(
                "Seeds added after a look at the results are not allowed for; seeds: {min: …, max: …, until: decided} "
                "in the grid allows for every look."
            )
    if any(outcome.more for outcome in estimates):
        notes.append("more seeds: for a decision with probability 0.8 if the difference stays.")
    yield listing("Verdicts", ("verdicts",), [("claim", [answer.claim.id for answer in tested])], columns, notes)


def _short(verdict: SettingVerdict) -> str:
    """A verdict in a few words; what it is confounded by stands at the claim."""
    if verdict.confounders:
        return f"{verdict.verdict}{CONFOUNDED}"
    seeds = "seed" if verdict.more == 1 else "seeds"
    more = f" ({verdict.more:,} more {seeds})" if verdict.verdict is Verdict.CANNOT_TELL and verdict.more else ""
    return f"{verdict.verdict}{more}"


def _distinguished(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The first words of each setting, as many as distinguish all of them."""
    for count in range(1, max(map(len, settings)) + 1):
        names = [setting(dict([*words.items()][:count])) for words in settings]
        if len(set(names)) == len(names):
            return names
    return [*map(setting, settings)]


def not_tested(answers: Sequence[Answer], options: str = "") -> Iterator[Sheet]:
    """One listing of the claims that no run tests, with the commands that would; none where there is no such claim.

    Args:
        options: of these commands, such as ` --db FILE`.
    """
    untested = [answer for answer in answers if not answer.tested]
    if not untested:
        return
    notes = [
        f"{answer.claim.id}: {text}"
        for answer in untested
        for text in _missing(answer.settings[0])
        if not answer.claim.grids or any(outcome.reason != NO_CELLS for outcome in answer.settings[0].outcomes)
    ]
    columns = [
        ("claim", [answer.claim.id for answer in untested]),
        ("statement", [answer.claim.statement for answer in untested]),
        ("tested by", [_tested_by(answer.claim, options) for answer in untested]),
    ]
    title = f"{Verdict.NOT_TESTED.capitalize()}: no contrast has runs of both sides"
    yield listing(title, (Verdict.NOT_TESTED,), columns, [], notes)


def _tested_by(claim: Claim, options: str) -> str:
    return "; ".join(kdx_command("sweep", grid, options=options) for grid in claim.grids) or "–"


def _claim(claim: Claim, verdict: SettingVerdict, *, first: bool) -> Sheet:
    with_cells = [outcome for outcome in verdict.outcomes if outcome.cells]
    levels = {outcome.level for outcome in with_cells}
    same = len(levels) == 1
    contrasts = contrast_names(with_cells, verdict.setting)
    names = [("a over b", contrasts), ("expected", [_expected(outcome.contrast) for outcome in with_cells])]
    estimates = [(outcome.estimate, outcome.metric) for outcome in with_cells]
    units = {metric.scale_in_words for _, metric in estimates if metric}
    columns = [
        (
            "a better by" + (f" ({units.pop()})" if len(units) == 1 else ""),
            [difference(each.value, metric) if each and metric else "–" for each, metric in estimates],
        ),
        (
            f"{100 * levels.pop():.4g}% interval" if same else "interval",
            [_interval(outcome, named=not same) for outcome in with_cells],
        ),
        ("n", [_seeds(outcome.cells) for outcome in with_cells if outcome.cells]),
        ("verdict", [str(outcome.verdict) for outcome in with_cells]),
    ]
    more = [_more(outcome) for outcome in with_cells]
    columns += [("more seeds", more)] if any(more) else []
    at = f" ({setting(verdict.setting)})" if verdict.setting else ""
    notes = [f"Source: {claim.source}."] if claim.source and first else []
    rule = _rule(claim.holds, {id(outcome.contrast): name for outcome, name in zip(with_cells, contrasts, strict=True)})
    # Of most claims all contrasts have to hold.
    notes += [f"Needed: {rule[1:-1]}."] if " or " in rule else []
    notes += dict.fromkeys(_remarks(verdict, paired=claim.pairs is not None))
    title = f"{claim.id}: {verdict}{at}: {claim.statement}"
    return listing(title, ("claim", claim.id, *verdict.setting.values()), names, columns, notes)


def _rule(rule: Rule, names: Mapping[int, str]) -> str:
    """What has to hold, in words; empty without a contrast that has a name.

    Args:
        names: contrast, by its `id` → its name.
    """
    parts = [_rule(part, names) if isinstance(part, Rule) else names.get(id(part), "") for part in rule.parts]
    known = [part for part in parts if part]
    text = (" and " if rule.all else " or ").join(known)
    return f"({text})" if len(known) > 1 else text


def contrast_names(outcomes: Sequence[ContrastOutcome], setting_words: Mapping[str, str]) -> list[str]:
    """The name of each contrast in a setting: its two sides, and in which cells where the contrasts differ in that."""
    selectors = [_selector(outcome, setting_words) for outcome in outcomes]
    varying = [factor for where in selectors for factor in where if len({other.get(factor) for other in selectors}) > 1]
    words = [setting({factor: word for factor, word in where.items() if factor in varying}) for where in selectors]
    return [
        _contrast(outcome.contrast) + (f" ({where})" if where else "")
        for outcome, where in zip(outcomes, words, strict=True)
    ]


def _contrast(contrast: Contrast) -> str:
    """Names both sides by the words in which they differ, without words that only follow from others."""
    differ = {
        factor for factor in contrast.a.keys() | contrast.b.keys() if contrast.a.get(factor) != contrast.b.get(factor)
    }
    both = differ & contrast.a.keys() & contrast.b.keys()
    a, b = ({word for factor in both for word in side[factor].split("+")} for side in (contrast.a, contrast.b))
    # An option that the words of one side bring along, and those of the other do not, follows from these words.
    brought = {factor for factor in differ if a.isdisjoint(owners(factor)) != b.isdisjoint(owners(factor))}
    differ -= following(both) | brought

    def side(words: Mapping[str, str]) -> str:
        return " ".join(word_of(factor, word) for factor, word in words.items() if factor in differ)

    return f"{side(contrast.a)} over {side(contrast.b)}"


def _expected(contrast: Contrast) -> str:
    if contrast.margin is None:
        return contrast.expect.replace("-", " ")
    margin = contrast.margin if isinstance(contrast.margin, str) else f"{contrast.margin:g}"
    return f"{_BY[contrast.expect]} {margin}"


_BY = {
    Expect.BETTER: "better by at least",
    Expect.NO_WORSE: "worse by at most",
    Expect.EQUIVALENT: "equivalent within",
}


def _selector(outcome: ContrastOutcome, setting: Mapping[str, str]) -> dict[str, str]:
    return {factor: word for factor, word in outcome.contrast.where.items() if factor not in setting}


def _seeds(cells: ContrastedCells) -> str:
    """The number of seeds of each cell, such as `3`, or `3–5` where they differ."""
    numbers = [len(cell.scores) for cell in cells.compared.values()]
    return "–".join(str(number) for number in sorted({min(numbers), max(numbers)}))


def _interval(outcome: ContrastOutcome, *, named: bool) -> str:
    if outcome.interval is None or outcome.metric is None:
        return "–"
    return interval(outcome.interval, outcome.metric) + (f" ({100 * outcome.level:.4g}%)" if named else "")


def _more(outcome: ContrastOutcome) -> str:
    if outcome.verdict is not Verdict.CANNOT_TELL:
        return ""
    return f"{outcome.more:,}" if outcome.more is not None else "none in sight"


def _remarks(verdict: SettingVerdict, *, paired: bool) -> Iterator[str]:
    outcomes = verdict.outcomes
    tested = [outcome for outcome in outcomes if outcome.estimate]
    if tested:
        scores = dict.fromkeys(outcome.metric.recorded for outcome in tested if outcome.metric)
        errors = dict.fromkeys(over(outcome.estimate.documents) for outcome in tested if outcome.estimate)
        spread = "t of the differences at each seed, as the claim declares, " if paired else ""
        yield f"Scores: {' or '.join(scores)}; intervals: {spread}over {' or '.join(errors)}."
    if any(outcome.cells and outcome.cells.searched for outcome in tested):
        yield f"A search found settings of these cells: {CONDITIONAL}."
    looked = [outcome for outcome in tested if outcome.estimate and outcome.estimate.look]
    if looked:
        which = (
            ""
            if len(looked) == len(tested)
            else f"{'; '.join(dict.fromkeys(_contrast(outcome.contrast) for outcome in looked))}: "
        )
        yield (
            f"{which}a rule added the seeds, with a look after each; intervals and verdicts are over the seeds of the "
            "last look of all cells and allow for all looks, as those of tables do."
        )
    for outcome in outcomes:
        if outcome.cells and (rates := outcome.rates):
            counts = zip(outcome.cells.diverged, outcome.cells.ended, strict=True)
            a, b = (f"{diverged}/{ended}" for diverged, ended in counts)
            low, high = rates
            interval_of_rates = f"{low:.0%} to {high:.0%}".replace("-", "−")
            yield (
                f"{_contrast(outcome.contrast)}: {a} against {b} runs diverged; difference of the rates "
                f"{interval_of_rates}."
            )
    for field, what in (("over", "averaged over"), ("confounders", "the sides differ also in")):
        by_factors: dict[tuple[str, ...], dict[str, None]] = {}
        for outcome in outcomes:
            if outcome.cells and (factors := getattr(outcome.cells, field)):
                by_factors.setdefault(factors, {})[_contrast(outcome.contrast)] = None
        for factors, contrasts in by_factors.items():
            yield f"{'; '.join(contrasts)}: {what} {', '.join(factors)}."
    for outcome in outcomes:
        if outcome.reason and outcome.cells:
            yield f"{_contrast(outcome.contrast)}: {outcome.reason}."
    yield from _missing(verdict)


def _missing(verdict: SettingVerdict) -> Iterator[str]:
    """The sentences on contrasts without cells, and on what keeps cells of both sides apart."""
    missing: dict[str, dict[str, None]] = {}
    for outcome in verdict.outcomes:
        if not outcome.cells:
            where = setting(_selector(outcome, verdict.setting))
            what = _contrast(outcome.contrast) + (f" ({where})" if where else "")
            missing.setdefault(outcome.reason, {})[what] = None
    for reason, contrasts in missing.items():
        yield f"No cells here for {'; '.join(contrasts)}{reason.removeprefix(NO_CELLS)}."
