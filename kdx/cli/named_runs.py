"""The runs that the words of a command name: `RUN…`, or `SWEEP`, and `KEY=VALUE…`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.choosing import chosen
from kdx.errors import KdxError
from kdx.shell import shell_word
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.find import SweepFound, sweep_named
from kdx.store.records import RunRecord
from kdx.store.remarks import remarks
from kdx.store.status import labels_of


@dataclass(frozen=True)
class NamedRuns:
    """What the words of a command named."""

    sweep: str | None
    """The name of the sweep; None: runs were named by their numbers."""
    whole: bool
    """Whether it is a sweep without conditions."""
    runs: tuple[RunRecord, ...]


def named_runs(database: Database, words: Sequence[str], db: str) -> NamedRuns:
    """The runs of these numbers, or the newest generations of a sweep's runs, that fulfil all conditions.

    Args:
        db: the database, as the user typed it.

    Raises:
        KdxError: nothing, or more than one sweep, is named; there is no such run or sweep; or a condition fits no run.
    """
    names = reading.names(database)
    numbers = [word for word in words if is_number(word)]
    others = [word for word in words if not is_number(word)]
    sweeps = [word for word in others if word in names or "=" not in word or is_grid_file(word)]
    conditions = [word for word in words if word not in numbers and word not in sweeps]
    if len(sweeps) > 1 or (sweeps and numbers) or not (sweeps or numbers):
        problem = f"`{' '.join(map(shell_word, words))}` names no runs" if words else "no runs are named"
        raise KdxError(problem, allowed="numbers of runs, or one sweep; then KEY=VALUE, such as state=failed")
    sweep = None
    if numbers:
        records = runs_of(database, numbers, db)
        labels = _labels_of(database, records) if conditions else {}
    else:
        sweep = known_sweep(database, sweeps[0], db)
        records = reading.runs(database, sweep.id)
        labels = _labels_in(database, sweep.id)
    rows = [row_of(record, labels.get(record.cell_id, {})) for record in records]
    if conditions:
        rows = _with_tags(database, rows)
    kept = {row["run"] for row in chosen(rows, conditions)}
    runs = tuple(record for record in records if record.id in kept)
    return NamedRuns(sweep.name if sweep else None, bool(sweeps) and not conditions, runs)


def is_number(word: str) -> bool:
    """Whether a word is the number of a run."""
    return word.isascii() and word.isdigit() and len(word) < 19


def runs_of(database: Database, numbers: Iterable[str], db: str) -> tuple[RunRecord, ...]:
    """The runs of these numbers, each once.

    Raises:
        KdxError: there is no such run.
    """
    asked = list(dict.fromkeys(map(int, numbers)))
    records = {record.id: record for record in reading.by_ids(database, asked)}
    if missing := [number for number in asked if number not in records]:
        listed = ", ".join(map(str, missing))
        problem = f"there is no run {listed}" if len(missing) == 1 else f"there are no runs {listed}"
        raise KdxError(problem, place=db, hint="kdx status SWEEP lists the runs of a sweep")
    return tuple(records[number] for number in asked)


def is_grid_file(word: str) -> bool:
    """Whether a word of a command line is the path of a grid, and not the name of a sweep."""
    return word.endswith((".yaml", ".yml"))


def known_sweep(database: Database, word: str, db: str) -> SweepFound:
    """The sweep of this name, or the one that the grid in the file of this name planned.

    Args:
        db: the database, as the user typed it.

    Raises:
        KdxError: there is none, or the grid is not what was planned.
    """
    if is_grid_file(word):
        # What reads a grid takes longer to load than all else of kdx status.
        from kdx.cli.planned import record_of
        from kdx.grid.load import load_grid

        record = record_of(database, load_grid(word), word, db)
        return SweepFound(record.id, record.name)
    return SweepFound(sweep_named(database, word), word)


def row_of(record: RunRecord, choices: Any) -> dict[str, Any]:
    """What conditions are looked up in."""
    return {
        "run": record.id,
        "cell": record.cell_id,
        "choices": dict(choices),
        "seed": record.seed,
        "state": record.state.value,
        "invalidated": record.invalidated,
    }


def _with_tags(database: Database, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    tags = remarks(database).tags_of_runs
    return [{**row, "tags": tags.get(row["run"], ())} for row in rows]


def _labels_in(database: Database, sweep_id: int) -> dict[str, Any]:
    return labels_of(database, sweep_id)


def _labels_of(database: Database, records: Sequence[RunRecord]) -> dict[str, Any]:
    """Cell id → its choices, as the last planned sweep that plans it words them."""
    found: dict[str, Any] = {}
    wanted = {record.cell_id for record in records}
    for sweep_id in reversed(reading.names(database).values()):
        found |= {cell: labels for cell, labels in _labels_in(database, sweep_id).items() if cell in wanted}
    return found
