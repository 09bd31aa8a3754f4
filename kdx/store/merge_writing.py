"""Writes what a merge decided into the target; rows that are there already stay as they are."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, delete, select

from kdx.store import verbatim
from kdx.store.merge_sides import OF_EVALUATIONS, OF_RUNS, Row, RunKey, Side, SweepState
from kdx.store.merge_union import Place, Union
from kdx.store.schema import (
    attempt,
    cell,
    environment,
    evaluation,
    invalidation,
    metadata,
    note,
    now,
    part,
    plan,
    plan_cell,
    run,
    search,
    sweep,
    sweep_cell,
    sweep_run,
    sweep_search,
    tag,
    trial,
)


class _Writer:
    """Counts the rows that it writes."""

    def __init__(self, connection: Connection, progress: Callable[[int], None]) -> None:
        self.connection = connection
        self.rows: Counter[str] = Counter()
        self._progress = progress

    def write(self, table: Table, rows: Iterable[Row]) -> None:
        """Inserts rows."""
        self._each(table, rows, verbatim.write)

    def replace(self, table: Table, rows: Iterable[Row]) -> None:
        """Gives rows that are there other values."""
        self._each(table, rows, verbatim.replace)

    def remove(self, table: Table, column: str, keys: Iterable[Any]) -> None:
        """Removes the rows in which a column has one of these values."""
        for some in _some(sorted(keys)):
            self.connection.execute(delete(table).where(table.c[column].in_(some)))

    def _each(self, table: Table, rows: Iterable[Row], do: Callable[[Connection, Table, Any], None]) -> None:
        names = [one.name for one in table.c]
        for some in _some(rows):
            do(self.connection, table, [tuple(row[name] for name in names) for row in some])
            self.rows[table.name] += len(some)
            self._progress(len(some))


def write(
    connection: Connection, sides: Sequence[Side], union: Union, progress: Callable[[int], None]
) -> dict[str, int]:
    """Writes what the target lacks of the union, in its transaction.

    Args:
        sides: the target first.

    Returns:
        Table → rows that were written; tables without one are left out.
    """
    here, writer = sides[0], _Writer(connection, progress)
    for table in (environment, part, cell, search):
        known = {row[_key(table)] for row in here.rows[table.name]}
        writer.write(table, [row for key, row in sorted(union.by_id[table.name].items()) if key not in known])
    run_ids = _write_runs(writer, sides, union)
    _write_evaluations(writer, sides, union, run_ids)
    _write_trials(writer, here, union)
    sweep_ids = _write_sweeps(writer, here, union)
    _write_remarks(writer, here, union, run_ids, sweep_ids)
    verbatim.keys_go_on(connection, metadata.sorted_tables)
    return {name: count for name, count in writer.rows.items() if count}


def _write_runs(writer: _Writer, sides: Sequence[Side], union: Union) -> dict[RunKey, int]:
    """Key of every run → its id in the target."""
    ids = _ids(sides[0], run, {key: key_id for key_id, key in sides[0].key_of.items()}, union.runs)
    come = {key: place for key, place in union.runs.items() if place.side}
    replaced = {ids[key] for key in come if key in sides[0].key_of.values()}
    for table in (attempt, *OF_RUNS):
        writer.remove(table, "run_id", replaced)
    rows = [{**place.row, "id": ids[key]} for key, place in sorted(come.items())]
    writer.write(run, [row for row in rows if row["id"] not in replaced])
    writer.replace(run, [row for row in rows if row["id"] in replaced])
    _write_parts_of(writer, sides, (attempt, *OF_RUNS), "run_id", {ids[key]: place for key, place in come.items()})
    return ids


def _write_evaluations(writer: _Writer, sides: Sequence[Side], union: Union, run_ids: Mapping[RunKey, int]) -> None:
    here = sides[0]
    known = {(here.key_of[row["run_id"]], row["settings_id"]): row["id"] for row in here.rows["evaluation"]}
    ids = _ids(here, evaluation, known, union.evaluations)
    come = {key: place for key, place in union.evaluations.items() if place.side}
    replaced = {ids[key] for key in come if key in known}
    for table in OF_EVALUATIONS:
        writer.remove(table, "evaluation_id", replaced)
    rows = [{**place.row, "id": ids[key], "run_id": run_ids[key[0]]} for key, place in sorted(come.items())]
    writer.write(evaluation, [row for row in rows if row["id"] not in replaced])
    writer.replace(evaluation, [row for row in rows if row["id"] in replaced])
    places = {ids[key]: place for key, place in come.items()}
    _write_parts_of(writer, sides, OF_EVALUATIONS, "evaluation_id", places)


def _write_parts_of(
    writer: _Writer, sides: Sequence[Side], tables: Sequence[Table], column: str, places: Mapping[int, Place]
) -> None:
    """What belongs to rows that came, from where they came; a few rows are in memory at a time."""
    new_ids: dict[int, dict[int, int]] = defaultdict(dict)
    for new_id, place in places.items():
        if not place.fresh:
            new_ids[place.side][place.row["id"]] = new_id
    for number, its in sorted(new_ids.items()):
        for table in tables:
            rows = sides[number].read(table, column, its)
            writer.write(table, ({**row, column: its[row[column]]} for row in rows))


def _write_trials(writer: _Writer, here: Side, union: Union) -> None:
    known: dict[bytes, dict[int, Row]] = defaultdict(dict)
    for row in here.rows["trial"]:
        known[row["search_id"]][row["number"]] = row
    for search_id, trials in sorted(union.trials.items()):
        if trials != known[search_id]:
            writer.remove(trial, "search_id", [search_id.decode()])
            writer.write(trial, [row for _, row in sorted(trials.items())])


def _write_sweeps(writer: _Writer, here: Side, union: Union) -> dict[bytes, int]:
    """Name of every sweep → its id in the target."""
    known = {name: sweep_id for sweep_id, name in here.sweep_names.items()}
    ids = _ids(here, sweep, known, union.sweeps)
    changed = {name: state for name, state in sorted(union.sweeps.items()) if state != here.sweeps.get(name)}
    rows = [{**state.row, "id": ids[name]} for name, state in changed.items()]
    writer.write(sweep, [row for row in rows if row["id"] not in here.sweep_names])
    writer.replace(sweep, [row for row in rows if row["id"] in here.sweep_names])
    for table, rows_of in ((sweep_cell, _choices), (sweep_run, _planned_runs), (sweep_search, _asked)):
        writer.remove(table, "sweep_id", [ids[name] for name in changed])
        writer.write(table, [row for name, state in changed.items() for row in rows_of(state, ids[name])])
    _write_plans(writer, here, changed, ids)
    return ids


def _choices(state: SweepState, sweep_id: int) -> Iterator[Row]:
    for (cell_id, ordinal), (labels, planned) in sorted(state.choices.items()):
        choice = {"cell_id": cell_id, "ordinal": ordinal, "labels": labels, "planned": planned}
        yield {"sweep_id": sweep_id, **choice}


def _planned_runs(state: SweepState, sweep_id: int) -> Iterator[Row]:
    for (cell_id, seed), planned in sorted(state.runs.items()):
        yield {"sweep_id": sweep_id, "cell_id": cell_id, "seed": seed, "planned": planned}


def _asked(state: SweepState, sweep_id: int) -> Iterator[Row]:
    for ordinal, (search_id, labels, trials) in sorted(state.searches.items()):
        asked = {"ordinal": ordinal, "search_id": search_id, "labels": labels, "trials": trials}
        yield {"sweep_id": sweep_id, **asked}


def _write_plans(
    writer: _Writer, here: Side, changed: Mapping[bytes, SweepState], sweep_ids: Mapping[bytes, int]
) -> None:
    """The histories of these sweeps, anew: a sweep follows the plan with the largest id."""
    histories = {
        name: state.plans
        for name, state in changed.items()
        if name not in here.sweeps or state.plans != here.sweeps[name].plans
    }
    former = {sweep_ids[name] for name in histories}
    gone = [row["id"] for row in here.rows["plan"] if row["sweep_id"] in former]
    writer.remove(plan_cell, "plan_id", gone)
    writer.remove(plan, "id", gone)
    plan_id = max((row["id"] for row in here.rows["plan"]), default=0)
    for name, history in histories.items():
        for one in history:
            plan_id += 1
            of = {"id": plan_id, "sweep_id": sweep_ids[name]}
            writer.write(plan, [{**of, "made": one.made, "grid": one.grid, "sources": one.sources}])
            writer.write(plan_cell, [{"plan_id": plan_id, "cell_id": cell_id} for cell_id in one.cells])


def _write_remarks(
    writer: _Writer, here: Side, union: Union, run_ids: Mapping[RunKey, int], sweep_ids: Mapping[bytes, int]
) -> None:
    def on(of: RunKey | bytes) -> dict[str, int | None]:
        of_run = isinstance(of, RunKey)
        return {
            "sweep_id": None if of_run else sweep_ids[of],  # type: ignore[index]
            "run_id": run_ids[of] if of_run else None,  # type: ignore[index]
        }

    def off(row: Row) -> RunKey | bytes | None:
        return here.sweep_names.get(row["sweep_id"]) if row["run_id"] is None else here.key_of[row["run_id"]]

    notes = union.notes - {(off(row), row["made"], row["text"]) for row in here.rows["note"]}
    tags = union.tags.keys() - {(off(row), row["word"]) for row in here.rows["tag"]}
    written = [{"made": made, "text": text, **on(of)} for of, made, text in sorted(notes, key=repr)]
    given = [{"made": union.tags[of, word], "word": word, **on(of)} for of, word in sorted(tags, key=repr)]
    writer.write(note, _numbered(here, note, written))
    writer.write(tag, _numbered(here, tag, given))
    reasons = {(here.key_of[row["run_id"]], row["made"], row["why"]): row for row in here.rows["invalidation"]}
    ended = [
        {**reasons[key], "withdrawn": withdrawn}
        for key, withdrawn in union.invalidations.items()
        if key in reasons and reasons[key]["withdrawn"] != withdrawn
    ]
    writer.replace(invalidation, ended)
    fresh = [
        {"run_id": run_ids[key[0]], "made": key[1], "why": key[2], "withdrawn": withdrawn}
        for key, withdrawn in sorted(union.invalidations.items(), key=lambda item: item[0])
        if key not in reasons
    ]
    moment = writer.connection.scalar(select(now())) if union.added else None
    fresh += [
        {"run_id": run_ids[key], "made": moment, "why": why.encode(), "withdrawn": None}
        for key, why in sorted(union.added.items())
    ]
    writer.write(invalidation, _numbered(here, invalidation, fresh))


def _ids(here: Side, table: Table, known: Mapping[Any, int], keys: Collection[Any]) -> dict[Any, int]:
    """Key → id in the target: the one that it has, or one that follows all."""
    last = max((row["id"] for row in here.rows[table.name]), default=0)
    new = sorted(key for key in keys if key not in known)
    return {**known, **{key: number for number, key in enumerate(new, last + 1)}}


def _numbered(here: Side, table: Table, rows: Iterable[Row]) -> list[Row]:
    last = max((row["id"] for row in here.rows[table.name]), default=0)
    return [{"id": number, **row} for number, row in enumerate(rows, last + 1)]


def _key(table: Table) -> str:
    (key,) = table.primary_key
    return key.name


def _some(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, verbatim.AT_A_TIME)):
        yield some
