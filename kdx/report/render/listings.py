"""What goes below or beside a table, row by row in words, so that a format need know only one shape.

Each cell's statistics, differences between cells, published values beside ours, and the answers to claims.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kdx.grid.plan import Shown
from kdx.report.papers.contrasted_cells import following
from kdx.report.papers.decisions import ContrastOutcome, Verdict
from kdx.report.papers.paper_file import Claim, Contrast, Expect
from kdx.report.papers.published_comparison import Agreement, PublishedComparison
from kdx.report.papers.verdicts import Answer, SettingVerdict
from kdx.report.render.wording import (
    LEVELS,
    difference,
    equals,
    interval,
    probability,
    rounded,
    setting,
    signed,
    told,
)
from kdx.report.selection.cells import Cell
from kdx.report.statistics.estimates import Estimate
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.comparisons import Difference
from kdx.report.table.table import Table

OVER_SENTENCES = ("BLEU of the selected runs", "p over sentences")
"""Headers of what a randomisation of sentences adds to the differences."""
_RATES = "of those that ended, with Wilson's interval"


@dataclass(frozen=True)
class Listing:
    """A plain table of words."""

    title: str
    key: tuple[str, ...]
    """What no other listing of a report has: its table and what it is of that, such as `differences`."""
    headers: tuple[str, ...]
    names: int
    """So many columns on the left are names; those after them are numbers, aligned to the right."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def listings(table: Table, *, statistics: bool) -> Iterator[Listing]:
    """What belongs to a table: differences where it declares a baseline, published values where they were asked for.

    Args:
        statistics: each cell's statistics, and differences from the best where no baseline is declared.
    """
    if statistics and table.layout.cells:
        yield _cells(table)
    if table.differences and (statistics or table.baseline or table.randomisations):
        yield _differences(table)
    if table.published:
        yield _published(table, table.published)


def claim(answer: Answer) -> Iterator[Listing]:
    """What each setting says of a claim, and each contrast that it rests on; those without cells are in a note."""
    for index, one in enumerate(answer.settings):
        yield _claim(answer.claim, one, first=index == 0)


def _claim(claim: Claim, found: SettingVerdict, *, first: bool) -> Listing:
    there = [one for one in found.outcomes if one.metric]
    # What all contrasts have in common need not stand on each line.
    selectors = [_selector(one, found.setting) for one in there]
    varying = [factor for where in selectors for factor in where if len({other.get(factor) for other in selectors}) > 1]
    rows = []
    for one, where in zip(there, selectors, strict=True):
        assert one.metric
        words = setting({factor: word for factor, word in where.items() if factor in varying})
        rows.append(
            (
                _contrast(one.contrast) + (f" ({words})" if words else ""),
                _expected(one.contrast),
                difference(one.estimate.value, one.metric) if one.estimate else "–",
                interval(one.interval, one.metric) if one.interval else "–",
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
        headers=("a over b", "expected", "a better by", "95% interval", "n", "verdict", "more seeds"),
        names=2,
        rows=tuple(rows),
        notes=(*notes, *dict.fromkeys(_remarks(found))),
    )


def _cells(table: Table) -> Listing:
    cells = table.layout.places
    # Of as many seeds as there are it would be the selected score again.
    draws = table.layout.fewest - 1
    diverged = any(cell.diverged for cell in table.layout.cells)
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    headers = [*factors, "metric", "n", "mean", "sd", "95% interval", *([f"best of {draws}"] if draws > 0 else [])]
    rows = []
    for at, cell in cells.items():
        metric, summary = cell.metric.name, cell.summary
        half = summary.half_width if summary else None
        row = [
            *table.layout.header(at).values(),
            str(cell.metric),
            str(summary.n if summary else 0),
            rounded(summary.mean, metric) if summary else "–",
            rounded(summary.sd, metric) if summary and summary.sd is not None else "–",
            interval((summary.mean - half, summary.mean + half), metric) if summary and half is not None else "–",
        ]
        if draws > 0:
            expected = cell.expected(draws)
            row.append(rounded(expected, metric) if expected is not None else "–")
        if diverged:
            row.append(_rate(cell))
        rows.append(tuple(row))
    notes = ["95% interval of the mean by Student's t, of each cell alone."]
    if draws > 0:
        notes.append(
            f"best of {draws}: expected score of the best-validation seed among {draws}, unbiased (Tang et al. "
            "2020); unlike the selected score it does not grow with the number of seeds."
        )
    if diverged:
        headers.append("diverged")
        notes.append(f"diverged: share {_RATES}.")
    title, key = f"{table.layout.name}: each cell over its seeds", (table.layout.name, "cells")
    return Listing(title, key, tuple(headers), len(factors) + 1, tuple(rows), tuple(notes))


def _differences(table: Table) -> Listing:
    found = table.differences
    margins = any(one.margin is not None for one in found)
    randomised = bool(table.randomisations)
    nats = any(one.metric.in_nats for one in found)
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    names = [*factors] if table.baseline else [*factors, "against"]
    headers = [*names, "better by", "95% interval", *(["ratio"] if nats else []), "p", "effect", "n"]
    headers += ["within margin"] if margins else []
    headers += OVER_SENTENCES if randomised else []
    rows = []
    for one in found:
        metric, estimate = one.metric, one.estimate
        row = [
            *table.layout.header(one.at).values(),
            *([] if table.baseline else [_other(table, one)]),
            difference(estimate.value, metric) if estimate else "–",
            interval(estimate.interval(), metric) if estimate else "–",
            *([_ratio(estimate, metric)] if nats else []),
            probability(one.p) if one.p is not None else "–",
            signed(estimate.effect, "effect") if estimate else "–",
            str(one.n),
        ]
        if margins:
            row.append(
                "–"
                if one.margin is None or one.p_equivalent is None
                else f"{difference(one.margin, metric).lstrip('+')}: {'yes' if one.equivalent else 'not shown'} "
                f"(p {probability(one.p_equivalent)})"
            )
        if randomised:
            over = table.randomisations.get(one.at)
            row += [signed(over.gain, "bleu"), probability(over.p)] if over else ["–", "–"]
        rows.append(tuple(row))
    against = ", ".join(told(*one) for one in table.baseline.items()) or "the best of the column"
    tested = next((group.comparisons for group in table.groups), 0)
    over_all = f"{tested} difference{'' if tested == 1 else 's'}"
    correction = f"two-sided, Holm's correction over {over_all}"
    if not table.baseline:
        # The best was chosen by the same runs.
        correction = (
            f"that it is no worse, one-sided, times {tested} comparison{'' if tested == 1 else 's'} with the best"
        )
    notes = [
        "better by: difference of the means, positive where the cell is better than the one it stands against"
        + ("; of perplexities in nats, with the ratio of the two." if nats else "."),
        f"p: Welch's t from the spread of these two cells alone; {correction}.",
        "95% interval: of each difference alone, not corrected.",
        "effect: in standard deviations over seeds (Hedges' g).",
    ]
    notes += ["within margin: two one-sided tests (TOST) at 0.05, not corrected."] if margins else []
    first = next(iter(table.randomisations.values()), None)
    if first:
        notes.append(
            f"p over sentences: approximate randomisation of BLEU, {first.trials:,} exchanges of translations of "
            f"{first.sentences:,} test sentences, for the one selected run of each cell and each difference alone, not "
            "corrected; it says nothing about other seeds."
        )
    title, key = f"{table.layout.name}: differences from {against}", (table.layout.name, "differences")
    return Listing(title, key, tuple(headers), len(names), tuple(rows), tuple(notes))


def _ratio(estimate: Estimate | None, metric: Metric) -> str:
    """A gain in nats as perplexity over perplexity, with its interval."""
    if estimate is None or not metric.in_nats:
        return "–"
    low, high = estimate.interval()
    value, below, above = (f"{ratio(one):.3f}" for one in (estimate.value, high, low))
    return f"{value} ({below} to {above})"


def _other(table: Table, one: Difference) -> str:
    """What a cell is compared with, by the words in which the two differ."""
    own, other = table.layout.header(one.at), table.layout.header(one.against)
    return LEVELS.join(told(factor, word) for factor, word in other.items() if own[factor] != word)


def _published(table: Table, found: PublishedComparison) -> Listing:
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    same = any(pair.same_corpus for pair in found.pairs)
    other = any(not pair.same_corpus for pair in found.pairs)
    rows = []
    for pair in found.pairs:
        metric = pair.metric.name
        rows.append(
            (
                *table.layout.header(pair.at).values(),
                str(pair.metric),
                ", ".join(pair.tables),
                "not converge" if pair.published is None else rounded(pair.published, metric),
                "not converge" if pair.diverged else "–" if pair.ours is None else rounded(pair.ours, metric),
                *(["–" if pair.gain is None else signed(pair.gain, metric)] if same else []),
                *((map(str, pair.places) if pair.places and not pair.same_corpus else ("–", "–")) if other else ()),
            )
        )
    paper = found.paper
    shown = "the best-validation seed's score" if table.layout.shown is Shown.BEST_SEED else "the mean over seeds"
    notes = [f"Published: {'; '.join(filter(None, (paper.source, paper.protocol)))}."]
    notes.append(f"Ours: {shown}{'; better by: positive where ours is better' if same else ''}.")
    if other:
        notes.append("Place: in the order of each side, 1 the best; numbers of another corpus compare by their order.")
    if not found.pairs:
        notes = [notes[0], "It has no cell of this table."]
    noted: dict[str, dict[str, None]] = {}
    for pair in found.pairs:
        if pair.note and pair.published is not None:
            noted.setdefault(pair.note, {})[rounded(pair.published, pair.metric.name)] = None
    notes += [f"{' and '.join(values)}: {note}" for note, values in noted.items()]
    for task, ours in found.scale.items():
        published = f"; published: {paper.scale[task]}" if task in paper.scale else ""
        notes.append(f"Scale ({task}): ours {ours}{published}.")
    notes += [_agreement(one) for one in found.agreement]
    columns = ["published", "ours", *(["better by"] if same else [])]
    columns += ["place, published", "place, ours"] if other else []
    return Listing(
        title=f"{table.layout.name}: beside {paper.title or paper.name}",
        key=(table.layout.name, "published"),
        headers=(*factors, "metric", "from", *columns),
        names=len(factors) + 2,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _agreement(one: Agreement) -> str:
    what = f"Order of {one.n} cell{'' if one.n == 1 else 's'} ({one.task}, {one.corpus}, {one.metric.name})"
    if one.tau is None or one.p is None:
        return f"{what}: too few that differ to be ranked."
    return f"{what}: Kendall's τ = {signed(one.tau, '')} (p {equals(one.p)}); what did not converge ranks last."


def _rate(cell: Cell) -> str:
    ended = cell.diverged + cell.completed
    if not ended:
        return "–"
    low, high = cell.divergence_rate
    return f"{cell.diverged}/{ended} ({low:.0%} to {high:.0%})"


def _contrast(contrast: Contrast) -> str:
    """Both sides, each by the words in which they differ, without what only follows from others that both have."""
    differ = {
        factor for factor in contrast.a.keys() | contrast.b.keys() if contrast.a.get(factor) != contrast.b.get(factor)
    }
    differ -= following(differ & contrast.a.keys() & contrast.b.keys())

    def side(its: Mapping[str, str]) -> str:
        return " ".join(told(factor, word) for factor, word in its.items() if factor in differ)

    return f"{side(contrast.a)} over {side(contrast.b)}"


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
        nats = any(one.metric and one.metric.in_nats for one in tested)
        levels = sorted({1 - error for one in tested for error in one.errors})
        yield (
            f"Differences of means{', of perplexities in nats' if nats else ''}, Welch's t from the spread of these "
            f"cells alone; decided at {' and '.join(f'{100 * level:.4g}%' for level in levels)}, since contrasts share "
            "5%; "
            "more seeds: for a decision with probability 0.8 if the difference stays."
        )
    for one in outcomes:
        if one.rates:
            yield (
                f"{_contrast(one.contrast)}: {one.diverged[0]}/{one.ended[0]} against {one.diverged[1]}/{one.ended[1]} "
                f"runs diverged; difference of the rates {one.rates[0]:.0%} to {one.rates[1]:.0%}."
            )
    for told_of, what in (("over", "averaged over"), ("confounders", "the sides differ also in")):
        by_factors: dict[tuple[str, ...], dict[str, None]] = {}
        for one in outcomes:
            if its := getattr(one, told_of):
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
