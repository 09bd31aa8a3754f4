"""The custom components that this process knows by name.

Components from files, packages or another process may be run. Components recorded in a database are known too, so a
report treats their names like those of kdx, but they are never run. A name may stand for several sources, if sweeps
were planned with different ones: `meant_by` selects the sources of a cell.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from kdx.attention.families import FAMILIES
from kdx.errors import KdxError
from kdx.metrics import METRICS
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.words.component import Component
from kdx.words.family import Family
from kdx.words.option import Option

FAMILY_OF: dict[str, Family] = {family.axis: family for family in (*FAMILIES, DIFFICULTIES, TASKS, METRICS)}  # type: ignore[type-arg]
"""Axis → its names."""
_VERSIONS: dict[tuple[str, str, str], Component] = {}
"""(axis, name, hash of the source) → the component; one that may be run replaces a recorded one."""


def add(component: Component, taken: Collection[str] = (), beside: Iterable[Component] = ()) -> None:
    """Add a component to the names of its axis.

    Args:
        taken: names that its options cannot have, since they are keys of the grid or of every cell.
        beside: other components of the same grid; an option that it shares with one of them must be the same option.

    Raises:
        KdxError: kdx has such a name; or the class is missing, of another axis, or cannot be read without running it;
            or the name of one of its options means something else.
    """
    family = FAMILY_OF[component.axis]
    _refuse_words_of_kdx(component)
    _refuse_other_meanings(component, family.define(component).options, taken, beside)
    family.add(component)
    _VERSIONS[component.axis, component.word, component.sha256] = component


def take(texts: Iterable[str]) -> None:
    """Add components that another process sent, see `texts_of`.

    Raises:
        ValueError: a text is not a component.
        KdxError: as `add`.
    """
    for text in texts:
        add(Component.read(text))


def know(recorded: Iterable[Component]) -> None:
    """Add components recorded in a database; a name that already stands for something else keeps its meaning.

    An invalid component, as after an edit of the database, stays unknown.
    """
    for component in recorded:
        with suppress(SyntaxError, KdxError):
            key = component.axis, component.word, component.sha256
            if component.axis not in FAMILY_OF or key in _VERSIONS:
                continue
            family = FAMILY_OF[component.axis]
            _refuse_words_of_kdx(component)
            family.define(component)
            if component.word not in family.outside:
                family.add(component)
            _VERSIONS[key] = component


@contextmanager
def meant_by(hashes: Mapping[str, str]) -> Iterator[None]:
    """Make names stand for these sources, if they are known, within the block.

    Args:
        hashes: name → hash of its source, as a cell has them.
    """
    replaced = []
    for component in _versions(hashes):
        family = FAMILY_OF[component.axis]
        stands = family.outside[component.word]
        if stands.sha256 != component.sha256:
            family.add(component)
            replaced.append((family, stands))
    try:
        yield
    finally:
        for family, stands in replaced:
            family.add(stands)


def at_hand() -> Iterator[Component]:
    """Yield every component that a name stands for and that may be run."""
    for family in FAMILY_OF.values():
        yield from (component for component in family.outside.values() if not component.recorded)


def components_of(hashes: Mapping[str, str]) -> tuple[Component, ...]:
    """Return the components of a cell that may be run, given name → hash of its source."""
    return tuple(component for component in _versions(hashes) if not component.recorded)


def _versions(hashes: Mapping[str, str]) -> list[Component]:
    return [known for (_, word, sha256), known in _VERSIONS.items() if hashes.get(word) == sha256] if hashes else []


def texts_of(hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the same components as texts for another process."""
    return tuple(component.text for component in components_of(hashes))


def _refuse_words_of_kdx(component: Component) -> None:
    """Refuse a name that kdx has on any axis: a cell maps each name to one source."""
    for axis, family in FAMILY_OF.items():
        if component.word in family and component.word not in family.outside:
            problem = f"kdx itself has a {axis} `{component.word}`"
            raise KdxError(problem, place=component.word, hint="give it another name")


def _refuse_other_meanings(
    component: Component, options: Iterable[Option], taken: Collection[str], beside: Iterable[Component]
) -> None:
    """Refuse an option that differs from another option of its name: a cell has one value for each name."""
    words = {(other.axis, other.word) for other in beside}
    others: dict[str, tuple[str, Option]] = {}
    for family in (*FAMILIES, TASKS) if component.axis != "corpus" else ():
        for definition in family.definitions():
            of_kdx = definition.word not in family.outside
            if definition.word != component.word and (of_kdx or (family.axis, definition.word) in words):
                for declared in definition.options:
                    others.setdefault(declared.name, (definition.word, declared))
    for option in options:
        if option.name in taken:
            problem = f"option `{option.name}` of `{component.word}` has the name of a key that every grid or cell has"
            raise KdxError(problem, place=component.class_place, hint="give it another name")
        word, other = others.get(option.name, ("", option))
        if (option.allowed, option.default) != (other.allowed, other.default):
            problem = f"option `{option.name}` of `{component.word}` differs from that of `{word}`"
            hint = f"give it another name, or declare it as that is: default {other.default}, allowed {other.allowed}"
            raise KdxError(problem, place=component.class_place, hint=hint)
