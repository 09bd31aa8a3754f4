"""The text of a table's parts, shared by every format: rounded numbers, headers and notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite, isnan

from kdx.grid.plan import Shown
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell, State
from kdx.report.statistics.by_document import Documents
from kdx.report.statistics.estimates import LEVEL
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.audit import ALWAYS, EVALUATED, FAST, OUT, TUNED, UNKNOWN, UnequalFact
from kdx.report.table.comparisons import Group, Mark
from kdx.report.table.layout import Layout
from kdx.report.table.table import Table

LEVELS = " / "
"""Between the words of a nested header."""
_DECIMALS = {"loss": 3, "bits_per_dimension": 3, "length_ratio": 3}
_LONGEST = 1e6
"""Numbers from here on are written with an exponent, since a perplexity can be astronomical."""
_MOST_NAMED = 4
"""A note names up to so many cells; where there are more, it gives their number."""
_MOST_VALUES, _LONGEST_WORD = 3, 48
"""A short note names so many values of a factor, each cut to so many letters."""
_NATS = 3
"""Decimals of a difference in nats."""


@dataclass(frozen=True)
class CellText:
    """The text of one place; a part that is not shown is empty."""

    score: str = ""
    """The selected test score or the mean; without one, `–` or the reason, such as `diverged k/n`."""
    mean: str = ""
    """The mean beside a selected score."""
    sd: str = ""
    """The spread behind `±`: the standard deviation, or half of the mean's interval."""
    n: str = ""
    note: str = ""
    """Why some seeds have no score, such as `1/3 failed`."""
    aligned: bool = False
    """Whether `score` lines up with the numbers of its column."""

    @property
    def marks_mean(self) -> bool:
        """Whether a mark stands at the mean beside the score, and not at the score; none stands at a ∞."""
        return self.mean not in ("", "nan", "∞", "-∞")


def rounded(value: float, metric: str) -> str:
    """`value` with 3 decimals for a loss and for metrics of about that size, else with 2."""
    if not isfinite(value):
        return "nan" if isnan(value) else "∞" if value > 0 else "-∞"
    return f"{value:.2e}" if abs(value) >= _LONGEST else f"{value:z.{_DECIMALS.get(metric.rpartition('/')[2], 2)}f}"


def signed(value: float, metric: str) -> str:
    """`value`, rounded, with its sign; the minus is U+2212."""
    return _with_sign(value, rounded(abs(value), metric))


def difference(value: float, metric: Metric) -> str:
    """A difference on the scale on which the metric is compared; perplexities are compared in nats."""
    if not metric.in_nats:
        return signed(value, metric.name)
    text = "nan" if isnan(value) else "∞" if not isfinite(value) else f"{abs(value):.{_NATS}f}"
    return _with_sign(value, text)


def interval(bounds: tuple[float, float], metric: Metric | str) -> str:
    """An interval of scores, or of differences of a metric."""
    low, high = (rounded(one, metric) if isinstance(metric, str) else difference(one, metric) for one in bounds)
    return f"{low} to {high}".replace("-", "−")


def correction(table: Table) -> str:
    """How the p-values of a table's differences are corrected."""
    if table.baseline:
        number = next((group.comparisons for group in table.groups), 0)
        return f"two-sided, Holm's correction over {number} difference{'' if number == 1 else 's'}"
    # The best was chosen by the same runs.
    return "one-sided, of being no worse, times the number of comparisons in its column"


def _with_sign(value: float, text: str) -> str:
    return text if isnan(value) or not float(text.replace("∞", "inf")) else f"{'−' if value < 0 else '+'}{text}"


def probability(p: float) -> str:
    """A p-value with 3 decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def equals(p: float) -> str:
    """A p-value as it follows `p`: `= 0.012`, or `< 0.001`."""
    return probability(p) if p < 0.001 else f"= {probability(p)}"


def words(cell: Cell | None, *, show_n: bool) -> CellText:
    """The text of a cell; all parts are empty for a place that the grid does not plan."""
    if cell is None:
        return CellText()
    broken = cell.failed - cell.out_of_memory
    counts = {State.DIVERGED: cell.diverged, State.OUT_OF_MEMORY: cell.out_of_memory, State.FAILED: broken}
    others = {"pruned": cell.pruned, State.INVALIDATED: cell.invalidated, "undertrained": cell.undertrained}
    notes = {state: f"{state} {count}/{cell.planned}" for state, count in (counts | others).items() if count}
    if cell.state in notes:
        return CellText(notes.pop(cell.state), note=", ".join(notes.values()))
    value, metric = cell.value, cell.metric.name
    if value is None:
        scoreless = f"without a score {cell.completed}/{cell.planned}" if cell.completed else ""
        return CellText("–", note=", ".join(filter(None, (scoreless, *notes.values()))), aligned=True)
    summary, selected = cell.summary, cell.shown is Shown.BEST_SEED
    spread = (summary.sd if selected else cell.half_width) if summary else None
    return CellText(
        score=rounded(value, metric),
        mean=rounded(summary.mean, metric) if summary and spread is not None and selected else "",
        sd=rounded(spread, metric) if spread is not None else "",
        n=f"({summary.n})" if summary and show_n else "",
        note=", ".join(notes.values()),
        aligned=True,
    )


def means(parts: Sequence[CellText], blank: str = " ") -> list[str]:
    """The mean beside the score in each place of a column, in one width; empty where the column has none.

    Args:
        blank: pads numbers so that they line up; it is as wide as a digit.
    """
    width = max((len(part.mean) for part in parts), default=0)
    return [part.mean.rjust(width, blank) if part.aligned else "" for part in parts]


def beside_scores(parts: Sequence[CellText], blank: str = " ") -> list[str]:
    """The text to the right of the score, and of the mean, in each place of a column: spread, n and note.

    Args:
        blank: see `means`.
    """
    sd, n = (max((len(getattr(part, name)) for part in parts if part.aligned), default=0) for name in ("sd", "n"))

    def beside(part: CellText) -> str:
        if not part.aligned:
            return part.note
        parts = [f"{'±' if part.sd else blank} {part.sd.rjust(sd, blank)}"] * bool(sd)
        parts += [part.n.rjust(n, blank)] * bool(n)
        return f"{' '.join(parts)}{f'  {part.note}' if part.note else ''}".rstrip()

    return [beside(part) for part in parts]


def unless_repeated(headers: Sequence[Sequence[str]], index: int, first: int = 0) -> list[str]:
    """The levels of one header, blank where they repeat the header before it; headers before `first` do not count."""
    header, before = headers[index], headers[index - 1] if index > first else ()
    repeated = [tuple(before[: level + 1]) == tuple(header[: level + 1]) for level in range(len(header))]
    return ["" if same else word for word, same in zip(header, repeated, strict=True)]


def spans(headers: Sequence[Sequence[str]], level: int) -> list[tuple[str, int]]:
    """The words of one level of headers, each with the number of neighbours that share it and all levels above it."""
    groups = groupby(headers, key=lambda header: tuple(header[: level + 1]))
    return [(shared[level], len(list(its))) for shared, its in groups]


def column_headers(layout: Layout) -> list[tuple[str, ...]]:
    """The levels of each column's header, outermost first.

    A number or `none` is unclear alone, so it is written with the name of its factor. The metric is a level of its own,
    under the task, where columns differ in it or have no other header.
    """
    factors = layout.column_factors
    level = factors.index("task") + 1 if "task" in factors else len(factors)
    headers = []
    for column, metric in zip(layout.columns, layout.metrics, strict=True):
        header = [word_of(factor, word) for factor, word in zip(factors, column, strict=True)]
        if len(set(layout.metrics)) > 1 or not factors:
            header.insert(level, str(metric or "score"))
        headers.append(tuple(header))
    return headers


_SIGNS = {Mark.NOT_DISTINGUISHABLE: "†", Mark.UNTESTED: "‡"}
"""Mark → the sign behind a mean that is not the best."""


def sign(mark: Mark | None) -> str:
    """The sign behind a mean that is not the best, † or ‡; empty where there is none."""
    return _SIGNS.get(mark, "") if mark else ""


def caption(table: Table, *, best: str, full: bool = False) -> list[str]:
    """The paragraphs below a table: where its numbers come from, what its marks mean, what its seeds can show, and what
    makes comparisons unfair.

    Args:
        best: how the format marks the best cell, such as `* and bold`.
        full: adds how the metrics were computed, how cells spread, and every fact in which cells differ.
    """
    marks = [f"{sign(mark) or best}: {meaning}" for mark, meaning in table.legend.items()]
    numbers = " ".join((*table.notes, *([f"{'; '.join(marks)}."] if marks else _without_marks(table))))
    paragraphs = [
        numbers,
        *([" ".join(table.definitions)] if full else []),
        " ".join(filter(None, (_resolution(table), _errors(table)))),
    ]
    paragraphs += [_spread(table, group) for group in table.groups] if full else []
    plain = [one for one in table.audit if not one.compared or one.topic in ALWAYS]
    paragraphs += [_unequal(table, one) for one in (table.audit if full else plain)]
    if not full:
        paragraphs.append(_differ_also(table, [one for one in table.audit if one not in plain]))
    return [*filter(None, paragraphs)]


def word_of(factor: str, word: str) -> str:
    """A factor's word, with the name of the factor where the word is unclear alone, as a number or `none` is."""
    unclear = word in ("none", "–", "true", "false") or word[:1].isdecimal()
    return f"{factor.rpartition('.')[2]} {word}" if unclear else word


def place(layout: Layout, at: Address) -> str:
    """The words of a place's row and column, joined."""
    return LEVELS.join(word_of(factor, word) for factor, word in layout.header(at).items())


def _without_marks(table: Table) -> list[str]:
    """Why no cell is marked best, for a table with several cells in one column."""
    columns = map(table.layout.column, range(len(table.layout.columns)))
    several = any(len({cell.id for cell in column if cell and cell.value is not None}) > 1 for column in columns)
    return ["No cell is marked best: that takes two cells of two seeds each whose numbers compare."] if several else []


def over(documents: Documents | None) -> str:
    """What an error is over: `seeds crossed with 60 articles of the test`."""
    if documents is None:
        return "seeds alone"
    return f"seeds crossed with {documents.number} {documents.unit}s of the test"


def _errors(table: Table) -> str:
    """The sentence on what intervals, marks and p-values are over; empty where there are none."""
    found: dict[str, dict[str, None]] = {}
    for cell in table.layout.cells:
        if cell.compared:
            found.setdefault(over(cell.documents), {})[cell.metric.unit] = None
    if not found:
        return ""
    parts = [f"{text} ({', '.join(metrics)})" if len(found) > 1 else text for text, metrics in found.items()]
    return f"Intervals and marks are over {'; '.join(parts)}."


def _resolution(table: Table) -> str:
    """The sentence on the smallest difference that the seeds can show; empty where there is none."""
    able = [group for group in table.groups if group.cells > 1]
    shown: list[str] = []
    for group in able:
        if (smallest := group.corrected_minimum_detectable_difference) is not None:
            among = "" if len(able) == 1 else f" ({_name(table, group)})"
            shown.append(f"{_size(smallest, group.metric)}{among}, n = {group.seeds}")
    if not shown:
        return ""
    corrected = max(group.comparisons for group in able)
    over = f", corrected for {corrected} comparisons" if corrected > 1 else ""
    different = list(dict.fromkeys(shown))
    rest = f"; {len(different) - _MOST_VALUES} more" if len(different) > _MOST_VALUES else ""
    few = "; ".join(different[:_MOST_VALUES])
    # With two seeds a spread has one degree of freedom, and a mark excludes hardly anything.
    two = "; 2 seeds do not tell cells apart" if any(group.seeds == 2 for group in able) else ""
    return f"The smallest difference that these seeds can show (80% power{over}): {few}{rest}{two}."


def _name(table: Table, group: Group) -> str:
    """What a group is known by among several: its task, or else what the headers of its cells share alone."""
    if sum(one.task == group.task for one in table.groups) == 1:
        return group.task
    headers = [table.layout.header(at) for at in group.places]
    others = [table.layout.header(at) for one in table.groups if one is not group for at in one.places]
    shared = {
        factor: word
        for factor, word in headers[0].items()
        if all(header[factor] == word for header in headers) and any(header[factor] != word for header in others)
    }
    return setting(shared) or group.task


def _size(value: float, metric: Metric) -> str:
    """The size of a difference on the metric's scale, in words."""
    if metric.in_nats:
        return f"{rounded(ratio(-value), 'ratio')} times the {metric.unit}"
    return f"{rounded(value, metric.name)} {metric.unit}"


def _spread(table: Table, group: Group) -> str:
    """The sentences on the spread over seeds, and on whether common seeds move the cells together."""
    alone = group.minimum_detectable_difference
    if group.spread is None or alone is None:
        return ""
    low, usual, high = (difference(one, group.metric).lstrip("+") for one in group.spread)
    among = "" if len(table.groups) == 1 else f" ({_name(table, group)})"
    line = (
        f"Spread over seeds{among}: standard deviations from {low} to {high} {group.metric.scale}, root mean square "
        f"{usual}"
    )
    if group.comparisons > 1:
        size = _size(alone, group.metric)
        line += f"; in one comparison alone, the smallest difference that two such cells can show is {size}"
    line += "."
    effect = group.seed_effect
    if effect is not None:
        line += f" Effect of common seeds (permutation test): p {equals(effect)}" + (
            "; they move the cells together, which these comparisons do not use: they are too cautious."
            if effect < 1 - LEVEL
            else ", so none is shown."
        )
    return line


def _differ_also(table: Table, facts: Sequence[UnequalFact]) -> str:
    """The sentence on the facts in which compared cells differ beside the factors of their table."""
    topics: dict[str, dict[str, None]] = {}
    for one in facts:
        topics.setdefault(one.topic, {}).update(dict.fromkeys(one.values))
    if not topics:
        return ""
    parts = []
    for topic, values in topics.items():
        words = [f"{word[:_LONGEST_WORD]}…" if len(word) > _LONGEST_WORD else word for word in values]
        more = ["…"] if len(words) > _MOST_VALUES else []
        # A value may have commas of its own, as the seeds 0 and 2 of one cell have.
        parts.append(f"{topic} ({' against '.join([*words[:_MOST_VALUES], *more])})")
    factors = " and ".join(filter(None, (", ".join(table.layout.row_factors), ", ".join(table.layout.column_factors))))
    return f"Compared cells also differ, beside {factors}, in {'; '.join(parts)}."


def _unequal(table: Table, fact: UnequalFact) -> str:
    values = list(fact.values.items())
    parts = []
    for word, places in values:
        if len(places) > _MOST_NAMED or (len(places) > 1 and (word, places) == values[0]):
            cells = f"{len(places)} cells"
        else:
            cells = ", ".join(place(table.layout, at) for at in places)
        parts.append(f"{word} in {cells}")
    among = "" if len(table.groups) == 1 else f" ({fact.task}, {fact.metric.name})"
    if fact.topic == UNKNOWN:
        return f"This kdx does not know {'; '.join(parts)}: shown as recorded, and not to be run here."
    if fact.topic == TUNED:
        return f"Scored with seeds that trials of its search used{among}, which flatters it: {'; '.join(parts)}."
    if fact.topic == OUT:
        return f"Out of the table{among}: {'; '.join(parts)}."
    if fact.topic == FAST:
        return f"Arithmetic{among}: {'; '.join(parts)}; not bit-exact where a run is repeated or resumed."
    if fact.topic == EVALUATED:
        return f"Evaluated{among} otherwise than trained: {'; '.join(parts)}."
    if fact.compared:
        return f"Unequal {fact.topic}{among}: {'; '.join(parts)}."
    instead = f"; metric: {fact.instead} in a table compares them" if fact.instead else ""
    return f"Not compared with each other{among}, for unequal {fact.topic}: {'; '.join(parts)}{instead}."


def setting(words: Mapping[str, str]) -> str:
    """A setting's words in one line: `translation, multi30k, width 128, steps 700`."""
    return ", ".join(word_of(factor, word) for factor, word in words.items())
