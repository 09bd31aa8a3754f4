"""Settings of a grid that no cell uses, and runs that end before their learning rate is at its peak."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors, leaves, options
from kdx.grid.plan import PlannedCell
from kdx.grid.shipped import folder
from kdx.grid.source import Node
from kdx.grid.words import owners


def without_effect(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """Yield the settings that the file at `path` or the command line writes and no cell uses.

    They are options that no value of any cell has, and settings of a section that every cell resolves to another value.
    A file that is extended, and a preset, may have more; so may a preset that is itself the grid.
    """
    written: dict[int, list[_Setting]] = {}
    used: set[tuple[Place | None, str]] = set()
    faults: dict[tuple[Place | None, str], KdxError] = {}
    in_preset = path.parent == folder() / "presets"
    for cell in cells:
        for node in cell.settings:
            if id(node) not in written:
                written[id(node)] = list(_settings_in(node))
        # A setting that another one replaces is no fault.
        last = {setting.key: setting for node in cell.settings for setting in written[id(node)]}
        unsettled = [setting for setting in last.values() if setting.identity not in used]
        resolved = dict(leaves(cell.spec.model_dump(mode="json", by_alias=True))) if unsettled else {}
        for setting in unsettled:
            # The trials of a search may use a setting that the template does not.
            if cell.search or (_has(cell, setting) if setting.option else resolved.get(setting.key) == setting.value):
                used.add(setting.identity)
            elif (setting.place.file == str(path) or not setting.place.line) and not (setting.option and in_preset):
                faults.setdefault(setting.identity, _fault(setting, resolved))
    yield from (fault for identity, fault in faults.items() if identity not in used)


class _Setting(NamedTuple):
    """A setting that a grid writes."""

    key: str
    """Dotted."""
    place: Place
    value: Any

    @property
    def option(self) -> str:
        """The option that it sets, with its section, for all layers or for some; empty if it sets none."""
        option = self.key.rpartition(".")[2] if self.key.startswith("layers.") else self.key
        return option if option in options() else ""

    @property
    def identity(self) -> tuple[Place | None, str]:
        """An option is reported once, however many values it has on an axis."""
        return None if self.option else self.place, self.key


def _has(cell: PlannedCell, setting: _Setting) -> bool:
    """Return whether a cell, or a layer of it, has an option."""
    section, _, name = setting.option.rpartition(".")
    return any(name in (part.data if section else part).options for part in cell.spec.parts)


def short_of_peak(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield a note if runs end within their warm-up."""
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


def without_difference(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield a note for each axis that makes no difference to any cell."""
    for axis in dict.fromkeys(axis for cell in cells for axis in cell.labels):
        alike: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        for cell in cells:
            others = tuple(item for item in cell.labels.items() if item[0] != axis)
            alike.setdefault(others, {})[cell.labels.get(axis, "")] = cell.search.id if cell.search else cell.id
        if max(map(len, alike.values())) > 1 and all(len(set(ids.values())) == 1 for ids in alike.values()):
            yield f"`{axis}` makes no difference to any cell"


def _settings_in(node: Node) -> Iterator[_Setting]:
    for key, value in leaves(node.plain()):
        # `shared` stands for `tied` where there are only two embeddings.
        in_section = "." in key and key in factors() and key != "model.embeddings"
        setting = _Setting(key, node.key(tuple(key.split("."))), value)
        if setting.option or (in_section and value is not None):
            yield setting


def _fault(setting: _Setting, resolved: Mapping[str, Any]) -> KdxError:
    key, value = setting.key, shortened(setting.value)
    if setting.option:
        user = "layer" if setting.option != key else "cell"
        problem, allowed = f"`{key}` has no effect: no {user} uses it", f"with {', '.join(owners(setting.option))}"
        return KdxError(problem, place=setting.place, allowed=allowed, hint="remove it")
    other = {"model.encoder_layers": "decoder_layers", "model.decoder_layers": "encoder_layers"}.get(key)
    has = resolved[f"model.{other}"] if other else None
    hint = f"write {other}: {value}" if has and has != setting.value else "remove it"
    problem = f"`{key}: {value}` has no effect: every cell has {shortened(resolved.get(key))}"
    return KdxError(problem, place=setting.place, hint=hint)
