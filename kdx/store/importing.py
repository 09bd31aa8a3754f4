"""Puts into a database what another one has and it lacks. A result that is there stays as it is.

Rows are matched by what they say, not by their numbers: cells, searches, environments and sources of components by
their hash, runs by (cell, seed, generation), evaluations by run and settings, sweeps by name. A finished run comes with
all that belongs to it, and takes the place of one that waits; a run that is not finished comes as one that waits. What
both have must be the same, bit by bit: otherwise it is a conflict, which is listed, and nothing of it comes.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, insert, select, update

from kdx.errors import DatabaseError
from kdx.shell import shell_word
from kdx.store.check import edited_cells, unexpected_json
from kdx.store.database import Database, database_at, open_database
from kdx.store.records import FINAL, RemarkKind, RunState, folder_name
from kdx.store.schema import (
    NEW_RUN,
    attempt,
    cell,
    component,
    definitions,
    environment,
    evaluation,
    evaluation_document,
    evaluation_metric,
    metric,
    output,
    plan,
    plan_cell,
    remark,
    run,
    search,
    sweep,
    sweep_cell,
    sweep_run,
    sweep_search,
    test_document,
    trial,
    value_of,
)
from kdx.store.sweeps import remove_rows

AT_A_TIME = 500
"""Rows, or runs whose rows are looked up, in one statement."""

_T = TypeVar("_T")
Row = Mapping[str, Any]
"""Column → value."""

_OF_RUNS = {metric: ("name", "step", "bits"), output: ("name", "count", "sha256"), test_document: ("unit", "sums")}
_OF_EVALUATIONS = {evaluation_metric: ("name", "bits"), evaluation_document: ("unit", "sums")}
"""Table → the columns that two equal runs, or evaluations, have in common; a resumed run wrote some rows twice."""

_RESULT = ("state", "data_fingerprint", "valid_bits", "valid_step", "test_bits")
"""Columns in which two equal runs agree."""
_BITS = {"value": "bits", "valid_score": "valid_bits", "test_score": "test_bits"}
_NOT_COMPARED = frozenset({"command", "given", "file", "seeds"})
"""Parts of a sweep's grid in which the same plan may differ."""


@dataclass(frozen=True)
class Conflict:
    """What two databases say differently; nothing of it came."""

    what: str
    """Such as `run 0123abcd, seed 0`."""
    differences: tuple[str, ...]
    """Such as `test_score 1.0 here, 2.0 there`, or `other metric rows`."""


@dataclass(frozen=True)
class Folder:
    """The folder with the files of a finished run, which has the same name in every database."""

    source: Path
    """The path of the database, beside which the run was computed."""
    name: str
    state: RunState
    weights: str | None
    """Hash of the tested weights; None if there are none."""
    came: bool = True
    """Whether its rows came with this import; else they were here already."""
    replaces: bool = False
    """Whether it took the place of a run that waited here, which may have left a log."""


@dataclass(frozen=True)
class Imported:
    """What came from one database."""

    source: str
    runs: int
    """Finished runs that the target did not have, or that only waited there."""
    same: int
    """Finished runs that both have."""
    sweeps: int
    """Sweeps that the target did not have."""
    rows: Mapping[str, int]
    """Table → rows that were written; empty if nothing changed."""
    conflicts: tuple[Conflict, ...]
    waiting: Mapping[str, int]
    """State there → runs without results, which are pending here now."""
    running: int
    """Runs that are running, here or there, and so did not come."""
    folders: tuple[Folder, ...]
    """The folders of all finished runs that both have now."""


def import_database(
    source: str | Path,
    target: str | Path,
    *,
    progress: Callable[[int], None] = lambda rows: None,
) -> Imported:
    """Put what the source has and the target lacks into the target, in one transaction; a second time, that is nothing.

    Args:
        target: made where there is none.
        progress: called with the number of rows that were written since the last call.

    Raises:
        DatabaseError: see `kdx.store.database.open_database`; also if the source is
            the target, or damaged. Nothing was changed.
        StorageError: the disk is full or failed; the same.
    """
    with open_database(source, write=False) as there:
        refuse_same(there, database_at(target))
        with there.read() as reading:
            _refuse_faults(there, reading)
            with open_database(target, write=True, create=True) as here, here.write() as writing:
                return _Import(there, reading, writing, progress).imported()


def refuse_same(source: Database, target: Database) -> None:
    """Raise DatabaseError if both are one database: a transaction that writes would wait for the one that reads."""
    files = [file for file in (source.file, target.file) if file and file.is_file()]
    same_file = len(files) == 2 and files[0].samefile(files[1])
    if source.name == target.name or same_file:
        raise DatabaseError("this is one database under both names", place=target.name, hint="name another one")


def _refuse_faults(source: Database, connection: Connection) -> None:
    """Refuse a source that is damaged, or has a cell whose id is not its hash: it would be taken for another one."""
    with source.translate_errors():
        for fault in chain(source.faults(connection, 1), unexpected_json(connection), edited_cells(connection)):
            hint = f"nothing was changed; kdx db check --db {shell_word(source.name)} lists all that is wrong with it"
            raise DatabaseError(fault, place=source.name, hint=hint)


class _Import:
    def __init__(
        self,
        there: Database,
        reading: Connection,
        writing: Connection,
        progress: Callable[[int], None],
    ) -> None:
        self._there, self._reading, self._writing = there, reading, writing
        self._progress = progress
        self._rows: Counter[str] = Counter()
        self._conflicts: list[Conflict] = []
        self._folders: list[Folder] = []
        self._came: dict[int, int] = {}
        """Id there → id here of the finished runs that came."""
        self._runs: dict[int, int] = {}
        """The same of all runs that are the same in both now."""
        self._sweeps: dict[int, int] = {}
        self._other_searches: set[str] = set()
        """Those that have other trials here; runs of theirs do not come."""
        self._running = self._same = self._new_sweeps = 0
        self._waiting: Counter[str] = Counter()

    def imported(self) -> Imported:
        for table in (environment, definitions, component, cell, search):
            (key,) = table.primary_key
            known = set(self._writing.scalars(select(key)))
            self._add(table, (row for row in self._read(table) if row[key.name] not in known))
        self._import_trials()
        self._import_runs()
        self._import_evaluations()
        self._import_sweeps()
        self._import_remarks()
        return Imported(
            source=self._there.name,
            runs=len(self._came),
            same=self._same,
            sweeps=self._new_sweeps,
            rows={name: count for name, count in self._rows.items() if count},
            conflicts=tuple(self._conflicts),
            waiting=dict(+self._waiting),
            running=self._running,
            folders=tuple(self._folders),
        )

    def _import_runs(self) -> None:
        mine = {_run_key(row): row for row in self._mine(run)}
        new: list[Row] = []
        replaced: dict[int, Row] = {}
        shared: list[tuple[Row, Row]] = []
        for row in self._read(run):
            if row["search_id"] in self._other_searches:
                continue
            own = mine.get(_run_key(row))
            self._running += row["state"] == RunState.RUNNING and (own is None or own["state"] not in FINAL)
            if row["state"] not in FINAL:
                if own is None:
                    new.append(_waiting(row))
                    self._waiting[row["state"]] += row["state"] != RunState.RUNNING
                else:
                    self._runs[row["id"]] = own["id"]
            elif own is None:
                new.append(row)
            elif own["state"] in FINAL:
                shared.append((row, own))
            elif own["state"] == RunState.RUNNING:
                self._running += 1
            else:
                replaced[own["id"]] = row
        same = self._same_runs(shared)
        self._same = len(same)
        for table in (attempt, *_OF_RUNS):
            for some in _some(replaced):
                self._writing.execute(delete(table).where(table.c.run_id.in_(some)))
        for own_id, row in replaced.items():
            self._writing.execute(update(run).where(run.c.id == own_id).values(_exact(_without_id(row))))
        self._rows["run"] += len(replaced)
        ids = self._add_numbered(run, new)
        self._came = {row["id"]: ids[row["id"]] for row in new if row["state"] in FINAL}
        self._came |= {row["id"]: own_id for own_id, row in replaced.items()}
        self._runs |= ids | self._came | {row["id"]: own["id"] for row, own in same}
        for table in (attempt, *_OF_RUNS):
            self._add_of(table, "run_id", self._came)
        finished = [(False, row) for row in (*new, *(row for row, _ in same)) if row["state"] in FINAL]
        finished += [(True, row) for row in replaced.values()]
        self._folders = [
            Folder(
                self._there.location,
                folder_name(row["cell_id"], row["seed"], row["generation"], row["search_id"]),
                RunState(row["state"]),
                row["weights_sha256"],
                row["id"] in self._came,
                replaces,
            )
            for replaces, row in finished
        ]

    def _same_runs(self, shared: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
        """Those of the runs that both have finished whose results are the same; the others are conflicts."""
        same = []
        for (row, own), other_rows in zip(shared, self._other_rows(_OF_RUNS, "run_id", shared), strict=True):
            if differences := [*_other_results(row, own), *other_rows]:
                what = f"run {row['cell_id'][:8]}, seed {row['seed']}, generation {row['generation']}"
                self._conflicts.append(Conflict(what, tuple(differences)))
            else:
                same.append((row, own))
        return same

    def _import_evaluations(self) -> None:
        mine = {(row["run_id"], row["settings_id"]): row for row in self._mine(evaluation)}
        new: list[Row] = []
        shared: list[tuple[Row, Row]] = []
        failed: list[int] = []
        for row in self._read(evaluation):
            if (run_id := self._runs.get(row["run_id"])) is None:
                continue
            own = mine.get((run_id, row["settings_id"]))
            if own is None or (own["error"] is not None and row["error"] is None):
                new.append({**row, "run_id": run_id})
                failed += [own["id"]] if own is not None else []
            elif row["error"] is None:
                shared.append((row, own))
        remove_rows(self._writing, evaluation, evaluation.c.id.in_(failed))
        ids = self._add_numbered(evaluation, new)
        for table in _OF_EVALUATIONS:
            self._add_of(table, "evaluation_id", ids)
        other_rows = self._other_rows(_OF_EVALUATIONS, "evaluation_id", shared)
        for (row, own), differences in zip(shared, other_rows, strict=True):
            if differences:
                what = f"evaluation {json.dumps(row['settings'])} of run {own['run_id']}"
                self._conflicts.append(Conflict(what, tuple(differences)))

    def _import_trials(self) -> None:
        mine = {(row["search_id"], row["number"]): row for row in self._mine(trial)}
        of_search: dict[str, list[Row]] = defaultdict(list)
        for row in self._read(trial):
            of_search[row["search_id"]].append(row)
        for search_id, rows in of_search.items():
            pairs = [(row, mine.get((search_id, row["number"]))) for row in sorted(rows, key=lambda row: row["number"])]
            # Each trial is drawn after all before it, so two series are one or contradict each other.
            other = [row["number"] for row, own in pairs if own is not None and row != own]
            if other:
                self._conflicts.append(Conflict(f"search {search_id[:8]}", (f"other trial {other[0]}",)))
                self._other_searches.add(search_id)
                continue
            self._add(trial, (row for row, own in pairs if own is None))

    def _import_sweeps(self) -> None:
        mine = {row["name"]: row for row in self._mine(sweep)}
        for row in self._read(sweep):
            own = mine.get(row["name"])
            if own is None:
                ids = self._add_numbered(sweep, [row])
                self._sweeps |= ids
                self._new_sweeps += 1
                for table in (sweep_cell, sweep_run, sweep_search):
                    self._add_of(table, "sweep_id", ids)
                plans = sorted(self._read(plan, plan.c.sweep_id == row["id"]), key=lambda each: int(each["id"]))
                plans = [{**each, "sweep_id": ids[row["id"]]} for each in plans]
                self._add_of(plan_cell, "plan_id", self._add_numbered(plan, plans))
            elif differences := self._other_plan(row, own):
                self._conflicts.append(Conflict(f"sweep {row['name']}", differences))
            else:
                self._sweeps[row["id"]] = own["id"]
                self._join_seeds(row, own)

    def _other_plan(self, row: Row, own: Row) -> tuple[str, ...]:
        """Return in what two sweeps of one name differ, except their seeds."""
        grids = [{key: part for key, part in side["grid"].items() if key not in _NOT_COMPARED} for side in (row, own)]
        differences = [f"other {key}" for key in {**grids[0], **grids[1]} if grids[0].get(key) != grids[1].get(key)]
        for table, what in ((sweep_cell, "cells"), (sweep_search, "searches")):
            theirs, ours = (
                sorted(({**each, "sweep_id": None} for each in rows if each.get("planned", True)), key=repr)
                for rows in (
                    self._read(table, table.c.sweep_id == row["id"]),
                    self._mine(table, table.c.sweep_id == own["id"]),
                )
            )
            differences += [f"other {what}"] if theirs != ours else []
        return tuple(differences)

    def _join_seeds(self, row: Row, own: Row) -> None:
        mine = {_seed_key(each): each for each in self._mine(sweep_run, sweep_run.c.sweep_id == own["id"])}
        theirs = list(self._read(sweep_run, sweep_run.c.sweep_id == row["id"]))
        self._add(sweep_run, ({**each, "sweep_id": own["id"]} for each in theirs if _seed_key(each) not in mine))
        # What was planned here once, and is planned there still.
        again = [each for each in theirs if each["planned"] and not mine.get(_seed_key(each), each)["planned"]]
        if again:
            which = (sweep_run.c.cell_id == bindparam("cell")) & (sweep_run.c.seed == bindparam("number"))
            planned = update(sweep_run).where(sweep_run.c.sweep_id == own["id"], which).values(planned=True)
            self._writing.execute(planned, [{"cell": each["cell_id"], "number": each["seed"]} for each in again])
            self._rows["sweep_run"] += len(again)
        seeds = sorted({*row["grid"].get("seeds", ()), *own["grid"].get("seeds", ())})
        if seeds == sorted(own["grid"].get("seeds", ())):
            return
        grid = {**own["grid"], "seeds": seeds}
        self._writing.execute(update(sweep).where(sweep.c.id == own["id"]).values(grid=grid))
        newest = max(self._mine(plan, plan.c.sweep_id == own["id"]), key=lambda each: int(each["id"]))
        # With the time of the plan here: seeds that were planned elsewhere were not added after a look at results.
        ids = self._add_numbered(plan, [{**newest, "grid": grid}])
        cells = self._mine(plan_cell, plan_cell.c.plan_id == newest["id"])
        self._add(plan_cell, ({**each, "plan_id": ids[newest["id"]]} for each in cells))

    def _import_remarks(self) -> None:
        mine = {(row["sweep_id"], row["run_id"], *_said(row)) for row in self._mine(remark)}
        new: list[Row] = []
        for row in self._read(remark):
            sweep_id, run_id = self._sweeps.get(row["sweep_id"]), self._runs.get(row["run_id"])
            if (sweep_id or run_id) and (sweep_id, run_id, *_said(row)) not in mine:
                new.append({**row, "sweep_id": sweep_id, "run_id": run_id})
        self._add_numbered(remark, new)

    def _read(self, table: Table, *where: ColumnElement[bool]) -> Iterator[Row]:
        """Rows of the source."""
        with self._there.translate_errors():
            yield from _rows(self._reading, table, *where)

    def _mine(self, table: Table, *where: ColumnElement[bool]) -> list[Row]:
        """Rows of the target, before others are written beside them."""
        return list(_rows(self._writing, table, *where))

    def _add(self, table: Table, rows: Iterable[Row]) -> None:
        for some in _some(rows):
            self._writing.execute(insert(table), [_exact(row) for row in some])
            self._rows[table.name] += len(some)
            self._progress(len(some))

    def _add_numbered(self, table: Table, rows: Sequence[Row]) -> dict[int, int]:
        """Insert rows under ids that the database gives them, and return the id of each row → its new id."""
        ids: dict[int, int] = {}
        returning = insert(table).returning(table.c.id, sort_by_parameter_order=True)
        for some in _some(rows):
            numbers = self._writing.scalars(returning, [_exact(_without_id(row)) for row in some])
            ids |= zip((row["id"] for row in some), numbers, strict=True)
            self._rows[table.name] += len(some)
            self._progress(len(some))
        return ids

    def _other_rows(
        self, tables: Mapping[Table, Sequence[str]], column: str, shared: Sequence[tuple[Row, Row]]
    ) -> list[list[str]]:
        """Describe, for each row of the source and of the target, the tables whose results differ between them."""
        theirs = _digests(self._reading, tables, column, [row["id"] for row, _ in shared])
        ours = _digests(self._writing, tables, column, [own["id"] for _, own in shared])
        return [
            [f"other {table.name} rows" for table in tables if theirs[row["id"], table] != ours[own["id"], table]]
            for row, own in shared
        ]

    def _add_of(self, table: Table, column: str, ids: Mapping[int, int]) -> None:
        """Add the rows that belong to these ids there, under the ids here."""
        for some in _some(ids):
            self._add(
                table, ({**row, column: ids[row[column]]} for row in self._read(table, table.c[column].in_(some)))
            )


def _rows(connection: Connection, table: Table, *where: ColumnElement[bool]) -> Iterator[Row]:
    result = connection.execute(select(table).where(*where), execution_options={"yield_per": AT_A_TIME})
    for row in result.mappings():
        yield dict(row)


def _some(items: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(items)
    while some := list(islice(rest, AT_A_TIME)):
        yield some


def _digests(
    connection: Connection, tables: Mapping[Table, Sequence[str]], column: str, ids: Collection[int]
) -> Mapping[tuple[int, Table], int]:
    """(id, table) → a hash of the results that it has there, in whatever order."""
    digests: dict[tuple[int, Table], int] = defaultdict(int)
    for table, compared in tables.items():
        for some in _some(ids):
            for row in _rows(connection, table, table.c[column].in_(some)):
                text = repr([row[name] for name in compared])
                digests[row[column], table] += int.from_bytes(hashlib.sha256(text.encode()).digest())
    return digests


def _run_key(row: Row) -> tuple[str, int, str | None, int]:
    return row["cell_id"], row["seed"], row["search_id"], row["generation"]


def _seed_key(row: Row) -> tuple[str, int]:
    return row["cell_id"], row["seed"]


def _other_results(row: Row, own: Row) -> Iterator[str]:
    for name in _RESULT:
        if row[name] != own[name]:
            values = [each[name] for each in (own, row)]
            if name.endswith("_bits"):
                values = [None if bits is None else value_of(bits) for bits in values]
            yield f"{name.replace('_bits', '_score')} {values[0]} here, {values[1]} there"
    # Where one of them kept none, there is nothing to compare.
    if len({row["weights_sha256"], own["weights_sha256"]} - {None}) > 1:
        yield "other weights"


def _waiting(row: Row) -> Row:
    """A run as nobody has claimed it."""
    kept = {name: row[name] for name in ("id", "cell_id", "seed", "search_id", "generation")}
    return {**dict.fromkeys(row), **NEW_RUN, **kept}


def _said(row: Row) -> tuple[Any, ...]:
    """What two equal remarks have in common; a tag is the same whenever it was given."""
    return row["kind"], row["text"], None if row["kind"] == RemarkKind.TAG else row["made"]


def _without_id(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "id"}


def _exact(row: Row) -> dict[str, Any]:
    """The row with its numbers as their bits have them: SQLite makes NULL of NaN, and 0.0 of −0.0."""
    exact = {name: value_of(row[bits]) for name, bits in _BITS.items() if row.get(bits) is not None}
    return {**row, **exact}
