"""The sweeps and runs that the arguments of a command name: `RUN…`, or `SWEEP`, and `KEY=VALUE…`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kdx.cli.context import Context
from kdx.cli.run_view import chosen, run_view
from kdx.errors import KdxError
from kdx.shell import shell_word
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.find import SweepFound, sweep_named
from kdx.store.records import RunRecord
from kdx.store.remarks import remarks
from kdx.store.status import labels_of


class NamedRuns(NamedTuple):
    """What the arguments of a command name."""

    sweep: str | None
    """The name of the sweep; None if runs were named by their numbers."""
    whole: bool
    """Whether it is a sweep without conditions."""
    runs: tuple[RunRecord, ...]


def named_runs(database: Database, words: Sequence[str], context: Context) -> NamedRuns:
    """Return the runs of these numbers, or the newest generations of a sweep's runs, that meet all conditions.

    Raises:
        KdxError: nothing, or more than one sweep, is named; there is no such run or sweep; or a condition fits no run.
    """
    names = reading.names(database)
    numbers = [word for word in words if is_number(word)]
    sweeps = [word for word in words if word in names or is_grid_file(word) or not (is_number(word) or "=" in word)]
    conditions = [word for word in words if word not in numbers and word not in sweeps]
    if len(sweeps) > 1 or (sweeps and numbers) or not (sweeps or numbers):
        problem = f"`{' '.join(map(shell_word, words))}` names no runs" if words else "no runs are named"
        raise KdxError(problem, allowed="numbers of runs, or one sweep; then KEY=VALUE, such as state=failed")
    sweep = known_sweep(database, sweeps[0], context) if sweeps else None
    records = reading.runs(database, sweep.id) if sweep else runs_of(database, numbers, context)
    if conditions:
        labels: dict[str, Mapping[str, str]] = {}
        # The choices are worded as in the most recent sweep that plans the cell.
        for sweep_id in [sweep.id] if sweep else reversed(names.values()):
            labels |= labels_of(database, sweep_id)
        written = remarks(database)
        views = [run_view(record, labels.get(record.cell_id, {}), written) for record in records]
        kept = {view.run for view in chosen(views, conditions)}
        records = tuple(record for record in records if record.id in kept)
    return NamedRuns(sweep.name if sweep else None, bool(sweeps) and not conditions, records)


def is_number(word: str) -> bool:
    """Whether an argument is the number of a run."""
    return word.isascii() and word.isdigit() and len(word) < 19


def runs_of(database: Database, numbers: Iterable[str], context: Context) -> tuple[RunRecord, ...]:
    """Return the runs of these numbers, each once.

    Raises:
        KdxError: there is no such run.
    """
    wanted = list(dict.fromkeys(map(int, numbers)))
    records = {record.id: record for record in reading.by_ids(database, wanted)}
    if missing := [number for number in wanted if number not in records]:
        listed = ", ".join(map(str, missing))
        problem = f"there is no run {listed}" if len(missing) == 1 else f"there are no runs {listed}"
        raise KdxError(problem, place=context.db, hint="kdx status SWEEP lists the runs of a sweep")
    return tuple(records[number] for number in wanted)


def is_grid_file(word: str) -> bool:
    """Whether an argument is the path of a grid, and not the name of a sweep."""
    return word.endswith((".yaml", ".yml"))


def known_sweep(database: Database, word: str, context: Context) -> SweepFound:
    """Return the sweep of this name, or the one that the grid in the file of this name planned.

    Raises:
        KdxError: there is none, or the grid is not what was planned.
    """
    if is_grid_file(word):
        # What reads a grid takes longer to load than all else of kdx status.
        from kdx.cli.planned import record_of

        record = record_of(database, word, context)
        return SweepFound(record.id, record.name)
    return SweepFound(sweep_named(database, word), word)
