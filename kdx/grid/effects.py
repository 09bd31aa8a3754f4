"""Settings of a grid that no cell uses, and runs that end before their learning rate is at its peak."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors
from kdx.grid.plan import PlannedCell
from kdx.grid.shipped import folder
from kdx.grid.source import Node
from kdx.grid.table_layout import leaves
from kdx.grid.words import known_options, owners
from kdx.tasks.corpora import options_of_corpora


def without_effect(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """The settings that the file at `path` writes and no cell uses; what it extends, and a preset, may have more."""
    if path.parent != folder() / "presets":
        yield from _options_of_no_word(cells, path)
    yield from _resolved_otherwise(cells, path)


def short_of_peak(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """A note if runs end within their warm-up."""
    searched = {"training.steps", "training.warmup"}  # a template has a value that no trial need have
    settled = [cell.spec.training for cell in cells if cell.search is None or searched.isdisjoint(cell.search.space)]
    short = [training for training in settled if training.steps < training.warmup]
    if short:
        worst = min(short, key=lambda training: training.steps / training.warmup)
        where = "" if len(short) == len(cells) else f" in {len(short)} of {len(cells)} cells"
        yield (
            f"the learning rate never reaches its peak{where}: it ends at {100 * worst.steps // worst.warmup}%,"
            f" as training.steps is {worst.steps} and training.warmup {worst.warmup}"
        )


def _options_of_no_word(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """Options that no word of any cell has."""
    nodes = {id(node): node for cell in cells for node in cell.settings}
    used = {name for cell in cells for name in cell.spec.options}
    used |= {f"data.{name}" for cell in cells for name in cell.spec.data.options}
    written: dict[str, Place] = {}
    for node in nodes.values():
        written |= {name: node.key((name,)) for name in node.value if name in known_options()}
        data = node.value.get("data")
        if data is not None and isinstance(data.value, dict):
            written |= {f"data.{name}": data.key((name,)) for name in data.value if name in options_of_corpora()}
    for name, place in written.items():
        if name not in used and (place.file == str(path) or not place.line):
            problem = f"`{name}` has no effect: no cell uses it"
            yield KdxError(problem, place=place, allowed=f"with {', '.join(owners(name))}", hint="remove it")


def _resolved_otherwise(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """Settings of a section to which every cell, when it is resolved, gives another value."""
    nodes: dict[int, dict[str, tuple[Place, Any]]] = {}
    taken: set[tuple[Place, str]] = set()
    faults: dict[tuple[Place, str], KdxError] = {}
    for cell in cells:
        last: dict[str, tuple[Place, Any]] = {}  # what another setting replaces is no fault
        for node in cell.settings:
            if id(node) not in nodes:
                nodes[id(node)] = dict(_in_sections(node))
            last |= nodes[id(node)]
        unsettled = [(key, *written) for key, written in last.items() if (written[0], key) not in taken]
        resolved = dict(leaves(cell.spec.model_dump(mode="json", by_alias=True))) if unsettled else {}
        for key, place, value in unsettled:
            # What a search chooses may use a setting that the template does not.
            if cell.search is not None or resolved.get(key) == value:
                taken.add((place, key))
            elif place.file == str(path) or not place.line:
                problem = f"`{key}: {shortened(value)}` has no effect: every cell has {shortened(resolved.get(key))}"
                faults[place, key] = KdxError(problem, place=place, hint=_instead(key, value, resolved))
    yield from (fault for at, fault in faults.items() if at not in taken)


def _in_sections(node: Node) -> Iterator[tuple[str, tuple[Place, Any]]]:
    for key, value in leaves(node.plain()):
        of_a_word = key.removeprefix("data.") in options_of_corpora()
        # `shared` stands for `tied` where there are only two embeddings.
        if "." in key and key in factors() and value is not None and not of_a_word and key != "model.embeddings":
            yield key, (node.key(tuple(key.split("."))), value)


def _instead(key: str, value: Any, resolved: Mapping[str, Any]) -> str:
    other = {"model.encoder_layers": "decoder_layers", "model.decoder_layers": "encoder_layers"}.get(key)
    return f"write {other}: {shortened(value)}" if other and resolved[f"model.{other}"] else "remove it"
