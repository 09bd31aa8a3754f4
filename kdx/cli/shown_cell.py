"""A cell: its runs, the trials of searches that tried it, and its settings."""

from collections.abc import Iterator, Sequence
from typing import Any

from kdx.cli.console import table
from kdx.cli.named_runs import RunView, chosen, run_view
from kdx.cli.shown import (
    Panel,
    Shown,
    cell_title,
    fact_lines,
    layer_lines,
    planners,
    settings_lines,
    sweeps_in_words,
    written_facts,
)
from kdx.cli.wording import choices_of, shown_score, test_metric
from kdx.report.figures.series import over_parameters
from kdx.report.selection.best_seed import best_seed, standing_runs
from kdx.report.selection.searched import SearchedCell, searched
from kdx.report.sheets.listings import edge_in_words, value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.writers.json import search_to_json
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import cell_details
from kdx.store.reading import searches_that_tried
from kdx.store.records import TrialRecord
from kdx.store.remarks import remarks
from kdx.sweep.forecast import in_words

_MOST_SEEDS = 8
"""Tuning seeds that are listed."""


def shown_cell(database: Database, cell_id: str, conditions: Sequence[str]) -> Shown:
    """Return what there is to show of a cell, and of its runs that meet every `key=value`, in whichever sweep."""
    details, written = cell_details(database, cell_id), remarks(database)
    spec = details.spec
    views = chosen([run_view(run, details.labels, written) for run in details.runs], conditions)
    runs = [view.record for view in views]
    standing = standing_runs(run for run in runs if run.search_id is None)
    tried = [run for run in runs if run.search_id is not None]
    metric = Metric(spec.selection_metric, spec.selection_measure)
    searches = [cell for each in searches_that_tried(database, cell_id) if (cell := searched(each, metric))]
    every = standing_runs(run for run in details.runs if run.search_id is None)
    selected = best_seed(every, spec.selection_direction)
    record = {
        "cell": details.id,
        "settings": spec.plain,
        "varies": details.varies,
        "sweeps": planners(details),
        "metric": metric.name,
        "selected": None if selected is None else selected.id,
        "runs": [view.plain for view in views],
        "searches": [search_to_json(each) for each in searches],
    }
    title = f"cell {cell_id}: {cell_title(details)}"

    def lines() -> Iterator[str]:
        yield sanitize(title)
        best = f"run {selected.id}, by {metric.name}" if selected else ""
        yield from fact_lines({"sweeps": sweeps_in_words(details), "selected": best})
        yield ""
        head = ("run", "seed", "generation", "state", "step", "took", metric.name, test_metric(metric.name), "")
        yield from table(head, (_row(view, metric.name) for view in views), indent=2)
        for each in searches:
            yield ""
            yield from trial_lines(each, details.id)
        yield from layer_lines(spec)
        yield ""
        yield from settings_lines(spec, details.varies)

    drawn = Panel("", [(f"run {run.id} · seed {run.seed}", run) for run in (*standing, *tried)], [spec])
    plots = [plot for each in searches for plot in over_parameters(each)]
    return Shown(title, record, lines, [drawn], plots)


def _row(view: RunView, metric: str) -> tuple[Any, ...]:
    run = view.record
    excluded, tags, notes = written_facts(view).values()
    remarked = (
        f"excluded from reports: {excluded}" if excluded else "",
        run.error or "",
        f"tags: {tags}" if tags else "",
        f"notes: {notes}" if notes else "",
    )
    return (
        run.id,
        str(run.seed),
        run.generation,
        run.state,
        run.progress_step,
        "" if run.seconds is None else in_words(run.seconds),
        shown_score(run.valid_score, metric),
        shown_score(run.test_score, metric),
        "; ".join(filter(None, remarked)),
    )


def trial_lines(cell: SearchedCell, cell_id: str) -> Iterator[str]:
    """Return a line on a search, a table of its trials, and a line for each parameter at the edge of its range.

    Args:
        cell: what is searched.
        cell_id: the cell that is shown, which is marked among the trials.
    """
    names, tuning = list(cell.search.space), cell.search.tuning
    seeds = ", ".join(map(str, tuning.seeds[:_MOST_SEEDS])) + (", …" if len(tuning.seeds) > _MOST_SEEDS else "")
    yield sanitize(
        f"search {cell.search.id[:8]} of {choices_of(cell.labels)}: {len(cell.ended)} of {tuning.trials} trials have"
        f" ended; sampler {tuning.sampler}, pruner {tuning.pruner}, tuning seeds {seeds}"
    )
    rows = [
        (
            trial.number,
            trial.cell_id[:8] if trial.cell_id else "none",
            trial.state.value if trial.state else "not ended",
            shown_score(trial.value, cell.metric.name),
            *(value_in_words(trial.parameters[name]) for name in names),
            _remark(trial, cell, cell_id),
        )
        for trial in cell.trials
    ]
    yield from table(("trial", "cell", "state", cell.metric.name, *names, ""), rows, indent=2)
    yield from (f"  {sanitize(edge_in_words(name, cell, edge))}" for name, edge in cell.edges.items())


def _remark(trial: TrialRecord, cell: SearchedCell, cell_id: str) -> str:
    best = "the best" if trial.number == cell.winner.number else ""
    return ", ".join(filter(None, (best, "this cell" if trial.cell_id == cell_id else "")))
