"""What `kdx show` shows of a run, and what it shows of runs, cells and sweeps in the same way."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.console import table, width
from kdx.cli.named_runs import RunView, run_view
from kdx.cli.wording import (
    choices_of,
    notes_in_words,
    process_in_words,
    process_of,
    shown_score,
    size,
    test_metric,
    time_in_words,
)
from kdx.grid.cell_selector import default_word, in_layer, options
from kdx.grid.layers import layers_of_model
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.metrics.decimals import rounded
from kdx.report.figures.plot import Plot
from kdx.report.writers.settings import as_yaml
from kdx.run_files.files import Kind, files_beside, files_of, folder_of, log_of
from kdx.run_files.folder_ownership import is_strange
from kdx.sanitize import sanitize, sanitize_lines
from kdx.store.database import Database
from kdx.store.details import CellDetails, RunDetails, run_details
from kdx.store.records import AttemptRecord, EvaluationRecord, RunRecord
from kdx.store.remarks import remarks
from kdx.sweep.forecast import in_words
from kdx.vocabulary import Direction

ATTEMPT = "attempt", "started (UTC)", "took", "steps", "outcome", "process", "changed"
"""Header of a table of attempts."""
LOSS = "train/loss"


@dataclass(frozen=True)
class Panel:
    """Runs of one task, whose curves are drawn over one another."""

    title: str
    """The task, if there are several panels."""
    runs: Sequence[tuple[str, RunRecord]]
    """Each with the name that the legend gives it."""
    specs: Sequence[ResolvedSpec]
    """The cells of the task."""

    @property
    def metrics(self) -> list[str]:
        """What is drawn by default: what selects, and the loss in training."""
        return list(dict.fromkeys([*(spec.selection_metric for spec in self.specs), LOSS]))

    def direction(self, metric: str) -> Direction | None:
        """Return the good end of a metric; None if it is not known."""
        for spec in self.specs:
            if metric == spec.selection_metric:
                return spec.selection_direction
        measure = self.specs[0].test_metrics.get(metric.partition("/")[2])
        return measure.direction if measure else None


@dataclass(frozen=True)
class Shown:
    """A run, a cell or a sweep, ready to be written."""

    title: str
    record: Any
    """For `--json`; docs/reference/json.md has the keys."""
    lines: Callable[[], Iterator[str]]
    panels: Sequence[Panel]
    """The runs whose curves are drawn."""
    plots: Sequence[Plot] = ()
    """What is drawn beside the curves by default: the trials of searches."""


def attempt_row(attempt: AttemptRecord) -> tuple[Any, ...]:
    """Return one try at a run under the header `ATTEMPT`."""
    return (
        attempt.number,
        time_in_words(attempt.started),
        "" if attempt.ended is None else in_words(attempt.ended - attempt.started),
        f"{first_step(attempt):,}–{'' if attempt.last_step is None else f'{attempt.last_step:,}'}",
        attempt.outcome or "running",
        process_in_words(attempt.owner) or attempt.owner,
        attempt.changes or "",
    )


def first_step(attempt: AttemptRecord) -> int:
    """Return the step from which an attempt trained."""
    # The step of the checkpoint is unknown for an attempt that ended before it began.
    return attempt.first_step if attempt.resumed_step is None else attempt.resumed_step


def written_facts(run: RunView) -> dict[str, str]:
    """Return what people wrote on a run."""
    return {
        "excluded": run.record.invalidated or "",
        "tags": " ".join(run.tags),
        "notes": notes_in_words(run.notes),
    }


def planners(cell: CellDetails) -> list[dict[str, Any]]:
    """Return the sweeps that plan a cell, with its choices in each."""
    return [{"sweep": sweep, "choices": labels} for sweep, labels in cell.planners.items()]


def cell_title(cell: CellDetails) -> str:
    return choices_of(cell.labels, cell.spec.task)


def sweeps_in_words(cell: CellDetails) -> str:
    searches = dict.fromkeys(f"trials of search {run.search_id[:8]}" for run in cell.runs if run.search_id)
    return ", ".join((*cell.planners, *searches)) or "none plans it any more"


def settings_lines(spec: ResolvedSpec, varies: Sequence[str]) -> Iterator[str]:
    """Write the settings of a cell as YAML; what varies in its sweep comes first."""
    there = [field for field in varies if spec.value(field) is not None]
    yield f"settings, of which vary: {', '.join(there)}" if there else "settings"
    yield from yaml_lines(_with_first(there, spec.plain))


def yaml_lines(settings: Mapping[str, Any]) -> Iterator[str]:
    """Write settings as YAML, indented."""
    yield from (f"  {sanitize_lines(line)}" for line in as_yaml(settings, width()).splitlines())


def layer_lines(spec: ResolvedSpec) -> Iterator[str]:
    """Write a row for each layer with the choices in which layers differ; nothing if all are alike."""
    own = [(layer, factor) for layer, factor in map(in_layer, spec.words) if layer]
    choices = dict.fromkeys(factor for _, factor in own if factor not in options())
    if not own:
        return
    rows = []
    for layer in layers_of_model(int(spec.value("model.encoder_layers")), int(spec.value("model.decoder_layers"))):
        words = {factor: spec.word(f"layers.{layer}.{factor}") for name, factor in own if name == f"layers.{layer}"}
        changed = [f"{name} {word}" for name, word in words.items() if name in options() and word != _usual(spec, name)]
        row = (spec.word(f"layers.{layer}.{factor}") for factor in choices)
        rows.append((str(layer), *row, ", ".join(changed)))
    yield from table(("layer", *choices, "options"), rows, indent=2, apart=True)


def _usual(spec: ResolvedSpec, option: str) -> str | None:
    """Return the word of an option that is not worth a mention: the cell's own, or else its default."""
    return spec.word(option) if option in spec.words else default_word(option)


def _with_first(fields: Sequence[str], cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell with these dotted fields, which it has, before all others, at each level."""
    ordered = {}
    for key in dict.fromkeys((*(field.partition(".")[0] for field in fields), *cell)):
        inner = [field.removeprefix(f"{key}.") for field in fields if field.startswith(f"{key}.")]
        ordered[key] = _with_first(inner, cell[key]) if isinstance(cell[key], Mapping) else cell[key]
    return ordered


def fact_lines(facts: Mapping[str, str]) -> Iterator[str]:
    """Write the facts that are there, one a line, aligned."""
    there = {sanitize(name): sanitize(text) for name, text in facts.items() if text}
    width = max(map(len, there), default=0)
    yield from (f"  {name:{width}}  {text}" for name, text in there.items())


_HASH = re.compile(r"\b[0-9a-f]{64}\b")


def shown_run(database: Database, run_id: int) -> Shown:
    """Return what there is to show of a run: all that is recorded but its curves and its documents."""
    details = run_details(database, run_id)
    view = run_view(details.record, details.cell.labels, remarks(database))
    facts = {**_facts(details), **_files(database, details)}
    title = f"run {run_id}: {cell_title(details.cell)} · seed {details.record.seed}, {details.record.state}"
    return Shown(
        title,
        {**view.plain, **facts},
        lambda: _lines(title, view, details, facts),
        [Panel("", [(f"run {run_id}", details.record)], [details.cell.spec])],
    )


def _facts(details: RunDetails) -> dict[str, Any]:
    record, cell, origin = details.record, details.cell, details.provenance
    newest = max((run for run in cell.runs if run.key == record.key), key=lambda run: run.generation)
    steps = cell.spec.value("training.steps")
    return {
        "newer": None if newest.generation <= record.generation else newest.id,
        "steps": steps if isinstance(steps, int) else None,
        "metrics": details.metrics,
        "settings": cell.spec.plain,
        "varies": cell.varies,
        "sweeps": planners(cell),
        "attempts": [_attempt(attempt) for attempt in details.attempts],
        "environment": origin.environment,
        "data": origin.data,
        "code": origin.code,
        "changes": origin.changes,
        "evaluations": [
            {"settings": each.settings, "metrics": each.metrics, "error": each.error} for each in details.evaluations
        ],
    }


def _attempt(attempt: AttemptRecord) -> dict[str, Any]:
    machine, process = process_of(attempt.owner) or (None, None)
    return {
        "attempt": attempt.number,
        "started": attempt.started,
        "ended": attempt.ended,
        "outcome": attempt.outcome,
        "first_step": first_step(attempt),
        "last_step": attempt.last_step,
        "machine": machine,
        "process": process,
        "place": process_in_words(attempt.owner) or attempt.owner,
        "changes": attempt.changes,
        "traceback": attempt.traceback,
    }


def _files(database: Database, details: RunDetails) -> dict[str, Any]:
    folder = files_beside(database.location)
    # The folder of another database may have a run of the same cell and seed.
    files = () if is_strange(database) else files_of(folder, details.record)
    has_log = any(file.kind is Kind.LOG for file in files)
    return {
        "folder": str(folder / folder_of(details.record)) if files else None,
        "log": str(log_of(folder, details.record)) if has_log else None,
        "files": [{"name": file.name, "kind": file.kind.value, "bytes": file.size} for file in files],
    }


def _lines(title: str, view: RunView, details: RunDetails, facts: Mapping[str, Any]) -> Iterator[str]:
    run, steps = details.record, facts["steps"]
    environment = (facts["environment"] or {}).items()
    yield sanitize(title)
    yield from fact_lines(
        {
            "cell": run.cell_id,
            "sweeps": sweeps_in_words(details.cell),
            "generation": str(run.generation) if run.generation else "",
            "newer": f"run {facts['newer']} is a newer generation" if facts["newer"] else "",
            **written_facts(view),
            "step": f"{run.progress_step:,} of {steps:,}" if steps else f"{run.progress_step:,}",
            "scores": ", ".join(_scores(details)),
            "error": run.error or "",
            "undertrained": run.undertrained or "",
            "took": in_words(run.seconds) if run.seconds is not None else "",
            "ran on": ", ".join(f"{name} {value}" for name, value in environment if value is not None),
            "changed": facts["changes"] or "",
            "files": ", ".join(f"{_file(file['name'])} ({size(file['bytes'])})" for file in facts["files"]),
            "folder": facts["folder"] or "",
            "log": facts["log"] or "",
        }
    )
    metrics = [(name, shown_score(value, name)) for name, value in details.metrics.items()]
    yield from table(("metric", "value"), metrics, indent=2, apart=True)
    yield from table(("evaluation", "scores"), map(_evaluation, details.evaluations), indent=2, apart=True)
    attempts = map(attempt_row, details.attempts)
    yield from table(ATTEMPT, attempts, indent=2, spare=("took",), optional=("changed",), apart=True)
    yield from layer_lines(details.cell.spec)
    yield ""
    yield from settings_lines(details.cell.spec, details.cell.varies)


def _file(name: str) -> str:
    """Return the name of a file with no more of a hash than tells it apart."""
    return _HASH.sub(lambda sha256: f"{sha256[0][:8]}…", name)


def _evaluation(evaluation: EvaluationRecord) -> tuple[str, str]:
    settings = ", ".join(f"{name} {value}" for name, value in evaluation.settings.items() if value is not None)
    scores = ", ".join(f"{name} {rounded(value, name)}" for name, value in evaluation.metrics.items())
    return settings, evaluation.error or scores


def _scores(details: RunDetails) -> Iterator[str]:
    run, metric = details.record, details.cell.spec.selection_metric
    if run.valid_score is not None:
        yield f"{metric} {rounded(run.valid_score, metric)} at step {run.valid_step:,}"
    if run.test_score is not None:
        yield f"{test_metric(metric)} {rounded(run.test_score, metric)}"
