"""`kdx explain`: says what a key of a grid or a word of the study means."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.errors import KdxError
from kdx.grid.explain import ExplainedKey, ExplainedWord, key_list
from kdx.grid.explain import explain as explained

WIDEST = 120
NARROWEST = 40


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.keys_and_words,
            metavar="[KEY|WORD]",
            help="Such as training.steps, rbf, or FILE.py:Class.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Explain a key or a value of a grid. Alone, list the keys.

    A custom component whose file or package is not here is explained by
    its source in the results database.

    Example: kdx explain rbf
    """
    if name is None:
        listed = key_list()
        if json:
            out_json(listed)
        else:
            out("\n".join(_listed(listed)))
            say("next: kdx explain KEY, or a word such as kdx explain rbf")
        return
    try:
        found = explained(name)
    except KdxError:
        if not _know_recorded(name, db):
            raise
        found = explained(name)
    if json:
        out_json([{"kind": "key" if isinstance(one, ExplainedKey) else "word", **vars(one)} for one in found])
        return
    out("\n\n".join("\n".join(_key(one) if isinstance(one, ExplainedKey) else _word(one)) for one in found))


def _know_recorded(word: str, db: str) -> bool:
    """Make the component that a database has recorded last under a word known; return whether it has one."""
    # SQLAlchemy, which keys and words of kdx are explained without.
    from kdx.store.backends import backend_of
    from kdx.store.components import know_word
    from kdx.store.database import open_database

    if not backend_of(db).exists():
        return False
    with open_database(db, write=False) as database:
        return know_word(database, word)


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    indent = " " * len(first) if rest is None else rest
    return textwrap.wrap(text, _width(), initial_indent=first, subsequent_indent=indent, break_on_hyphens=False) or [
        first.rstrip()
    ]


_HEADS = {"grid": "a grid", "cell": "a cell", "words": "of words"}


def _listed(listed: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    heads = {name: _HEADS.get(name, f"{name}:") for name in listed}
    wide = max(map(len, heads.values())) + 2
    for name, keys in listed.items():
        yield from _wrapped(", ".join(key.removeprefix(f"{name}.") for key in keys), f"{heads[name]:{wide}}")


def _key(one: ExplainedKey) -> Iterator[str]:
    yield f"{one.key} (key)"
    yield from _wrapped(one.description, "  ")
    yield from _facts({"of": ", ".join(one.of), "allowed": one.allowed, "default": one.default})
    yield from _table(one.words)
    yield from _lines("example", one.example)


def _word(one: ExplainedWord) -> Iterator[str]:
    yield from _wrapped(f"{one.word} ({', '.join(one.keys)})", "", "  ")
    yield from _wrapped(one.title, "  ")
    yield from _facts({"formula": one.formula, "source": one.source, "uses": ", ".join(one.takes)})
    for option in one.options:
        allowed = option.allowed or ", ".join(option.words)
        text = " ".join(filter(None, (option.description, f"Allowed: {allowed}; default: {option.default}.")))
        yield from _facts({option.key: text})
    yield from _lines("example", one.example)


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    for name, text in facts.items():
        if text:
            yield from _wrapped(text, f"  {name}: ", "    ")


def _table(words: Mapping[str, str]) -> Iterator[str]:
    wide = max(map(len, words), default=0) + 2
    for word, title in words.items():
        yield from _wrapped(title, f"    {word:{wide}}")


def _lines(name: str, text: str) -> Iterator[str]:
    yield f"  {name}:"
    yield from (f"    {line}" for line in text.splitlines())
