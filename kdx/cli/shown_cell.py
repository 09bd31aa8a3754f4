"""A cell: its runs, the trials of searches that tried it, and its settings."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kdx.cli.choosing import chosen
from kdx.cli.shown import (
    Shown,
    default_metrics,
    fact_lines,
    four_digits,
    named,
    notes_in_words,
    planners_to_json,
    row_of,
    run_to_json,
    settings_lines,
    table_lines,
)
from kdx.cli.shown_trials import trial_lines
from kdx.report.selection.best_seed import best_seed, standing_runs
from kdx.report.selection.searched import searched
from kdx.report.statistics.metric import Metric
from kdx.report.writers.json import search_to_json
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.details import cell_details
from kdx.store.records import RunRecord
from kdx.store.remarks import Remarks, remarks
from kdx.store.searches import that_tried
from kdx.sweep.durations import in_words


class ShownCell(Shown):
    def __init__(self, database: Database, cell_id: str, conditions: Sequence[str]) -> None:

        self.details = details = cell_details(database, cell_id)
        self.remarks = remarks(database)
        rows = chosen([row_of(one, details.labels) for one in details.runs], conditions)
        self.runs = [row["record"] for row in rows]
        standing = standing_runs(self.runs)
        metric = Metric(details.spec.selection_metric, details.spec.selection_direction)
        self.searches = [one for each in that_tried(database, cell_id) if (one := searched(each, metric))]
        trials = {seed for one in self.searches for seed in one.search.tuning.seeds}
        scored = [one for one in standing if one.seed not in trials or one.test_score is not None]
        self.selected = best_seed(scored, details.spec.selection_direction)
        self.title = f"cell {cell_id}: {named(details.labels, details.spec.task)}"
        self.drawn = [(f"run {one.id} · seed {one.seed}", one) for one in standing]
        self.metrics = default_metrics([details.spec.plain])

    def plain(self) -> dict[str, Any]:
        details = self.details
        return {
            "cell": details.id,
            "settings": dict(details.spec.plain),
            "varies": list(details.varies),
            "sweeps": planners_to_json(details),
            "metric": details.spec.selection_metric,
            "selected": None if self.selected is None else self.selected.id,
            "runs": [run_to_json(one, self.remarks) for one in self.runs],
            "searches": [search_to_json(one) for one in self.searches],
        }

    def lines(self, db: str) -> Iterator[str]:
        details = self.details
        yield sanitize(self.title)
        yield from fact_lines(
            {
                "sweeps": ", ".join(one.sweep for one in details.planners) or "none plans it any more",
                "selected": ""
                if self.selected is None
                else f"run {self.selected.id}, by {details.spec.selection_metric}",
            }
        )
        yield ""
        yield from _runs(self.runs, details.spec.selection_metric, self.remarks)
        for one in self.searches:
            yield ""
            yield from trial_lines(one, details.id)
        yield ""
        yield from settings_lines(details.spec, details.varies)


def _runs(runs: Iterable[RunRecord], metric: str, written: Remarks) -> Iterator[str]:
    head = ("run", "seed", "generation", "state", "step", "took", metric, metric.replace("valid/", "test/", 1), "")
    yield from table_lines(
        head,
        [
            (
                one.id,
                str(one.seed),
                one.generation,
                one.state.value,
                one.progress_step,
                "" if one.seconds is None else in_words(one.seconds),
                four_digits(one.valid_score),
                four_digits(one.test_score),
                "; ".join(filter(None, _remarked(one, written))),
            )
            for one in runs
        ],
    )


def _remarked(record: RunRecord, written: Remarks) -> Iterator[str]:
    """What a list of runs says of one beside its numbers."""
    if record.invalidated is not None:
        yield f"out of tables: {record.invalidated}"
    yield record.error or ""
    if tags := written.tags_of_runs.get(record.id):
        yield f"tags: {' '.join(tags)}"
    if notes := written.of_runs.get(record.id):
        yield f"notes: {notes_in_words(notes)}"
