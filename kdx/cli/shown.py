"""What `kdx show` shows of runs, cells and sweeps in the same way: runs, notes, settings and facts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.console import table, width
from kdx.cli.named_runs import RunView
from kdx.cli.wording import choices_of, notes_in_words, process_in_words, time_in_words
from kdx.grid.cell_selector import default_word, in_layer, options
from kdx.grid.layers import layers_of_model
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.figures.plot import Plot
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize, sanitize_lines
from kdx.store.details import CellDetails
from kdx.store.records import AttemptRecord, RunRecord
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
    return ", ".join(cell.planners) or "none plans it any more"


def test_metric(selection_metric: str) -> str:
    """Return the metric of the test that is reported beside a selection metric."""
    return selection_metric.replace("valid/", "test/", 1)


def settings_lines(settings: Mapping[str, Any], varies: Sequence[str]) -> Iterator[str]:
    """Write the settings of a cell as YAML; what varies in its sweep comes first."""
    there = [field for field in varies if _has(settings, field)]
    yield f"settings, of which vary: {', '.join(there)}" if there else "settings"
    yield from yaml_lines(_with_first(there, settings))


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
    yield ""
    yield from table_lines(("layer", *choices, "options"), rows)


def _usual(spec: ResolvedSpec, option: str) -> str | None:
    """Return the word of an option that is not worth a mention: the cell's own, or else its default."""
    return spec.word(option) if option in spec.words else default_word(option)


def _has(settings: Any, field: str) -> bool:
    for key in field.split("."):
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings is not None


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


def table_lines(head: Sequence[str], rows: Iterable[Sequence[Any]], spare: Sequence[str] = ()) -> Iterator[str]:
    """Write an indented table; `spare` is as in `kdx.report.writers.rows.to_text`."""
    yield from table(head, list(rows), indent=2, spare=spare)
