"""What `kdx show` says of the trials of a search, in lines."""

from collections.abc import Iterator

from kdx.cli.wording import choices_of, shown_score
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.searches import edge_in_words, value_in_words
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.store.records import TrialRecord

_MOST_SEEDS = 8
"""Tuning seeds that are listed."""


def trial_lines(one: SearchedCell, cell_id: str) -> Iterator[str]:
    """A line on a search, a table of its trials, and a line for each parameter at the edge of its range.

    Args:
        cell_id: the cell that is shown, which is marked among the trials.
    """
    names, tuning = list(one.search.space), one.search.tuning
    seeds = ", ".join(map(str, tuning.seeds[:_MOST_SEEDS])) + (", …" if len(tuning.seeds) > _MOST_SEEDS else "")
    yield sanitize(
        f"search {one.search.id[:8]} of {choices_of(one.labels)}: {len(one.ended)} of {tuning.trials} trials have "
        f"ended; sampler {tuning.sampler}, pruner {tuning.pruner}, tuning seeds {seeds}"
    )
    rows = [
        (
            each.number,
            each.cell_id[:8] if each.cell_id else "none",
            each.state.value if each.state else "not ended",
            shown_score(each.value, one.metric.name),
            *(value_in_words(each.parameters[name]) for name in names),
            _remark(each, one, cell_id),
        )
        for each in one.trials
    ]
    yield from (f"  {line}" for line in to_text(("trial", "cell", "state", one.metric.name, *names, ""), rows))
    yield from (f"  {sanitize(edge_in_words(name, one, edge))}" for name, edge in one.edges.items())


def _remark(trial: TrialRecord, one: SearchedCell, cell_id: str) -> str:
    best = "the best" if trial.number == one.winner.number else ""
    return ", ".join(filter(None, (best, "this cell" if trial.cell_id == cell_id else "")))
