"""What is known of a word, whatever kind of word it is: of a family, a task, a corpus or a plain list of words."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from kdx.attention.families import FAMILIES
from kdx.grid.descriptions import descriptions
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES
from kdx.words.family import Family
from kdx.words.option import Option


@dataclass(frozen=True)
class Facts:
    """Of one word; a text is empty where there is nothing to say."""

    word: str
    title: str = ""
    formula: str = ""
    source: str = ""
    """The paper, with its equation or section."""
    options: tuple[Option, ...] = ()
    takes: tuple[str, ...] = ()
    """The axes that it makes use of."""


def facts_of(words: Collection[str], word: str) -> Facts:
    """Of a word of a family, or of a member of an enum; of another word nothing is known."""
    if isinstance(words, Family) and word in words:
        known = words.definition(word)
        # A task has no source, and a corpus no formula.
        more = {name: getattr(known, name) for name in ("formula", "source", "takes") if hasattr(known, name)}
        return Facts(word, known.title, options=known.options, **more)
    if isinstance(word, StrEnum):
        return Facts(str(word), descriptions(type(word)).get(word.name, "").removesuffix("."))
    return Facts(word)


def facts_of_corpus(word: str) -> Facts:
    """Of a corpus that kdx knows by name: of one without a difficulty, the first line of its module."""
    if word in DIFFICULTIES:
        return facts_of(DIFFICULTIES, word)
    return Facts(word, _first_line(BUILT_IN.addresses[word].partition(":")[0]))


def facts_at(key: str, word: str) -> Facts | None:
    """Of a word that may stand under a key of a cell; None where its key alone says what it is."""
    axis = key.partition(".")[0]
    if key == "data.corpus":
        return facts_of_corpus(word) if word in BUILT_IN or word in DIFFICULTIES else None
    words = TASKS if key == "task" else next((family for family in FAMILIES if family.axis == axis), ())
    return facts_of(words, word) if word in words else None


def _first_line(module: str) -> str:
    """Of the text that a module begins with; all of its syntax would be a lot to read for it."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    with Path(spec.origin).open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').removesuffix(".")
