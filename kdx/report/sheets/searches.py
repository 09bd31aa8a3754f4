"""A listing of the settings that searches found, beside the names of their rows."""

from collections.abc import Iterator
from typing import Any

from kdx.report.selection.searched import Edge, SearchedCell, space_in_words
from kdx.report.sheet import Sheet
from kdx.report.table.table import Table
from kdx.report.wording import place, rounded
from kdx.store.records import TrialState

EDGE = "^"
"""The sign behind a setting at the edge of its range."""


def tuned_settings(table: Table) -> Sheet:
    """Each searched cell with its winner's settings, its validation score, and the trials behind it."""
    searches = table.searches
    parameters = list(dict.fromkeys(name for one in searches.values() for name in one.search.space))
    metrics = list(dict.fromkeys(one.metric for one in searches.values()))
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    rows = []
    for at, one in searches.items():
        value = one.winner.value
        rows.append(
            (
                *table.layout.header(at).values(),
                *(_setting(one, name) for name in parameters),
                rounded(value, one.metric.name) if value is not None else "–",
                *([str(one.metric)] if len(metrics) > 1 else []),
                trials_in_words(one),
            )
        )
    score = [str(metrics[0])] if len(metrics) == 1 else ["score", "metric"]
    notes = ["Score: the mean over the tuning seeds, by which the trial was chosen, so it flatters itself."]
    notes += list(_edges(table, parameters))
    notes += list(_without_expected_best(table))
    return Sheet(
        title=f"{table.layout.name}: settings that searches found",
        key=(table.layout.name, "searches"),
        headers=(*factors, *parameters, *score, "trials"),
        names=len(factors),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def trials_in_words(one: SearchedCell) -> str:
    """Such as `10`, or `10: 7 completed, 3 pruned`."""
    counts = {state: one.count(state) for state in TrialState}
    if counts[TrialState.COMPLETED] == len(one.trials):
        return str(len(one.trials))
    return f"{len(one.trials)}: {', '.join(f'{count} {state}' for state, count in counts.items() if count)}"


def value_in_words(value: Any) -> str:
    """A setting in four digits, or as it is written."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def edge_in_words(name: str, one: SearchedCell, edge: Edge) -> str:
    """That the optimum is not found yet, and what to try."""
    end = "upper" if edge.upper else "lower"
    if edge.beyond is None:
        more = f"values {'above' if edge.upper else 'below'} {value_in_words(edge.end)}"
    else:
        more = f"{value_in_words(edge.end)} to {value_in_words(edge.beyond)}"
        more = more if edge.upper else f"{value_in_words(edge.beyond)} to {value_in_words(edge.end)}"
    return f"{name} {value_in_words(one.winner.parameters[name])} at the {end} edge: not found yet, try {more}"


def _setting(one: SearchedCell, name: str) -> str:
    if name not in one.winner.parameters:
        return "–"
    return value_in_words(one.winner.parameters[name]) + (EDGE if name in one.edges else "")


def _edges(table: Table, parameters: list[str]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for at, one in table.searches.items():
        for name, edge in one.edges.items():
            of = space_in_words(one.search.space[name])
            found.setdefault(f"{edge_in_words(name, one, edge)} (of {of})", []).append(place(table.layout, at))
    for text, places in found.items():
        yield f"{EDGE} {', '.join(places)}: {text}."


def _without_expected_best(table: Table) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for at, one in table.searches.items():
        if one.without_expected_best:
            reasons.setdefault(one.without_expected_best, []).append(place(table.layout, at))
    for reason, places in reasons.items():
        of = "" if len(places) == len(table.searches) else f" of {', '.join(places)}"
        yield f"The expected best of fewer trials{of} is left out: {reason}."
    lines = []
    for at, one in table.searches.items():
        if one.expected_best:
            half = one.expected_best[(len(one.expected_best) + 1) // 2 - 1]
            metric = one.metric.name
            lines.append(
                f"{place(table.layout, at)} {rounded(half.expected, metric)} ({rounded(half.low, metric)} to "
                f"{rounded(half.high, metric)}) of {half.draws}"
            )
    if lines:
        yield (
            f"Expected best of half as many trials, with the range of nine in ten such searches: {'; '.join(lines)}; "
            "by draws with replacement from the trials that completed (Dodge et al. 2019), which is too pessimistic, "
            "the more the nearer to all of them (Tang et al. 2020)."
        )
