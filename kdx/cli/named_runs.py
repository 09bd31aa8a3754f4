"""The sweeps and runs that the arguments of a command name: `RUN…`, or `SWEEP`, and `KEY=VALUE…`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kdx.cli.context import Context
from kdx.errors import KdxError, did_you_mean
from kdx.shell import shell_word
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.find import FEWEST_DIGITS, SweepFound, run_number, sweep_named
from kdx.store.records import RunRecord, RunState, SweepRecord
from kdx.store.remarks import NoteRecord, Remarks, remarks
from kdx.store.sqlite.file import is_database_file
from kdx.store.status import labels_of

KEYS = ("state", "seed", "run", "cell", "tag")
"""Keys that every run has beside its choices."""


_STATES = (*RunState, "invalidated", "not_needed")
"""The states of runs, and the reasons for which a run does not count."""


@dataclass(frozen=True)
class RunView:
    """A run as commands list it, with what people wrote on it."""

    record: RunRecord
    choices: Mapping[str, str]
    """Axis → choice."""
    tags: Sequence[str] = ()
    notes: Sequence[NoteRecord] = ()
    not_needed: str | None = None
    """Why the rule of its sweep does not need it."""

    @property
    def plain(self) -> dict[str, Any]:
        """The run for programs; docs/reference/json.md has the keys."""
        run = self.record
        return {
            "run": run.id,
            "cell": run.cell_id,
            "choices": self.choices,
            "seed": run.seed,
            "generation": run.generation,
            "state": run.state,
            "step": run.progress_step,
            "attempt": run.attempt,
            "valid_score": run.valid_score,
            "valid_step": run.valid_step,
            "test_score": run.test_score,
            "seconds": run.seconds,
            "error": run.error,
            "undertrained": run.undertrained,
            "invalidated": run.invalidated,
            "tags": self.tags,
            "notes": self.notes,
            "not_needed": self.not_needed,
        }

    def values(self, key: str) -> Sequence[str]:
        """Return the values of the run under a key of `KEY=VALUE`."""
        run = self.record
        match key:
            case "state":
                reasons = {"invalidated": run.invalidated, "not_needed": self.not_needed}
                return [run.state, *(flag for flag, reason in reasons.items() if reason)]
            case "tag":
                return self.tags
            case "seed":
                return [str(run.seed)]
            case "run":
                return [str(run.id)]
            case "cell":
                return [run.cell_id]
        return [self.choices.get(key, "–")]


def run_view(record: RunRecord, choices: Mapping[str, str], written: Remarks, not_needed: str | None = None) -> RunView:
    """Return a run as commands list it.

    Args:
        written: the notes and tags of the database.
    """
    tags, notes = written.tags_of_runs.get(record.id, ()), written.of_runs.get(record.id, ())
    return RunView(record, choices, tags, notes, not_needed)


def why_not_needed(sweep: SweepRecord) -> Mapping[int, str]:
    """Return run id → why the rule of the sweep's seeds will not need it; most sweeps have no such rule."""
    if "seed_rule" not in sweep.grid:
        return {}
    # Late: it loads the tables of the report.
    from kdx.report.seeds_until import unneeded_runs

    return unneeded_runs(sweep)


def chosen(runs: Sequence[RunView], conditions: Sequence[str]) -> list[RunView]:
    """Return the runs that meet every `key=value`.

    Raises:
        KdxError: there is no such key, or no run has the value.
    """
    kept = list(runs)
    for condition in conditions:
        key, equals, value = condition.partition("=")
        known = tuple(dict.fromkeys([*KEYS, *(axis for run in kept for axis in run.choices)]))
        if not equals:
            raise KdxError(f"`{condition}` chooses nothing", allowed="key=value, such as state=failed")
        if kept and key not in known:
            raise KdxError(f"unknown key `{key}` in `{condition}`", allowed=known, hint=did_you_mean(key, known))
        value = _whole_id(value, kept) if key == "cell" else value
        matching = [run for run in kept if value in run.values(key)]
        if kept and not matching:
            values = tuple(dict.fromkeys(each for run in kept for each in run.values(key)))
            if key == "state" and value not in _STATES:
                raise KdxError(f"`{value}` is not a state", allowed=_STATES, hint=did_you_mean(value, _STATES))
            allowed = values or "no run has one yet"
            raise KdxError(f"no run has {condition}", allowed=allowed, hint=did_you_mean(value, values))
        kept = matching
    return kept


def _whole_id(start: str, runs: Sequence[RunView]) -> str:
    """Return the id of the only cell of these runs that begins with these digits, as kdx shows them; else these.

    Raises:
        KdxError: several cells do.
    """
    ids = {run.record.cell_id for run in runs if run.record.cell_id.startswith(start)}
    if len(start) < FEWEST_DIGITS or not ids:
        return start
    if len(ids) > 1:
        raise KdxError(f"several cells begin with `{start}`", allowed=sorted(ids), hint="give more digits")
    return ids.pop()


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
    numbers = [word for word in words if run_number(word) is not None]
    sweeps = [word for word in words if word in names or is_grid_file(word) or not (word in numbers or "=" in word)]
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
        records = tuple(view.record for view in chosen(views, conditions))
    return NamedRuns(sweep.name if sweep else None, bool(sweeps) and not conditions, records)


def runs_of(database: Database, numbers: Iterable[str], context: Context) -> tuple[RunRecord, ...]:
    """Return the runs of these numbers, each once.

    Raises:
        KdxError: there is no such run.
    """
    wanted = list(dict.fromkeys(map(int, numbers)))
    possible = [number for number in wanted if run_number(str(number)) is not None]
    records = {record.id: record for record in reading.by_ids(database, possible)}
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
        record = load_named(database, word, context)
        return SweepFound(record.id, record.name)
    return SweepFound(sweep_named(database, word), word)


def load_named(database: Database, sweep: str | None, context: Context) -> SweepRecord:
    """Return the sweep of this name, or of the grid in the file of this name, or the most recent one.

    Raises:
        KdxError: there is no such sweep, the grid is not what was planned, or the argument is a database.
    """
    if sweep and is_grid_file(sweep):
        # What reads a grid takes longer to load than all else of a command that names a sweep.
        from kdx.cli.planned import record_of

        return record_of(database, sweep, context)
    if sweep and is_database_file(Path(sweep)):
        raise KdxError(f"`{sweep}` is a database, not a sweep", hint=f"name it with --db {shell_word(sweep)}")
    return reading.load_sweep(database, sweep)
