"""Decides which cells' numbers compare: those of one task and metric, over the same text, tokens and context.

A perplexity is per token, so it depends on the vocabulary and on the number of unknown words, which cost next to
nothing. BLEU needs the same references, bits per byte only the same text. Where a cell recorded no
such facts, the settings of the data have to be the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdx.grid.cell_selector import factors
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.table_layout import EVALUATION, Address
from kdx.report.selection.cells import Cell
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.store.records import SweepRecord
from kdx.tasks.definition import Per

BITS_PER_BYTE = "bits_per_byte"
"""The metric that compares across vocabularies."""
_SHORT = 8
"""Digits of a hash that are shown."""


class Trait(NamedTuple):
    """A fact that has to be the same in two cells for their numbers to compare."""

    topic: str
    """Such as `vocabulary`."""
    key: str
    """Equal in two cells if the fact is the same."""
    text: str
    """The fact in words."""


def traits_of(layout: Layout, sweep: SweepRecord) -> dict[Address, tuple[Trait, ...]]:
    """The traits of every cell, without task and metric."""
    facts = {at: _facts(cell, sweep) for at, cell in layout.places.items()}
    scored = [at for at, cell in layout.places.items() if cell.scores]
    # If only some cells have facts, those would differ from the others by nothing else.
    recorded = all(facts[at] for at in scored)
    traits = {}
    for at, cell in layout.places.items():
        spec, known = layout.spec(at), facts[at]
        of_data = _of_facts(cell.metric, known, spec) if recorded and known else _of_spec(spec)
        traits[at] = (*of_data, *_reading(spec), *_of_evaluation(layout.records[cell.id].labels))
    return traits


@dataclass(frozen=True)
class ComparableCells:
    """Cells of a table whose numbers compare, by place."""

    task: str
    metric: Metric
    cells: Mapping[Address, Cell]


def comparable_cells(layout: Layout, traits: Mapping[Address, Sequence[Trait]]) -> tuple[ComparableCells, ...]:
    """The cells of a layout, grouped so that the numbers within a group compare."""
    groups: dict[Any, dict[Address, Cell]] = {}
    for at, cell in layout.places.items():
        same = tuple((trait.topic, trait.key) for trait in traits[at])
        groups.setdefault((cell.metric, layout.spec(at).task, same), {})[at] = cell
    return tuple(ComparableCells(task, metric, cells) for (metric, task, _), cells in groups.items())


def compares_by_bytes(cells: Mapping[Address, Cell], sweep: SweepRecord) -> bool:
    """Whether every run of these cells recorded bits per byte, so that the cells can be compared by them."""
    runs = [seed.run_id for cell in cells.values() for seed in cell.seeds if seed.score is not None]
    return all(f"test/{BITS_PER_BYTE}" in sweep.metrics.get(run, {}) for run in runs)


def _facts(cell: Cell, sweep: SweepRecord) -> Mapping[str, Any] | None:
    """What the first run with a score recorded of its data; None where none did."""
    origins = (sweep.provenance.get(seed.run_id) for seed in cell.seeds if seed.score is not None)
    return next((origin.facts for origin in origins if origin and origin.facts), None)


def _of_facts(metric: Metric, facts: Mapping[str, Any], spec: ResolvedSpec) -> tuple[Trait, ...]:
    split, per = metric.recorded.partition("/")[0], metric.measure.per
    topics = {f"{split}/text": f"{split} text", f"{split}/source_text": f"{split} source text"}
    topics |= {f"{split}/content": f"{split} examples"}
    traits = []
    unknown = facts.get(f"{split}/unknown_rate") or 0.0
    if "vocabulary" in facts and (per is Per.TOKEN or (per is Per.WORD and unknown)):
        key, size = str(facts["vocabulary"]), facts.get("vocabulary_size") or 0
        traits.append(Trait("vocabulary", key, f"{size:,} tokens ({key[:6]}), {unknown:.1%} of the {split} unknown"))
    if "tokenisation" in facts and per in (Per.TOKEN, Per.TEXT):
        traits.append(Trait("tokenisation", str(facts["tokenisation"]), str(facts["tokenisation"])))
    traits += (
        Trait(topic, str(facts[name]), str(facts[name])[:_SHORT]) for name, topic in topics.items() if name in facts
    )
    if metric.unit.startswith(f"{metric.whole}/frequency="):
        # A token may be rare in one training text and frequent in another of the same vocabulary.
        trained = "/".join(str(spec.value(f"data.{name}")) for name in ("corpus", "train_lines", "seed"))
        traits.append(Trait("training text", trained, trained))
    return tuple(traits)


def _of_evaluation(labels: Mapping[str, str]) -> tuple[Trait, ...]:
    """Which text an evaluation read; the text of a test is among its facts."""
    read = [labels[f"{EVALUATION}.{name}"] for name in ("corpus", "split") if f"{EVALUATION}.{name}" in labels]
    return (Trait("evaluated text", " ".join(read), " ".join(read)),) if read else ()


def _of_spec(spec: ResolvedSpec) -> tuple[Trait, ...]:
    known = dict.fromkeys((*factors(), *spec.words))
    data = [(factor, str(spec.word(factor))) for factor in known if factor.startswith("data.")]
    return tuple(Trait(factor, word, word) for factor, word in data)


def _reading(spec: ResolvedSpec) -> tuple[Trait, ...]:
    """How a stream is cut for the test, since a perplexity depends on the context."""
    if spec.value("training.length") is None:  # which every task that reads streams has, and no other
        return ()
    length = spec.value("evaluation.length") or spec.value("training.length")
    memory = spec.value("memory" if spec.value("evaluation.memory") is None else "evaluation.memory")
    tokens = spec.value("training.batch_tokens")  # which a cell of a newer kdx may lack
    streams = spec.value("evaluation.streams") or (tokens // spec.value("training.length") if tokens else None)
    context = f"{streams} streams, {length} tokens, memory {memory or 0}"
    return (Trait("evaluation context", context, context),)
