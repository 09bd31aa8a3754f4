"""What goes below or beside a table, row by row in words, so that a format need know only one shape.

Each cell's statistics, differences between cells, published values beside ours, and the answers to claims.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdx.grid.plan import Shown
from kdx.report.against import Agreement, Beside
from kdx.report.cells import Cell
from kdx.report.claims import Answer, Outcome, Verdict, following
from kdx.report.comparisons import Difference
from kdx.report.papers import Contrast, Expect
from kdx.report.table import Table
from kdx.report.wording import LEVELS, equals, probability, rounded, setting, signed, told

OF_BOOTSTRAP = ("BLEU of the selected runs", "p over sentences")
"""Headers of what a bootstrap adds to the differences."""
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
    if statistics and table.cells:
        yield _cells(table)
    bootstrapped = any(one.bootstrap for one in table.differences)
    if table.differences and (statistics or table.baseline or bootstrapped):
        yield _differences(table)
    if table.beside:
        yield _beside(table, table.beside)


def claim(answer: Answer) -> Listing:
    """A claim's verdict, and each comparison that it rests on; those without cells are named in a note."""
    rows = []
    for one in answer.outcomes:
        if not one.metric:
            continue
        metric, interval = one.metric.name, one.interval
        rows.append(
            (
                _contrast(one.contrast),
                _expected(one.contrast),
                _where(one),
                signed(one.estimate.value, metric) if one.estimate else "–",
                _interval(interval, metric) if interval else "–",
                str(one.n),
                str(one.verdict),
                _more(one),
            )
        )
    notes = [f"Source: {answer.claim.source}."] if answer.claim.source else []
    return Listing(
        title=f"{answer.claim.id}: {answer.verdict}: {answer.claim.statement}",
        key=(answer.claim.id,),
        headers=("a over b", "expected", "where", "a better by", "interval", "n", "verdict", "more seeds"),
        names=3,
        rows=tuple(rows),
        notes=(*notes, *dict.fromkeys(_remarks(answer.outcomes))),
    )


def _cells(table: Table) -> Listing:
    cells = table.places
    fewest = table.fewest
    diverged = any(cell.diverged for cell in table.cells)
    factors = (*table.row_factors, *table.column_factors)
    headers = [*factors, "metric", "n", "mean", "sd", "95% interval", *([f"best of {fewest}"] if fewest else [])]
    rows = []
    for at, cell in cells.items():
        metric, summary = cell.metric.name, cell.summary
        half = summary.half_width if summary else None
        row = [
            *table.header(at).values(),
            str(cell.metric),
            str(summary.n if summary else 0),
            rounded(summary.mean, metric) if summary else "–",
            rounded(summary.sd, metric) if summary and summary.sd is not None else "–",
            _interval((summary.mean - half, summary.mean + half), metric) if summary and half is not None else "–",
        ]
        if fewest:
            expected = cell.expected(fewest)
            row.append(rounded(expected, metric) if expected is not None else "–")
        if diverged:
            row.append(_rate(cell))
        rows.append(tuple(row))
    notes = ["95% interval of the mean by Student's t, of each cell alone."]
    if fewest:
        notes.append(
            f"best of {fewest}: expected score of the best-validation seed among {fewest}, unbiased (Tang et al. "
            "2020); unlike the selected score it does not grow with the number of seeds."
        )
    if diverged:
        headers.append("diverged")
        notes.append(f"diverged: share {_RATES}.")
    title, key = f"{table.name}: each cell over its seeds", (table.name, "cells")
    return Listing(title, key, tuple(headers), len(factors) + 1, tuple(rows), tuple(notes))


def _differences(table: Table) -> Listing:
    found = table.differences
    margins = any(one.margin is not None for one in found)
    bootstrapped = any(one.bootstrap for one in found)
    factors = (*table.row_factors, *table.column_factors)
    names = [*factors] if table.baseline else [*factors, "against"]
    headers = [*names, "better by", "95% interval", "p", "effect", "n"]
    headers += ["within margin"] if margins else []
    headers += OF_BOOTSTRAP if bootstrapped else []
    rows = []
    for one in found:
        metric, estimate = one.metric.name, one.estimate
        row = [
            *table.header(one.at).values(),
            *([] if table.baseline else [_other(table, one)]),
            signed(estimate.value, metric) if estimate else "–",
            _interval(estimate.interval(), metric) if estimate else "–",
            probability(one.p) if one.p is not None else "–",
            signed(estimate.effect, metric) if estimate else "–",
            str(one.n),
        ]
        if margins:
            row.append(
                "–"
                if one.margin is None or one.p_equivalent is None
                else f"{rounded(one.margin, metric)}: {'yes' if one.equivalent else 'not shown'} "
                f"(p {probability(one.p_equivalent)})"
            )
        if bootstrapped:
            boot = one.bootstrap
            row += [signed(boot.gain, "bleu"), probability(boot.p)] if boot else ["–", "–"]
        rows.append(tuple(row))
    against = ", ".join(told(*one) for one in table.baseline.items()) or "the best of the column"
    tested = next((pool.comparisons for pool in table.pools), 0)
    over = f"{tested} difference{'' if tested == 1 else 's'}"
    if not table.baseline:
        # The best was chosen by the same runs.
        over = f"{tested} pair{'' if tested == 1 else 's'} of cells, all that stand in one column"
    notes = [
        "better by: difference of the means, positive where the cell is better than the one it stands against.",
        f"p: two-sided, paired by seed, residual variance pooled over comparable cells, Holm's correction over {over}.",
        "95% interval: of each difference alone, not corrected.",
        "effect: in residual standard deviations (Hedges' g).",
    ]
    notes += ["within margin: two one-sided tests (TOST) at 0.05, not corrected."] if margins else []
    first = next((one.bootstrap for one in found if one.bootstrap), None)
    if first:
        notes.append(
            f"p over sentences: paired bootstrap of BLEU, {first.samples:,} resamples of {first.sentences:,} test "
            "sentences, for the one selected run of each cell and each difference alone, not corrected; it says "
            "nothing about other seeds."
        )
    title, key = f"{table.name}: differences from {against}", (table.name, "differences")
    return Listing(title, key, tuple(headers), len(names), tuple(rows), tuple(notes))


def _other(table: Table, one: Difference) -> str:
    """What a cell is compared with, by the words in which the two differ."""
    own, other = table.header(one.at), table.header(one.against)
    return LEVELS.join(told(factor, word) for factor, word in other.items() if own[factor] != word)


def _beside(table: Table, beside: Beside) -> Listing:
    factors = (*table.row_factors, *table.column_factors)
    rows = []
    for pair in beside.pairs:
        metric = pair.metric.name
        rows.append(
            (
                *table.header(pair.at).values(),
                str(pair.metric),
                ", ".join(pair.tables),
                "not converge" if pair.published is None else rounded(pair.published, metric),
                "not converge" if pair.diverged else "–" if pair.ours is None else rounded(pair.ours, metric),
                "–" if pair.gain is None else signed(pair.gain, metric),
            )
        )
    paper = beside.paper
    shown = "the best-validation seed's score" if table.shown is Shown.BEST_SEED else "the mean over seeds"
    notes = [f"Published: {'; '.join(filter(None, (paper.source, paper.protocol)))}."]
    notes.append(f"Ours: {shown}; better by: positive where ours is better.")
    if not beside.pairs:
        notes = [notes[0], "It has no cell of this table."]
    noted: dict[str, dict[str, None]] = {}
    for pair in beside.pairs:
        if pair.note and pair.published is not None:
            noted.setdefault(pair.note, {})[rounded(pair.published, pair.metric.name)] = None
    notes += [f"{' and '.join(values)}: {note}" for note, values in noted.items()]
    for task, ours in beside.scale.items():
        published = f"; published: {paper.scale[task]}" if task in paper.scale else ""
        notes.append(f"Scale ({task}): ours {ours}{published}.")
    notes += [_agreement(one) for one in beside.agreement]
    return Listing(
        title=f"{table.name}: beside {paper.title or paper.name}",
        key=(table.name, "published"),
        headers=(*factors, "metric", "from", "published", "ours", "better by"),
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


def _interval(interval: tuple[float, float], metric: str) -> str:
    low, high = interval
    return f"{rounded(low, metric)} to {rounded(high, metric)}".replace("-", "−")


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
    return f"{contrast.expect} {joint} {contrast.margin:g}"


def _where(one: Outcome) -> str:
    return setting({**one.setting, **{k: word for k, word in one.contrast.where.items() if k not in one.setting}})


def _more(one: Outcome) -> str:
    if one.verdict is not Verdict.CANNOT_TELL:
        return ""
    return str(one.more) if one.more is not None else "none in sight"


def _remarks(outcomes: Sequence[Outcome]) -> Iterator[str]:
    levels = sorted({one.level for one in outcomes if one.estimate})
    if levels:
        intervals = " and ".join(f"{100 * level:.4g}%" for level in levels)
        yield (
            "Differences of means, paired by seed, residual variance pooled over all cells at hand of the same "
            f"setting; {intervals} intervals; more seeds: for a decision with probability 0.8 if the difference stays."
        )
    for one in outcomes:
        if one.estimate and one.unequal is not None and one.unequal < 0.05:
            yield (
                f"Beware: the {one.pooled} cells of {setting(one.setting)} spread unequally (Bartlett's p "
                f"{equals(one.unequal)}), so this is too strict for the steady ones and too lenient for the others."
            )
        if one.rates:
            yield (
                f"{_contrast(one.contrast)}: {one.diverged[0]}/{one.ended[0]} against {one.diverged[1]}/{one.ended[1]} "
                f"runs diverged; difference of the rates {one.rates[0]:.0%} to {one.rates[1]:.0%}."
            )
        if one.over:
            yield f"{_contrast(one.contrast)}: averaged over {', '.join(one.over)}."
        if one.also:
            yield f"{_contrast(one.contrast)}: the sides differ in {', '.join(one.also)}, too."
        if one.reason and one.metric:
            yield f"{_contrast(one.contrast)}: {one.reason}."
    missing = [
        _contrast(one.contrast) + (f" ({where})" if (where := _where(one)) else "")
        for one in outcomes
        if not one.metric
    ]
    if missing:
        yield f"No cells here for {'; '.join(missing)}."
