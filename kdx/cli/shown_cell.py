"""A cell: its runs, the trials of searches that tried it, and its settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.run_view import RunView, chosen, run_view
from kdx.cli.shown import (
    Shown,
    cell_title,
    default_metrics,
    fact_lines,
    planners,
    settings_lines,
    sweeps_in_words,
    table_lines,
    test_metric,
)
from kdx.cli.shown_trials import trial_lines
from kdx.cli.wording import four_digits, notes_in_words
from kdx.report.selection.best_seed import best_seed, standing_runs
from kdx.report.selection.searched import searched
from kdx.report.statistics.metric import Metric
from kdx.report.writers.json import search_to_json
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import cell_details
from kdx.store.reading import searches_that_tried
from kdx.store.remarks import remarks
from kdx.sweep.forecast import in_words


@dataclass(frozen=True)
class ShownCell:
    """A cell, and its runs in whichever sweep."""

    cell: str
    settings: Mapping[str, Any]
    varies: Sequence[str]
    sweeps: Sequence[Mapping[str, Any]]
    metric: str
    selected: int | None
    """The run whose score stands for the cell."""
    runs: Sequence[RunView]
    searches: Sequence[Mapping[str, Any]]


def shown_cell(database: Database, cell_id: str, conditions: Sequence[str]) -> Shown:
    """Return what there is to show of a cell, and of its runs that meet every `key=value`."""
    details, written = cell_details(database, cell_id), remarks(database)
    spec = details.spec
    views = chosen([run_view(run, details.labels, written) for run in details.runs], conditions)
    runs = [run for run in details.runs if run.id in {view.run for view in views}]
    standing = standing_runs(run for run in runs if run.search_id is None)
    tried = [run for run in runs if run.search_id is not None]
    metric = Metric(spec.selection_metric, spec.selection_direction)
    searches = [found for each in searches_that_tried(database, cell_id) if (found := searched(each, metric))]
    selected = best_seed(standing, spec.selection_direction)
    shown = ShownCell(
        cell=details.id,
        settings=spec.plain,
        varies=details.varies,
        sweeps=planners(details),
        metric=spec.selection_metric,
        selected=None if selected is None else selected.id,
        runs=views,
        searches=[search_to_json(each) for each in searches],
    )
    title = f"cell {cell_id}: {cell_title(details)}"

    def lines() -> Iterator[str]:
        yield sanitize(title)
        best = f"run {shown.selected}, by {shown.metric}" if shown.selected is not None else ""
        yield from fact_lines({"sweeps": sweeps_in_words(details), "selected": best})
        yield ""
        head = ("run", "seed", "generation", "state", "step", "took", shown.metric, test_metric(shown.metric), "")
        yield from table_lines(head, map(_row, shown.runs))
        for each in searches:
            yield ""
            yield from trial_lines(each, details.id)
        yield ""
        yield from settings_lines(shown.settings, shown.varies)

    drawn = [(f"run {run.id} · seed {run.seed}", run) for run in (*standing, *tried)]
    return Shown(title, shown, lines, drawn, default_metrics([spec.plain]), searches)


def _row(run: RunView) -> tuple[Any, ...]:
    remarked = (
        f"excluded from reports: {run.invalidated}" if run.invalidated is not None else "",
        run.error or "",
        f"tags: {' '.join(run.tags)}" if run.tags else "",
        f"notes: {notes_in_words(run.notes)}" if run.notes else "",
    )
    return (
        run.run,
        str(run.seed),
        run.generation,
        run.state,
        run.step,
        "" if run.seconds is None else in_words(run.seconds),
        four_digits(run.valid_score),
        four_digits(run.test_score),
        "; ".join(filter(None, remarked)),
    )
