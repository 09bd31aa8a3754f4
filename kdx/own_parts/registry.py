"""The words that came from outside, in this process."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from kdx.attention.families import FAMILIES
from kdx.data.corpora import DIFFICULTIES
from kdx.definitions import DefinitionError, Family, Option
from kdx.errors import KdxError, Place, did_you_mean
from kdx.own_parts.part import OwnPart

FAMILY_OF: dict[str, Family] = {family.axis: family for family in (*FAMILIES, DIFFICULTIES)}  # type: ignore[type-arg]
"""Axis → its words."""


def add(part: OwnPart, taken: Collection[str] = ()) -> None:
    """Makes it a word of its axis.

    Args:
        taken: names that its options cannot have, for they are keys of every cell.

    Raises:
        KdxError: kdx has such a word, or the class is not there, of another kind, or not to be read without running it;
            or it has an option whose name means something else.
    """
    try:
        family = FAMILY_OF[part.axis]
        _refuse_other_meanings(part, family.define(part).options, taken)
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
    """Adds parts that another process sent, see `texts_of`.

    Raises:
        ValueError: a text is no part.
        KdxError: as `add`.
    """
    for text in texts:
        add(OwnPart.read(text))


def at_hand() -> Iterator[OwnPart]:
    """Every part that was added."""
    for family in FAMILY_OF.values():
        for part in family.outside.values():
            assert isinstance(part, OwnPart)
            yield part


def parts_of(hashes: Mapping[str, str]) -> tuple[OwnPart, ...]:
    """The parts at hand that a cell has, from its words and the hashes of their sources."""
    return tuple(part for part in at_hand() if hashes.get(part.word) == part.sha256)


def texts_of(hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Those parts as texts for another process."""
    return tuple(part.text for part in parts_of(hashes))


def _refuse_other_meanings(part: OwnPart, options: Iterable[Option], taken: Collection[str]) -> None:
    """An option whose name another word of kdx has must be the same option, for a cell has one value under a name."""
    known = [one for family in FAMILIES for one in family.definitions() if part.axis != "corpus"]
    others: dict[str, tuple[str, Option]] = {}
    for definition in known:
        for one in definition.options if definition.word != part.word else ():
            others.setdefault(one.name, (definition.word, one))
    for option in options:
        if option.name in taken:
            problem = f"option `{option.name}` of `{part.word}` has the name of a key that every cell has"
            raise KdxError(problem, place=part.place(part.module, 1), hint="give it another name")
        word, other = others.get(option.name, ("", option))
        if (option.allowed, option.default) != (other.allowed, other.default):
            problem = f"option `{option.name}` of `{part.word}` is another one than that of `{word}`"
            hint = f"give it another name, or declare it like that: {other.default}, {other.allowed}"
            raise KdxError(problem, place=part.place(part.module, 1), hint=hint)
