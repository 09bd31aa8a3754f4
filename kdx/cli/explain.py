"""`kdx explain`: explains a key or a value of a grid."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.context import Answering
from kdx.errors import KdxError
from kdx.grid.explain import Explained, key_list
from kdx.grid.explain import explain as explained

WIDEST = 120
NARROWEST = 40


def explain(
    context: Answering,
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.keys_and_values,
            metavar="KEY|VALUE",
            help="Such as training.steps, rbf, or FILE.py:Class; default: list the keys.",
        ),
    ] = None,
) -> None:
    """Explain a key or a value of a grid.

    A custom component whose file or package is not here is explained by its source in the results database.

    Example: kdx explain rbf
    """
    if name is None:
        listed = key_list()
        if context.json:
            out_json(listed)
        else:
            out("\n".join(_key_lines(listed)))
            say("next: kdx explain KEY, or a value such as kdx explain rbf")
        return
    try:
        meanings = explained(name)
    except KdxError:
        if not _know_recorded(name, context.db):
            raise
        meanings = explained(name)
    if context.json:
        out_json([{"kind": "value" if meaning.keys else "key", **asdict(meaning)} for meaning in meanings])
    else:
        out("\n\n".join("\n".join(_lines(meaning)) for meaning in meanings))


def _know_recorded(word: str, db: str) -> bool:
    """Register the newest component of this name in a database; return whether there is one."""
    # SQLAlchemy, without which keys and values of kdx are explained.
    from kdx.store import components, database

    if not database.database_at(db).exists():
        return False
    with database.open_database(db, write=False) as opened:
        return components.know_word(opened, word)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    indent = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return lines or [first.rstrip()]


def _key_lines(listed: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    heads = {name: f"a {name}" if name in ("grid", "cell") else f"{name}:" for name in listed}
    width = max(map(len, heads.values())) + 2
    for name, keys in listed.items():
        yield from _wrapped(", ".join(key.removeprefix(f"{name}.") for key in keys), f"{heads[name]:{width}}")


def _lines(meaning: Explained) -> Iterator[str]:
    yield from _wrapped(f"{meaning.name} ({', '.join(meaning.keys) or 'key'})", rest="  ")
    yield from _wrapped(meaning.description, "  ")
    facts = {
        "formula": meaning.formula,
        "source": meaning.source,
        "uses": ", ".join(meaning.uses),
        "of": ", ".join(meaning.of),
        "allowed": meaning.allowed,
        "default": meaning.default,
    }
    for option in meaning.options:
        facts[option.name] = f"{option.description} Allowed: {option.allowed}; default: {option.default}.".lstrip()
    for fact, text in facts.items():
        if text:
            yield from _wrapped(text, f"  {fact}: ", "    ")
    width = max(map(len, meaning.values), default=0) + 2
    for value, title in meaning.values.items():
        yield from _wrapped(title, f"    {value:{width}}")
    yield "  example:"
    yield from (f"    {line}" for line in meaning.example.splitlines())
