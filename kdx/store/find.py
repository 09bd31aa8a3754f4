"""Finds what a word of a command line names: a run by its number, a sweep by its name, a cell by its first digits."""

import re
from dataclasses import dataclass

from sqlalchemy import select

from kdx.errors import KdxError, did_you_mean
from kdx.shell import shell_word
from kdx.store.database import Database
from kdx.store.reading import load_run, sweep_row
from kdx.store.records import RunRecord
from kdx.store.schema import cell, run, sweep, sweep_cell

FEWEST_DIGITS = 4
"""Number of digits of a cell's id that name it, at least; fewer would soon name several cells."""
_PREFIX = re.compile(rf"[0-9a-f]{{{FEWEST_DIGITS},32}}")
_MOST_LISTED = 10
_LONGEST_LABEL = 60


@dataclass(frozen=True)
class RunFound:
    id: int


@dataclass(frozen=True)
class CellFound:
    id: str


@dataclass(frozen=True)
class SweepFound:
    id: int
    name: str


Found = RunFound | CellFound | SweepFound


def find(database: Database, word: str | None) -> Found:
    """The run, sweep or cell of this name; of several kinds that have the name, the first of these.

    Args:
        word: a run's number, a sweep's name, or the id of a cell or at least four of its first digits; None for the
            sweep that was planned last.

    Raises:
        KdxError: nothing has this name, or several cells begin with these digits.
    """
    with database.read() as connection:
        if word is None:
            last = sweep_row(connection, database)
            return SweepFound(last.id, last.name)
        number = run_number(word)
        if number is not None and connection.scalar(select(run.c.id).where(run.c.id == number)) is not None:
            return RunFound(number)
        named = connection.execute(select(sweep.c.id, sweep.c.name).where(sweep.c.name == word)).first()
        if named is not None:
            return SweepFound(named.id, named.name)
        if _PREFIX.fullmatch(word):
            # A range of the key: ids are of lower-case hexadecimal digits.
            begins = select(cell.c.id).where(cell.c.id >= word, cell.c.id < f"{word}g").order_by(cell.c.id)
            ids = connection.scalars(begins.limit(_MOST_LISTED + 1)).all()
            if len(ids) == 1:
                return CellFound(ids[0])
            if ids:
                labels = select(sweep_cell.c.cell_id, sweep_cell.c.labels).where(sweep_cell.c.cell_id.in_(ids))
                words = {row.cell_id: " · ".join(row.labels.values()) for row in connection.execute(labels)}
                listed = [f"{key} ({_cut(words[key])})" if words.get(key) else key for key in ids[:_MOST_LISTED]]
                if len(ids) > _MOST_LISTED:
                    listed.append("…")
                problem = f"several cells begin with `{word}`"
                raise KdxError(problem, place=database.name, allowed=listed, hint="give more digits")
        names = list(connection.scalars(select(sweep.c.name)))
    raise _nothing(database, word, number, names)


def sweep_named(database: Database, name: str) -> int:
    """The id of the sweep of this name.

    Raises:
        KdxError: there is none.
    """
    with database.read() as connection:
        return int(sweep_row(connection, database, name).id)


def the_run(database: Database, word: str) -> RunRecord:
    """The run of this number.

    Raises:
        KdxError: the word is no number, or there is no such run.
    """
    number = run_number(word)
    if number is None:
        hint = f"kdx show {shell_word(word)} lists the runs of a cell, kdx status SWEEP those of a sweep"
        raise KdxError(f"`{word}` is not the number of a run", allowed="a run's number", hint=hint)
    return load_run(database, number)


def run_number(word: str) -> int | None:
    """The number of a run in a word; None where the word is no such number."""
    # PostgreSQL compares a run's number with no larger one.
    return int(word) if word.isascii() and word.isdigit() and len(word) < 11 and int(word) < 2**31 else None


def _nothing(database: Database, word: str, number: int | None, names: list[str]) -> KdxError:
    hint = did_you_mean(word, names)
    if number is not None:
        hint = "kdx status SWEEP lists the runs of a sweep"
    elif hint is None and len(word) < FEWEST_DIGITS and re.fullmatch("[0-9a-f]+", word):
        hint = f"a cell is named by at least {FEWEST_DIGITS} digits of its id"
    listed = f"one of the sweeps {', '.join(sorted(names))}" if names else "a sweep, but none is recorded here"
    return KdxError(
        f"there is no run {number}" if number is not None else f"there is no run, sweep or cell `{word}`",
        place=database.name,
        allowed=f"a run's number, a cell's first digits, or {listed}",
        hint=hint,
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
