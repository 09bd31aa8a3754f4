"""A table and the listings that belong to it: each cell's statistics, differences between cells, published values, and
the settings that searches found."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kdx.grid.plan import Shown
from kdx.metrics.decimals import rounded
from kdx.report.papers.published_comparison import Agreement, PublishedComparison
from kdx.report.selection.cells import Cell, State
from kdx.report.selection.searched import Edge, SearchedCell, space_in_words
from kdx.report.sheet import Sheet, listing
from kdx.report.sheets.notes import correction, errors_over
from kdx.report.sheets.scores import name_columns, score_or_dash, scores
from kdx.report.statistics.estimates import Estimate
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.report.tables import Table
from kdx.report.wording import difference, in_levels, interval, probability, signed, word_of
from kdx.store.records import TrialState

_NOT_CONVERGED = "did not converge"
_EDGE = "^"
"""The sign behind a setting at the edge of its range."""


def sheets_of(table: Table, *, statistics: bool, notes: str, best: str = "Bold") -> list[Sheet]:
    """A table and its listings.

    Args:
        statistics: see `listings`.
        notes: below each of them: `none`, `short`, or `full` (`kdx.report.sheets.notes.caption`).
        best: see `kdx.report.sheets.notes.caption`.
    """
    full = notes == "full"
    sheets = [scores(table, full=full, best=best), *listings(table, statistics=statistics, full=full)]
    return [replace(sheet, notes=()) for sheet in sheets] if notes == "none" else sheets


def listings(table: Table, *, statistics: bool, full: bool = False) -> Iterator[Sheet]:
    """The listings of a table: differences where it declares a baseline, and published values and settings that
    searches found where it has them.

    Args:
        statistics: adds each cell's statistics, and differences from the best where no baseline is declared.
        full: adds in what compared cells differ beside the factors of the table.
    """
    if statistics and table.layout.cells:
        yield _said_once(_cells(table))
    if table.differences and (statistics or table.baseline or table.randomisations):
        yield _said_once(_differences(table))
    if table.published:
        yield _said_once(_published(table.layout, table.published))
    if table.searches:
        yield tuned_settings(table)
    if full and any(fact.only_listed for fact in table.audit):
        yield _unequal(table)


def _said_once(sheet: Sheet) -> Sheet:
    """The sheet with the names that all of its rows share in its title, not in a column; so are n and the unit.

    Numbers that happen to be the same stay: another seed would bring their column back.
    """
    columns = [*zip(sheet.headers, *sheet.rows, strict=True)] if len(sheet.rows) > 1 else []
    repeatable = [at < sheet.names or header in ("n", "unit") for at, (header, *_) in enumerate(columns)]
    same = {at: str(column[1]) for at, column in enumerate(columns) if repeatable[at] and len({*column[1:]}) == 1}
    kept = [at for at in range(len(sheet.headers)) if at not in same]
    facts = (f"{sheet.headers[at]} {'= ' * text[:1].isdecimal()}{text}" for at, text in same.items())
    return replace(
        sheet,
        title=", ".join((sheet.title, *facts)),
        headers=tuple(sheet.headers[at] for at in kept),
        names=sum(at < sheet.names for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in sheet.rows),
    )


def _unequal(table: Table) -> Sheet:
    """The compared cells by the facts in which they differ beside the factors of their table."""
    facts = [fact for fact in table.audit if fact.only_listed]
    words = {(fact.topic, at): word for fact in facts for word, places in fact.values.items() for at in places}
    topics = list(dict.fromkeys(fact.topic for fact in facts))
    places = [at for at in table.layout.places if any((topic, at) in words for topic in topics)]
    columns = [(topic, [words.get((topic, at), "–") for at in places]) for topic in topics]
    alike = any("–" in column for _, column in columns)
    notes = ["–: no difference between this cell and those that it is compared with."] if alike else []
    name = table.layout.name
    return listing(f"{name}: how cells differ", (name, "unequal"), name_columns(table.layout, places), columns, notes)


def _cells(table: Table) -> Sheet:
    layout = table.layout
    places = layout.by_column
    cells = [layout.places[at] for at in places]
    # With all seeds of a cell it would be the selected score again.
    draws = layout.fewest - 1
    names = [*name_columns(layout, places), ("metric", [str(cell.metric) for cell in cells])]
    columns = [
        ("n", [str(cell.summary.n if cell.summary else 0) for cell in cells]),
        ("mean", [_mean(cell) for cell in cells]),
        ("sd", [score_or_dash(cell.summary.sd if cell.summary else None, cell.metric.name) for cell in cells]),
        ("95% interval", [interval(cell.interval, cell.metric.name) if cell.interval else "–" for cell in cells]),
    ]
    notes = [f"95% interval of the mean by Student's t, of each cell alone. {errors_over(table)}".rstrip()]
    if draws > 0:
        columns.append((f"best of {draws}", [score_or_dash(cell.expected(draws), cell.metric.name) for cell in cells]))
        notes.append(
            f"best of {draws}: expected score of the best-validation seed among {draws}, unbiased (Tang et al. "
            "2020); unlike the selected score it does not grow with the number of seeds."
        )
    if any(cell.diverged for cell in cells):
        columns.append(("diverged", [_rate(cell) for cell in cells]))
        notes.append("diverged: share of those that ended, with Wilson's interval.")
    return listing(f"{layout.name}: each cell over its seeds", (layout.name, "cells"), names, columns, notes)


def _mean(cell: Cell) -> str:
    """The mean of a cell over its seeds, in the metric's own units."""
    return score_or_dash(cell.summary.mean if cell.summary else None, cell.metric.name)


def _rate(cell: Cell) -> str:
    """The share of the runs of a cell that diverged, with its interval."""
    ended = cell.diverged + cell.completed
    if not ended:
        return "–"
    low, high = cell.divergence_rate
    return f"{cell.diverged}/{ended} ({low:.0%} to {high:.0%})"


def _differences(table: Table) -> Sheet:
    layout, differences = table.layout, table.differences
    nats = any(compared.metric.in_nats for compared in differences)
    names = name_columns(layout, [compared.at for compared in differences])
    columns = []
    if table.baseline:
        columns.append(("mean", [_mean(layout.places[compared.at]) for compared in differences]))
    else:
        names.append(("against", [_other(layout, compared) for compared in differences]))
    estimates = [(compared.estimate, compared.metric) for compared in differences]
    columns += [
        ("better by", [difference(each.value, metric) if each else "–" for each, metric in estimates]),
        ("unit", [metric.scale_in_words for _, metric in estimates]),
        ("95% interval", [interval(each.interval(), metric) if each else "–" for each, metric in estimates]),
        *([("ratio", [_ratio(*each) for each in estimates])] if nats else []),
        ("p", [probability(each.p) if each else "–" for each, _ in estimates]),
        ("corrected p", ["–" if compared.p is None else probability(compared.p) for compared in differences]),
        ("effect", [signed(each.effect, "effect") if each else "–" for each, _ in estimates]),
        ("n", [str(compared.n) for compared in differences]),
    ]
    against = ", ".join(word_of(*factor) for factor in table.baseline.items()) or "the best of the column"
    by_rule = any(each and each.look for each, _ in estimates)
    notes = [
        "better by: difference of the means, positive where the cell is better than the one it stands against"
        + ("; of perplexities in nats, with the ratio of the two." if nats else "."),
        "95% interval, p: of each difference alone, two-sided, not corrected; t from the spread of these two cells "
        f"alone, {'over all looks' if by_rule else 'with cautious degrees of freedom'}. {errors_over(table)}".rstrip(),
        f"corrected p: {correction(table)}{'' if table.baseline else '; the marks rest on it'}.",
        "effect: in standard deviations over seeds (Hedges' g).",
    ]
    if any(compared.margin is not None for compared in differences):
        columns.append(("within margin", [_within_margin(compared) for compared in differences]))
        notes.append("within margin: two one-sided tests (TOST) at 0.05, not corrected.")
    if table.randomisations:
        resampled = [table.randomisations.get(compared.at) for compared in differences]
        columns += [
            ("BLEU of the selected runs", [signed(each.gain, "bleu") if each else "–" for each in resampled]),
            ("p over sentences", [probability(each.p) if each else "–" for each in resampled]),
        ]
        first = next(iter(table.randomisations.values()))
        notes.append(
            f"p over sentences: approximate randomisation of BLEU, {first.trials:,} exchanges of translations of "
            f"{first.sentences:,} test sentences, for the one selected run of each cell and each difference alone, not "
            "corrected; it says nothing about other seeds."
        )
    return listing(f"{layout.name}: differences from {against}", (layout.name, "differences"), names, columns, notes)


def _ratio(estimate: Estimate | None, metric: Metric) -> str:
    """A gain in nats as perplexity over perplexity, with its interval."""
    if estimate is None or not metric.in_nats:
        return "–"
    low, high = estimate.interval()
    value, below, above = (f"{ratio(gain):.3f}" for gain in (estimate.value, high, low))
    return f"{value} ({below} to {above})"


def _other(layout: Layout, difference: Difference) -> str:
    """The row of the cell that a cell is compared with, the best of the same column."""
    other = layout.header(difference.against)
    return in_levels({factor: other[factor] for factor in layout.row_factors})


def _within_margin(compared: Difference) -> str:
    if compared.margin is None or compared.p_equivalent is None:
        return "–"
    verdict = "yes" if compared.equivalent else "not shown"
    margin = difference(compared.margin, compared.metric).lstrip("+")
    return f"{margin}: {verdict} (p {probability(compared.p_equivalent)})"


def _published(layout: Layout, comparison: PublishedComparison) -> Sheet:
    """The published values of a paper beside those of a table."""
    pairs, paper = comparison.pairs, comparison.paper
    names = [
        *name_columns(layout, [pair.at for pair in pairs]),
        ("metric", [str(pair.metric) for pair in pairs]),
        ("from", [", ".join(pair.tables) for pair in pairs]),
    ]
    columns = [
        (
            "published",
            [_NOT_CONVERGED if pair.published is None else rounded(pair.published, pair.metric.name) for pair in pairs],
        ),
        ("ours", [State.DIVERGED if pair.diverged else score_or_dash(pair.ours, pair.metric.name) for pair in pairs]),
    ]
    same = any(pair.same_corpus for pair in pairs)
    if same:
        gains = ["–" if pair.gain is None else signed(pair.gain, pair.metric.name) for pair in pairs]
        columns.append(("better by", gains))
    shown = "the best-validation seed's score" if layout.shown is Shown.BEST_SEED else "the mean over seeds"
    notes = [f"Published: {'; '.join(filter(None, (paper.source, paper.protocol)))}."]
    notes.append(f"Ours: {shown}{'; better by: positive where ours is better' if same else ''}.")
    if not all(pair.same_corpus for pair in pairs):
        places = [pair.places if pair.places and not pair.same_corpus else ("–", "–") for pair in pairs]
        columns += [
            ("place, published", [str(published) for published, _ in places]),
            ("place, ours", [str(ours) for _, ours in places]),
        ]
        notes.append("Place: in the order of each side, 1 the best; numbers of another corpus compare by their order.")
    if not pairs:
        notes = [notes[0], "It has no cell of this table."]
    values: dict[str, dict[str, None]] = {}
    for pair in pairs:
        if pair.note and pair.published is not None:
            values.setdefault(pair.note, {})[rounded(pair.published, pair.metric.name)] = None
    notes += [f"{' and '.join(noted)}: {note}" for note, noted in values.items()]
    for task, ours in comparison.scale.items():
        published = f"; published: {paper.scale[task]}" if task in paper.scale else ""
        notes.append(f"Scale ({task}): ours {ours}{published}.")
    notes += map(_agreement, comparison.agreement)
    title = f"{layout.name}: beside {paper.title or paper.name}"
    return listing(title, (layout.name, "published"), names, columns, notes)


def _agreement(agreement: Agreement) -> str:
    """The sentence on how far both sides order the cells alike."""
    cells = f"{agreement.n} cell{'' if agreement.n == 1 else 's'}"
    what = f"Order of {cells} ({agreement.task}, {agreement.corpus}, {agreement.metric.name})"
    if agreement.tau is None or agreement.p is None:
        return f"{what}: too few that differ to be ranked."
    p = f"p {'= ' if agreement.p >= 0.001 else ''}{probability(agreement.p)}"
    return f"{what}: Kendall's τ = {signed(agreement.tau, '')} ({p}); what diverged ranks last."


def tuned_settings(table: Table) -> Sheet:
    """Each searched cell with its winner's settings, its validation score, and the trials behind it."""
    layout, searches = table.layout, table.searches.values()
    parameters = list(dict.fromkeys(name for searched in searches for name in searched.search.space))
    metrics = list(dict.fromkeys(searched.metric for searched in searches))
    columns = [(name, [_setting(searched, name) for searched in searches]) for name in parameters]
    scores = [score_or_dash(searched.winner.value, searched.metric.name) for searched in searches]
    columns.append((str(metrics[0]) if len(metrics) == 1 else "score", scores))
    if len(metrics) > 1:
        columns.append(("metric", [str(searched.metric) for searched in searches]))
    columns.append(("trials", [_trials_in_words(searched) for searched in searches]))
    notes = ["Score: the mean over the tuning seeds, by which the trial was chosen, so it flatters itself."]
    notes += [*_edges(table), *_expected_best(table)]
    names = name_columns(layout, table.searches)
    return listing(f"{layout.name}: settings that searches found", (layout.name, "searches"), names, columns, notes)


def _trials_in_words(searched: SearchedCell) -> str:
    """Such as `10`, or `10: 7 completed, 3 pruned`."""
    counts = {state: searched.count(state) for state in TrialState}
    if counts[TrialState.COMPLETED] == len(searched.trials):
        return str(len(searched.trials))
    return f"{len(searched.trials)}: {', '.join(f'{count} {state}' for state, count in counts.items() if count)}"


def value_in_words(value: Any) -> str:
    """A setting in four digits, or as it is written."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def edge_in_words(name: str, searched: SearchedCell, edge: Edge) -> str:
    """The sentence that the optimum is not found yet, and what to try."""
    end = "upper" if edge.upper else "lower"
    if edge.beyond is None:
        more = f"values {'above' if edge.upper else 'below'} {value_in_words(edge.end)}"
    else:
        low, high = (edge.end, edge.beyond) if edge.upper else (edge.beyond, edge.end)
        more = f"{value_in_words(low)} to {value_in_words(high)}"
    return f"{name} {value_in_words(searched.winner.parameters[name])} at the {end} edge: not found yet, try {more}"


def _setting(searched: SearchedCell, name: str) -> str:
    """The winner's setting, with a sign where it stands at the edge of its range."""
    if name not in searched.winner.parameters:
        return "–"
    return value_in_words(searched.winner.parameters[name]) + (_EDGE if name in searched.edges else "")


def _edges(table: Table) -> Iterator[str]:
    """The sentences on settings at the edge of their range."""
    places: dict[str, list[str]] = {}
    for at, searched in table.searches.items():
        for name, edge in searched.edges.items():
            space = space_in_words(searched.search.space[name])
            text = f"{edge_in_words(name, searched, edge)} (of {space})"
            places.setdefault(text, []).append(table.layout.place(at))
    for text, of_text in places.items():
        yield f"{_EDGE} {', '.join(of_text)}: {text}."


def _expected_best(table: Table) -> Iterator[str]:
    """The sentences on the expected best of half as many trials, or on why it is left out."""
    reasons: dict[str, list[str]] = {}
    halves = []
    for at, searched in table.searches.items():
        if searched.without_expected_best:
            reasons.setdefault(searched.without_expected_best, []).append(table.layout.place(at))
        if searched.expected_best:
            half = searched.expected_best[(len(searched.expected_best) + 1) // 2 - 1]
            best, low, high = (rounded(value, searched.metric.name) for value in (half.expected, half.low, half.high))
            halves.append(f"{table.layout.place(at)} {best} ({low} to {high}) of {half.draws}")
    for reason, places in reasons.items():
        cells = "" if len(places) == len(table.searches) else f" of {', '.join(places)}"
        yield f"The expected best of fewer trials{cells} is left out: {reason}."
    if halves:
        yield (
            f"Expected best of half as many trials, with the range of nine in ten such searches: {'; '.join(halves)}; "
            "by draws with replacement from the trials that completed (Dodge et al. 2019), which is too pessimistic, "
            "the more so the closer to all of them (Tang et al. 2020)."
        )
