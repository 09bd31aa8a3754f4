"""A listing of the settings that searches found, beside the names of their rows."""

from collections.abc import Iterator
from typing import Any

from kdx.report.selection.searched import Edge, SearchedCell, space_in_words
from kdx.report.sheet import Sheet, listing
from kdx.report.sheets.scores import name_columns, score_or_dash
from kdx.report.tables import Table
from kdx.report.wording import place, rounded
from kdx.store.records import TrialState

_EDGE = "^"
"""The sign behind a setting at the edge of its range."""


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
            places.setdefault(text, []).append(place(table.layout, at))
    for text, of_text in places.items():
        yield f"{_EDGE} {', '.join(of_text)}: {text}."


def _expected_best(table: Table) -> Iterator[str]:
    """The sentences on the expected best of half as many trials, or on why it is left out."""
    reasons: dict[str, list[str]] = {}
    halves = []
    for at, searched in table.searches.items():
        if searched.without_expected_best:
            reasons.setdefault(searched.without_expected_best, []).append(place(table.layout, at))
        if searched.expected_best:
            half = searched.expected_best[(len(searched.expected_best) + 1) // 2 - 1]
            best, low, high = (rounded(value, searched.metric.name) for value in (half.expected, half.low, half.high))
            halves.append(f"{place(table.layout, at)} {best} ({low} to {high}) of {half.draws}")
    for reason, places in reasons.items():
        cells = "" if len(places) == len(table.searches) else f" of {', '.join(places)}"
        yield f"The expected best of fewer trials{cells} is left out: {reason}."
    if halves:
        yield (
            f"Expected best of half as many trials, with the range of nine in ten such searches: {'; '.join(halves)}; "
            "by draws with replacement from the trials that completed (Dodge et al. 2019), which is too pessimistic, "
            "the more the nearer to all of them (Tang et al. 2020)."
        )
