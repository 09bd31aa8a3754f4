"""What a shell completes: names of grids, sweeps, runs, cells, tables, corpora, and factors with their values.

The names of a database come from whoever made it, and a shell puts what it is offered into the command line as it
stands. So a name with a control character, or one that reads as an option, is never offered, and any other that a shell
could take for more than a name is quoted for bash and left out for the others.

Names are read from the database without whatever takes longer than a shell may wait.
"""

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer

from kdx.errors import KdxError
from kdx.sanitize import spelled_out
from kdx.store.records import RunState
from kdx.words import table

MOST = 200
"""Names that are offered at once."""
_ASKED = "_KDX_COMPLETE"
_COMPLETES = "complete_"
_BASH = f"{_COMPLETES}bash"
_BREAKS = ("=", ":")
"""Signs at which bash takes a word apart."""
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_DATABASE = "runs.db"
_DIGITS = 8
"""Of a cell's id, as tables show it."""


def asked() -> bool:
    """Whether a shell asks for completions, by the protocol of Typer."""
    return os.environ.get(_ASKED, "").startswith(_COMPLETES)


def answer(command: Callable[[], Any]) -> int:
    """Answers the shell; a fault gives no completions, since the user is in the middle of a line.

    Args:
        command: the app, which writes one completion a line.
    """
    bash = os.environ[_ASKED] == _BASH
    cut = _join_words() if bash else 0
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(io.StringIO()), suppress(SystemExit, Exception):
        command()
    for line in filter(None, written.getvalue().splitlines()):
        offered = line[cut:] if bash else line
        sys.stdout.write(f"{_quoted(offered) if bash else offered}\n")
    return 0


def _join_words() -> int:
    """Joins the parts of a word that bash takes apart, such as `kernel`, `=`, `r`; how many letters bash has already.

    Of the completions bash wants only what follows the last of these signs.
    """
    text, place = os.environ.get("COMP_WORDS", ""), int(os.environ.get("COMP_CWORD", "0"))
    words: list[str] = []
    at, open_end = place, False
    for number, word in enumerate(text.split("\n" if "\n" in text else " ")):
        parts = word in _BREAKS
        if words and (parts or open_end) and word:
            words[-1] += word
            at -= number <= place
        else:
            words.append(word)
        open_end = parts
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(at)
    now = words[at] if at < len(words) else ""
    # Typer completes the value of an option alone.
    value = now.partition("=")[2] if now.startswith("-") else now
    return max(map(value.rfind, _BREAKS)) + 1


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _offered(names: Iterable[object], incomplete: str) -> list[str]:
    """The names that begin so and are safe to offer, each once."""
    bash = os.environ.get(_ASKED) == _BASH
    found: dict[str, None] = {}
    for name in names:
        word = str(name)
        safe = spelled_out(word) == word and not word.startswith("-") and (bash or _PLAIN.fullmatch(word))
        if safe and word.startswith(incomplete):
            found[word] = None
            if len(found) == MOST:
                break
    return list(found)


def _read(context: typer.Context, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a SELECT with these values for each `?`; none where there is no database, or it is not in order."""
    # late: SQLAlchemy, which most completions do without
    from kdx.store.database import database_at, open_database

    address = context.params.get("db") or os.environ.get("KDX_DB") or _DATABASE
    first, *rest = statement.split("?")
    numbered = first + "".join(f":value{number}{part}" for number, part in enumerate(rest))
    named = {f"value{number}": value for number, value in enumerate(values)}
    try:
        if not database_at(address).exists():
            return []
        with open_database(address, write=False) as database:
            return list(database.rows(numbered, named))
    except (KdxError, OSError):
        return []


def grids(incomplete: str) -> list[str]:
    """Shipped grids, and YAML files."""
    # As for corpora.
    from kdx.grid.shipped import names

    return _offered([*names(), *_files(incomplete)], incomplete)


def sweeps_and_grids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sweeps of the database, the one planned last first, and YAML files."""
    return _offered([*_sweeps(ctx), *_files(incomplete)], incomplete)


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Runs by number, the newest first."""
    return _offered(_runs(ctx, incomplete), incomplete)


def sweeps_grids_and_runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sweeps, YAML files, and runs by number."""
    numbers = _runs(ctx, incomplete) if incomplete.isdigit() else []
    return _offered([*_sweeps(ctx), *numbers, *_files(incomplete)], incomplete)


def cells(ctx: typer.Context, incomplete: str) -> list[str]:
    """Cells by the first digits of their ids."""
    return _offered(_cells(ctx, incomplete), incomplete)


def anything(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sweeps, runs, cells, and YAML files: what kdx show and kdx diff take."""
    numbers = _runs(ctx, incomplete) if incomplete.isdigit() else []
    digits = _cells(ctx, incomplete) if incomplete else []
    return _offered([*_sweeps(ctx), *numbers, *digits, *_files(incomplete)], incomplete)


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tables of the sweep that is named, or else of the one planned last."""
    for name, grid in _sweep(ctx, "name, grid"):
        # A grid without tables has one of its own name.
        asked = json.loads(grid).get("tables") or [{"name": name}]
        return _offered([one.get("name", name) for one in asked], incomplete)
    return []


def corpora(incomplete: str) -> list[str]:
    """Corpora that a grid can name: built-in ones, and those that are prepared."""
    # Every command imports this module; what reads the corpora takes as long to load as the help of a command.
    from kdx.data.storage import data_home
    from kdx.tasks.corpora import BUILT_IN

    prepared: list[str] = []
    with suppress(OSError):
        prepared = sorted(path.name for path in (data_home() / "corpora").iterdir() if path.is_dir())
    return _offered([*BUILT_IN, *prepared], incomplete)


def choices(ctx: typer.Context, incomplete: str) -> list[str]:
    """KEY=VALUE for the runs of the sweep that is named: its axes, states and seeds."""
    return _offered(_choices(ctx), incomplete)


def choices_and_metrics(ctx: typer.Context, incomplete: str) -> list[str]:
    """The same, and with --curves the metrics that a run of it recorded."""
    metrics: list[str] = []
    if ctx.params.get("curves") or ctx.params.get("to"):
        word = str(ctx.params.get("what") or "")
        if word.isdigit():
            rows = _read(ctx, "SELECT DISTINCT name FROM metric WHERE run_id = ? ORDER BY name", int(word))
        else:
            one = "SELECT run_id FROM runs WHERE sweep = ? AND valid_score IS NOT NULL LIMIT 1"
            named = [name for (name,) in _sweep(ctx, "name")]
            names = f"SELECT DISTINCT name FROM metric WHERE run_id = ({one}) ORDER BY name"
            rows = _read(ctx, names, named[0]) if named else []
        metrics = [name for (name,) in rows]
    return _offered([*metrics, *_choices(ctx)], incomplete)


def settings(incomplete: str) -> list[str]:
    """KEY=VALUE of --set: factors of cells, with the words that each knows."""
    known = {factor: facts.names for factor, facts in table.factors().items()}
    factor, equals, _ = incomplete.partition("=")
    if equals:
        return _offered((f"{factor}={word}" for word in known.get(factor, ())), incomplete)
    return _offered((f"{name}=" for name in ("seeds", *known)), incomplete)


def keys_and_words(incomplete: str) -> list[str]:
    """What kdx explain knows: factors, and the words of each."""
    known = {factor: facts.names for factor, facts in table.factors().items()}
    return _offered([*known, *(word for words in known.values() for word in words)], incomplete)


def _sweeps(context: typer.Context) -> list[str]:
    rows = _read(context, f"SELECT name FROM sweep ORDER BY updated DESC, id DESC LIMIT {10 * MOST}")
    return [name for (name,) in rows]


def _sweep(context: typer.Context, columns: str) -> list[tuple[Any, ...]]:
    """The sweep of the command line, or the one planned last; none where it is not there."""
    given = context.params.get("sweep") or context.params.get("sweeps") or context.params.get("what")
    # Where several can be named, the first counts.
    named = given[0] if isinstance(given, list | tuple) else given
    where, values = (" WHERE name = ?", (named,)) if named else ("", ())
    return _read(context, f"SELECT {columns} FROM sweep{where} ORDER BY updated DESC, id DESC LIMIT 1", *values)


def _runs(context: typer.Context, incomplete: str) -> list[int]:
    start = "CAST(id AS TEXT) LIKE ? || '%'" if incomplete.isdigit() else "? = ''"
    return [
        number
        for (number,) in _read(context, f"SELECT id FROM run WHERE {start} ORDER BY id DESC LIMIT {MOST}", incomplete)
    ]


def _cells(context: typer.Context, incomplete: str) -> list[str]:
    rows = _read(
        context, f"SELECT id FROM cell WHERE id >= ? AND id < ? || 'g' ORDER BY id LIMIT {MOST}", incomplete, incomplete
    )
    return [key if len(incomplete) >= _DIGITS else key[:_DIGITS] for (key,) in rows]


def _choices(context: typer.Context) -> Iterator[str]:
    for (key,) in _sweep(context, "id"):
        axes: dict[str, dict[str, None]] = {}
        labels = "SELECT DISTINCT labels FROM sweep_cell WHERE sweep_id = ? AND planned"
        for (text,) in _read(context, labels, key):
            for axis, word in json.loads(text).items():
                axes.setdefault(axis, {})[word] = None
        yield from (f"{axis}={word}" for axis, words in axes.items() for word in words)
        yield from (f"state={state}" for state in RunState)
        seeds = "SELECT DISTINCT seed FROM sweep_run WHERE sweep_id = ? AND planned ORDER BY seed LIMIT 20"
        yield from (f"seed={seed}" for (seed,) in _read(context, seeds, key))


def _files(incomplete: str) -> list[str]:
    """YAML files and folders that begin so."""
    folder, _, start = incomplete.rpartition("/")
    inside = f"{folder}/" if folder or incomplete.startswith("/") else ""
    found = []
    with suppress(OSError):
        for path in sorted(Path(inside or ".").iterdir()):
            if path.name.startswith(start) and (start.startswith(".") or not path.name.startswith(".")):
                if path.suffix in (".yaml", ".yml"):
                    found.append(f"{inside}{path.name}")
                elif path.is_dir() and start:
                    found.append(f"{inside}{path.name}/")
    return found
