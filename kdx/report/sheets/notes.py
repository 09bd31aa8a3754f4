"""The paragraphs below a table: where its numbers come from, what its marks mean, and what makes comparisons unfair."""

from collections.abc import Sequence

from kdx.metrics.decimals import rounded
from kdx.report.sheet import SIGNS
from kdx.report.statistics.by_document import over
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.audit import FAST, OUT, TUNED, UNKNOWN, UnequalFact
from kdx.report.table.comparisons import Group
from kdx.report.tables import Table
from kdx.report.wording import difference, setting, what_sets_apart

_MOST_NAMED = 4
"""A note names up to so many cells; where there are more, it gives their number."""


def caption(table: Table, *, best: str, full: bool = False) -> list[str]:
    """The paragraphs below a table: where its numbers come from, what its marks mean, what its seeds can show, and what
    makes comparisons unfair.

    Args:
        best: how the format marks the best cell, such as `* and bold`.
        full: adds those of `further`.
    """
    marks = [f"{SIGNS.get(mark, best)}: {meaning}" for mark, meaning in table.legend.items()]
    numbers = " ".join((*table.notes, *([f"{'; '.join(marks)}."] if marks else _without_marks(table))))
    paragraphs = [
        numbers,
        _resolution(table),
        *(_unequal(table, fact) for fact in table.audit if not fact.only_listed),
        _differ_also(table),
        *(further(table) if full else []),
    ]
    return [*filter(None, paragraphs)]


def further(table: Table) -> list[str]:
    """The paragraphs on how metrics and intervals were computed, and how cells spread over seeds."""
    spreads = (_spread(table, group) for group in table.groups)
    return [*filter(None, (" ".join(table.definitions), errors_over(table), *spreads))]


def _without_marks(table: Table) -> list[str]:
    """Why no cell is marked best, for a table with several cells in one column."""
    scored = {(column, cell.id) for (_, column), cell in table.layout.places.items() if cell.value is not None}
    several = len(scored) > len({column for column, _ in scored})
    return ["No cell is marked best: that takes two cells of two seeds each whose numbers compare."] if several else []


def errors_over(table: Table) -> str:
    """The sentence on what intervals, marks and p-values are over; empty where there are none."""
    errors: dict[str, dict[str, None]] = {}
    for cell in table.layout.cells:
        if cell.compared:
            errors.setdefault(over(cell.documents), {})[cell.metric.unit] = None
    if not errors:
        return ""
    parts = [f"{text} ({', '.join(metrics)})" if len(errors) > 1 else text for text, metrics in errors.items()]
    return f"Intervals and marks are over {'; '.join(parts)}."


def correction(table: Table) -> str:
    """How the p-values of a table's differences are corrected."""
    if table.baseline:
        number = next((group.comparisons for group in table.groups), 0)
        return f"two-sided, Holm's correction over {number} difference{'' if number == 1 else 's'}"
    # The best was chosen by the same runs.
    return "one-sided, of being no worse, times the number of comparisons in its column"


def _resolution(table: Table) -> str:
    """The sentence on the true difference that the seeds would show; empty where there is none."""
    able = [group for group in table.groups if group.cells > 1]
    sizes: dict[Metric, list[float]] = {}
    for group in able:
        if (size := group.minimum_detectable_difference(corrected=True)) is not None:
            sizes.setdefault(group.metric, []).append(size)
    if not sizes:
        return ""
    corrected = max(group.comparisons for group in able)
    over = f", corrected for {corrected} comparisons" if corrected > 1 else ""
    return (
        f"A true difference of {' or '.join(_sizes(known, metric) for metric, known in sizes.items())} between two "
        f"cells would be shown with 80% probability{over}; a smaller one may be missed."
    )


def _sizes(sizes: Sequence[float], metric: Metric) -> str:
    """The sizes of differences on the metric's scale, from the smallest to the largest, in words."""
    low, high = _size(min(sizes), metric), _size(max(sizes), metric)
    return high if low == high else f"{low.partition(' ')[0]} to {high}"


def _name(table: Table, group: Group) -> str:
    """What a group is known by among several: its task, or else what the headers of its cells share alone."""
    if sum(other.task == group.task for other in table.groups) == 1:
        return group.task
    headers = [table.layout.header(at) for at in group.places]
    others = [table.layout.header(at) for other in table.groups if other is not group for at in other.places]
    return setting(what_sets_apart(headers, others)) or group.task


def _size(value: float, metric: Metric) -> str:
    """The size of a difference on the metric's scale, in words."""
    if metric.in_nats:
        return f"{rounded(ratio(-value), 'ratio')} times the {metric.unit}"
    return f"{rounded(value, metric.name)} {metric.scale_in_words}"


def _spread(table: Table, group: Group) -> str:
    """The sentence on the spread over seeds."""
    alone = group.minimum_detectable_difference()
    if group.spread is None or alone is None:
        return ""
    low, usual, high = (difference(sd, group.metric).lstrip("+") for sd in group.spread)
    among = "" if len(table.groups) == 1 else f" ({_name(table, group)})"
    line = (
        f"Spread over seeds{among}: standard deviations from {low} to {high} {group.metric.scale_in_words}, root mean "
        f"square {usual}"
    )
    if group.comparisons > 1:
        size = _size(alone, group.metric)
        line += f"; in one comparison alone, a true difference of {size} would be shown with 80% probability"
    return f"{line}."


def _differ_also(table: Table) -> str:
    """The sentence on the facts in which compared cells differ beside the factors of their table."""
    topics = list(dict.fromkeys(fact.topic for fact in table.audit if fact.only_listed))
    if not topics:
        return ""
    factors = _and([*table.layout.row_factors, *table.layout.column_factors])
    return f"Apart from {factors}, compared cells also differ in {_and(topics)}."


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _unequal(table: Table, fact: UnequalFact) -> str:
    values = list(fact.values.items())
    parts = []
    for word, places in values:
        if len(places) > _MOST_NAMED or (len(places) > 1 and (word, places) == values[0]):
            cells = f"{len(places)} cells"
        else:
            cells = ", ".join(table.layout.place(at) for at in places)
        parts.append(f"{word} in {cells}")
    among = "" if len(table.groups) == 1 else f" ({fact.task}, {fact.metric.name})"
    if fact.topic == UNKNOWN:
        return f"This kdx does not know {'; '.join(parts)}: shown as recorded, and not to be run here."
    if fact.topic == TUNED:
        return f"Scored with seeds that trials of its search used{among}, which flatters it: {'; '.join(parts)}."
    if fact.topic == OUT:
        return f"Excluded from this table{among}: {'; '.join(parts)}."
    if fact.topic == FAST:
        return f"Arithmetic{among}: {'; '.join(parts)}; not bit-exact where a run is repeated or resumed."
    if fact.compared:
        return f"Unequal {fact.topic}{among}: {'; '.join(parts)}."
    instead = f"; metric: {fact.instead} in a table compares them" if fact.instead else ""
    return f"Not compared with each other{among}, for unequal {fact.topic}: {'; '.join(parts)}{instead}."
