"""Listings that belong to a table: each cell's statistics, differences between cells, published values, and
the settings that searches found."""

from collections.abc import Iterator

from kdx.report.selection.cells import Cell
from kdx.report.sheet import Sheet
from kdx.report.sheets.published import published_values
from kdx.report.sheets.searches import tuned_settings
from kdx.report.statistics.estimates import Estimate
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.comparisons import Difference
from kdx.report.table.table import Table
from kdx.report.wording import LEVELS, correction, difference, interval, probability, rounded, signed, word_of

OVER_SENTENCES = ("BLEU of the selected runs", "p over sentences")
"""Headers of the columns that a randomisation of sentences adds to the differences."""
MEAN = "mean"
"""Header of the column beside a difference from a baseline."""
_RATES = "of those that ended, with Wilson's interval"


def listings(table: Table, *, statistics: bool) -> Iterator[Sheet]:
    """The listings of a table: differences where it declares a baseline, and published values and settings that
    searches found where it has them.

    Args:
        statistics: adds each cell's statistics, and differences from the best where no baseline is declared.
    """
    if statistics and table.layout.cells:
        yield _cells(table)
    if table.differences and (statistics or table.baseline or table.randomisations):
        yield _differences(table)
    if table.published:
        yield published_values(table.layout, table.published)
    if table.searches:
        yield tuned_settings(table)


def _cells(table: Table) -> Sheet:
    cells = table.layout.places
    # With all seeds of a cell it would be the selected score again.
    draws = table.layout.fewest - 1
    diverged = any(cell.diverged for cell in table.layout.cells)
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    headers = [*factors, "metric", "n", "mean", "sd", "95% interval", *([f"best of {draws}"] if draws > 0 else [])]
    rows = []
    for at, cell in cells.items():
        metric, summary = cell.metric.name, cell.summary
        row = [
            *table.layout.header(at).values(),
            str(cell.metric),
            str(summary.n if summary else 0),
            rounded(summary.mean, metric) if summary else "–",
            rounded(summary.sd, metric) if summary and summary.sd is not None else "–",
            interval(cell.interval, metric) if cell.interval else "–",
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
    return Sheet(title, key, tuple(headers), len(factors) + 1, tuple(rows), tuple(notes))


def _mean(table: Table, difference: Difference) -> str:
    """The mean of the cell over its seeds, in the metric's own units."""
    summary = table.layout.places[difference.at].summary
    return rounded(summary.mean, difference.metric.name) if summary else "–"


def _differences(table: Table) -> Sheet:
    differences = table.differences
    margins = any(compared.margin is not None for compared in differences)
    randomised = bool(table.randomisations)
    nats = any(compared.metric.in_nats for compared in differences)
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    names = [*factors] if table.baseline else [*factors, "against"]
    means = [MEAN] if table.baseline else []
    headers = [
        *names,
        *means,
        "better by",
        "95% interval",
        *(["ratio"] if nats else []),
        "p",
        "corrected p",
        "effect",
        "n",
    ]
    headers += ["within margin"] if margins else []
    headers += OVER_SENTENCES if randomised else []
    rows = []
    for compared in differences:
        metric, estimate = compared.metric, compared.estimate
        row = [
            *table.layout.header(compared.at).values(),
            *([_mean(table, compared)] if table.baseline else [_other(table, compared)]),
            difference(estimate.value, metric) if estimate else "–",
            interval(estimate.interval(), metric) if estimate else "–",
            *([_ratio(estimate, metric)] if nats else []),
            probability(estimate.p) if estimate else "–",
            probability(compared.p) if compared.p is not None else "–",
            signed(estimate.effect, "effect") if estimate else "–",
            str(compared.n),
        ]
        if margins:
            row.append(
                "–"
                if compared.margin is None or compared.p_equivalent is None
                else f"{difference(compared.margin, metric).lstrip('+')}: "
                f"{'yes' if compared.equivalent else 'not shown'} (p {probability(compared.p_equivalent)})"
            )
        if randomised:
            over = table.randomisations.get(compared.at)
            row += [signed(over.gain, "bleu"), probability(over.p)] if over else ["–", "–"]
        rows.append(tuple(row))
    against = ", ".join(word_of(*factor) for factor in table.baseline.items()) or "the best of the column"
    by_rule = any(compared.estimate and compared.estimate.look for compared in differences)
    notes = [
        "better by: difference of the means, positive where the cell is better than the one it stands against"
        + ("; of perplexities in nats, with the ratio of the two." if nats else "."),
        "95% interval, p: of each difference alone, two-sided, not corrected; t from the spread of these two cells "
        f"alone, {'over all looks' if by_rule else 'with cautious degrees of freedom'}.",
        f"corrected p: {correction(table)}{'' if table.baseline else '; the marks rest on it'}.",
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
    return Sheet(title, key, tuple(headers), len(names), tuple(rows), tuple(notes))


def _ratio(estimate: Estimate | None, metric: Metric) -> str:
    """A gain in nats as perplexity over perplexity, with its interval."""
    if estimate is None or not metric.in_nats:
        return "–"
    low, high = estimate.interval()
    value, below, above = (f"{ratio(gain):.3f}" for gain in (estimate.value, high, low))
    return f"{value} ({below} to {above})"


def _other(table: Table, difference: Difference) -> str:
    """What a cell is compared with, by the words in which the two differ."""
    own, other = table.layout.header(difference.at), table.layout.header(difference.against)
    return LEVELS.join(word_of(factor, word) for factor, word in other.items() if own[factor] != word)


def _rate(cell: Cell) -> str:
    ended = cell.diverged + cell.completed
    if not ended:
        return "–"
    low, high = cell.divergence_rate
    return f"{cell.diverged}/{ended} ({low:.0%} to {high:.0%})"
