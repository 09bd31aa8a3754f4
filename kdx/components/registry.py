"""The custom components that this process knows as words."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from kdx.attention.families import FAMILIES
from kdx.components.component import Component
from kdx.errors import KdxError, Place, did_you_mean
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.words.family import Family
from kdx.words.literals import DefinitionError
from kdx.words.option import Option

FAMILY_OF: dict[str, Family] = {family.axis: family for family in (*FAMILIES, DIFFICULTIES, TASKS)}  # type: ignore[type-arg]
"""Axis → its words."""


def add(part: Component, taken: Collection[str] = (), beside: Iterable[Component] = ()) -> None:
    """Make a component a word of its axis.

    Args:
        taken: names that its options cannot have, for they are keys of the grid or of every cell.
        beside: components of the same grid, with which it shares names of options.

    Raises:
        KdxError: kdx has such a word, or the class is not there, of another kind, or not to be read without running it;
            or it has an option whose name means something else.
    """
    try:
        family = FAMILY_OF[part.axis]
        _refuse_words_of_kdx(part)
        _refuse_other_meanings(part, family.define(part).options, taken, beside)
        family.add(part)
    except SyntaxError as error:
        place = Place(error.filename or part.word, error.lineno or 1, error.offset or 1)
        raise KdxError(f"no Python: {error.msg}", place=place) from error
    except DefinitionError as error:
        at: Place | str = part.place(error.module, error.line) if error.module in part.paths else part.word
        names = [node.name for node in part.trees[part.module].body if isinstance(node, ast.ClassDef)]
        if part.name in names:
            raise KdxError(error.problem, place=at, hint=error.hint) from error
        raise KdxError(error.problem, place=at, allowed=names or None, hint=did_you_mean(part.name, names)) from error


def take(texts: Iterable[str]) -> None:
    """Add components that another process sent, see `texts_of`.

    Raises:
        ValueError: a text is no component.
        KdxError: as `add`.
    """
    for text in texts:
        add(Component.read(text))


def at_hand() -> Iterator[Component]:
    """Every component that was added."""
    for family in FAMILY_OF.values():
        for part in family.outside.values():
            assert isinstance(part, Component)
            yield part


def components_of(hashes: Mapping[str, str]) -> tuple[Component, ...]:
    """The components at hand that a cell has, from its words and the hashes of their sources."""
    return tuple(part for part in at_hand() if hashes.get(part.word) == part.sha256)


def texts_of(hashes: Mapping[str, str]) -> tuple[str, ...]:
    """The same components as texts for another process."""
    return tuple(part.text for part in components_of(hashes))


def _refuse_words_of_kdx(part: Component) -> None:
    """A cell has one source under a word, so a word of any axis is taken; one of its own axis is refused elsewhere."""
    for axis, family in FAMILY_OF.items():
        if axis != part.axis and part.word in family and part.word not in family.outside:
            raise KdxError(f"kdx itself has a {axis} `{part.word}`", place=part.word, hint="give it another name")


def _refuse_other_meanings(
    part: Component, options: Iterable[Option], taken: Collection[str], beside: Iterable[Component]
) -> None:
    """An option whose name another word has must be the same option, for a cell has one value under a name."""
    words = {(one.axis, one.word) for one in beside}
    others: dict[str, tuple[str, Option]] = {}
    for family in (*FAMILIES, TASKS) if part.axis != "corpus" else ():
        for definition in family.definitions():
            of_kdx = definition.word not in family.outside
            if definition.word != part.word and (of_kdx or (family.axis, definition.word) in words):
                for one in definition.options:
                    others.setdefault(one.name, (definition.word, one))
    for option in options:
        if option.name in taken:
            problem = f"option `{option.name}` of `{part.word}` has the name of a key that every grid or cell has"
            raise KdxError(problem, place=part.place(part.module, 1), hint="give it another name")
        word, other = others.get(option.name, ("", option))
        if (option.allowed, option.default) != (other.allowed, other.default):
            problem = f"option `{option.name}` of `{part.word}` is another one than that of `{word}`"
            hint = f"give it another name, or declare it like that: {other.default}, {other.allowed}"
            raise KdxError(problem, place=part.place(part.module, 1), hint=hint)
