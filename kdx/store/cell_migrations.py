"""Gives cells another id because a word of theirs was renamed; their runs, plans and labels move along.

A word of one's own stands in the text that is hashed, so a file that was moved would make other cells of the same
content. `find` says what there is to be done, `carry_out` does it, both in a transaction of the caller, who moves the
folders of files after that (`kdx.run_files.moves`).
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from kdx.grid.identity import id_of
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.store.recording import remove_runs
from kdx.store.records import FINAL, RunState
from kdx.store.schema import (
    cell,
    cell_migration,
    evaluation,
    now,
    plan,
    plan_cell,
    run,
    sweep,
    sweep_cell,
    sweep_run,
)

_NO_WORDS = frozenset({"name", "caption", "description", "command", "file"})
"""Keys of a grid's JSON whose texts are the author's own."""


@dataclass(frozen=True)
class RenamedWord:
    """A word of one's own that is called otherwise now."""

    axis: str
    """As a grid names it: `kernel`, `position`, …, or `corpus`."""
    former: str
    new: str
    sha256: str
    """Of the source under the new word."""
    same: frozenset[str]
    """Hashes under which cells may have that very source."""

    @property
    def change(self) -> str:
        """In words."""
        return f"{self.former} → {self.new}"


@dataclass(frozen=True)
class CellMove:
    """A cell under its former and under its new id."""

    former_id: str
    former_spec: str
    cell_id: str
    spec: str
    change: str


@dataclass(frozen=True)
class RunMove:
    """A run whose cell or generation changes."""

    run_id: int
    seed: int
    former: tuple[str, int]
    """Cell and generation."""
    new: tuple[str, int]


@dataclass(frozen=True)
class Migration:
    """What renaming words comes to in a database."""

    cells: tuple[CellMove, ...]
    runs: tuple[RunMove, ...]
    """Those of these cells, and those of the cells that were there already and become newer generations."""
    given_up: tuple[int, ...]
    """Runs that never started, in whose place there is another one."""
    merged: tuple[str, ...]
    """New ids under which there were cells already."""
    conflicts: tuple[str, ...]
    """One line for each run that keeps it from being done."""
    other_sources: Mapping[str, int]
    """Former word → cells that have it with another source, and stay."""

    @property
    def folders(self) -> tuple[tuple[str, str], ...]:
        """The former and the new name of each folder of files that moves, see `kdx.run_files.files.folder_of`."""
        names = ((_folder(one.former, one.seed), _folder(one.new, one.seed)) for one in self.runs)
        return tuple((former, new) for former, new in names if former != new)


def words_of(connection: Connection) -> dict[str, set[str]]:
    """Axis → the words of one's own that cells of the database have under it."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, _, plain in _cells_with_parts(connection):
        for axis, word in _chosen(plain):
            if word in plain["parts"]:
                found[axis].add(word)
    return dict(found)


def hashes_of(connection: Connection, word: str) -> frozenset[str]:
    """The hashes of the sources that cells have under a word."""
    parts = (plain["parts"] for _, _, plain in _cells_with_parts(connection))
    return frozenset(str(its[word]) for its in parts if word in its)


def last(connection: Connection) -> int:
    """The newest change of a cell's id; 0: there was none."""
    return connection.scalar(select(cell_migration.c.id).order_by(cell_migration.c.id.desc()).limit(1)) or 0


def find(connection: Connection, words: Sequence[RenamedWord]) -> Migration:
    """What renaming these words changes; nothing is written."""
    moves, others = [], dict.fromkeys((one.former for one in words), 0)
    for cell_id, text, plain in _cells_with_parts(connection):
        its = [one for one in words if plain["parts"].get(one.former) in one.same]
        for one in words:
            others[one.former] += one.former in plain["parts"] and one not in its
        if its:
            renamed = _text(_renamed(plain, its))
            change = ", ".join(one.change for one in its)
            moves.append(CellMove(cell_id, text, _id(renamed), renamed, change))
    leaving = {move.former_id for move in moves}
    there = set(connection.scalars(select(cell.c.id).where(cell.c.id.in_([move.cell_id for move in moves]))))
    merged = sorted(there - leaving)
    rows = connection.execute(
        select(run.c.id, run.c.cell_id, run.c.seed, run.c.generation, run.c.state, run.c.attempt)
        .where(run.c.cell_id.in_([*leaving, *merged]))
        .order_by(run.c.id)
    ).all()
    of_cells: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        of_cells[row.cell_id][row.seed].append(row)
    runs: list[RunMove] = []
    given_up: list[int] = []
    conflicts = [f"run {row.id} is running" for row in rows if row.state == RunState.RUNNING]
    for move in moves:
        for seed, moving in of_cells[move.former_id].items():
            present = of_cells[move.cell_id][seed] if move.cell_id in merged else []
            moving, present, idle = _both(moving, present)
            given_up += [row.id for row in idle]
            shift = 1 + max(row.generation for row in moving) if moving and present else 0
            unfinished = [row for row in (*moving, *present) if row.state not in FINAL] if shift else []
            conflicts += [
                f"run {row.id} is {row.state}, and seed {seed} of its cell is there under both words"
                for row in unfinished
                if row.state != RunState.RUNNING
            ]
            runs += [
                RunMove(row.id, seed, (row.cell_id, row.generation), (move.cell_id, row.generation + shift))
                for row in present
                if shift
            ]
            runs += [
                RunMove(row.id, seed, (row.cell_id, row.generation), (move.cell_id, row.generation)) for row in moving
            ]
    return Migration(
        tuple(moves),
        tuple(runs),
        tuple(given_up),
        tuple(merged),
        tuple(conflicts),
        {word: count for word, count in others.items() if count},
    )


def _both(moving: Sequence[Any], present: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The runs of one seed under the former and under the new word, and those that give way since they never started.

    Of those that never started one stays only where there is nothing else.
    """
    idle = [row for row in (*moving, *present) if row.state == RunState.PENDING and not row.attempt]
    if not moving or not present or not idle:
        return list(moving), list(present), []
    moved, stayed = ([row for row in rows if row not in idle] for rows in (moving, present))
    if not moved and not stayed:
        return [], list(present), list(moving)
    return moved, stayed, idle


def carry_out(connection: Connection, found: Migration, words: Sequence[RenamedWord]) -> None:
    """Does what `find` found, in the same transaction.

    Args:
        words: as of `find`.
    """
    if not found.cells:
        return
    new_ids = {one.former_id: one.cell_id for one in found.cells}
    rows = [{"id": one.cell_id, "spec": one.spec} for one in found.cells if one.cell_id not in found.merged]
    if rows:
        connection.execute(insert(cell), rows)
    remove_runs(connection, found.given_up)
    # From the newest on, so that no two runs have the same generation at any time.
    for one in sorted(found.runs, key=lambda one: -one.former[1]):
        if one.former[0] == one.new[0]:
            connection.execute(update(run).where(run.c.id == one.run_id).values(generation=one.new[1]))
    for one in found.runs:
        if one.former[0] != one.new[0]:
            connection.execute(update(run).where(run.c.id == one.run_id).values(cell_id=one.new[0]))
    _move_choices(connection, new_ids, words)
    _move_planned_runs(connection, new_ids)
    _move_plans(connection, new_ids)
    _rename_in_grids(connection, {sweep_id for sweep_id, _ in _sweeps_of(connection, new_ids.values())}, words)
    _rename_in_evaluations(connection, [one.run_id for one in found.runs], words)
    for former, new in new_ids.items():
        connection.execute(update(cell_migration).where(cell_migration.c.cell_id == former).values(cell_id=new))
    connection.execute(
        insert(cell_migration).values(made=now()),
        [
            {
                "former_id": one.former_id,
                "cell_id": one.cell_id,
                "former_spec": one.former_spec,
                "change": one.change,
            }
            for one in found.cells
        ],
    )
    connection.execute(delete(cell).where(cell.c.id.in_(list(new_ids))))


def was_carried_out(connection: Connection, former: Collection[str], after: int) -> bool:
    """Whether these cells got other ids after the change of that number."""
    done = select(cell_migration.c.former_id).where(cell_migration.c.id > after)
    return bool(former) and set(former) <= set(connection.scalars(done))


def _move_choices(connection: Connection, new_ids: Mapping[str, str], words: Sequence[RenamedWord]) -> None:
    moving = connection.execute(select(sweep_cell).where(sweep_cell.c.cell_id.in_(list(new_ids)))).all()
    present = connection.execute(select(sweep_cell).where(sweep_cell.c.cell_id.in_(list(new_ids.values())))).all()
    # A choice that is planned comes before one that a sweep has left.
    rows: dict[tuple[int, str, int], dict[str, Any]] = {}
    for row in sorted((*present, *moving), key=lambda row: bool(row.planned)):
        labels = {axis: _word(text, words) for axis, text in row.labels.items()}
        key = (row.sweep_id, new_ids.get(row.cell_id, row.cell_id), row.ordinal)
        rows[key] = {**dict(zip(_CHOICE, key, strict=True)), "labels": labels, "planned": row.planned}
    touched = [*new_ids, *new_ids.values()]
    connection.execute(delete(sweep_cell).where(sweep_cell.c.cell_id.in_(touched)))
    if rows:
        connection.execute(insert(sweep_cell), list(rows.values()))


_CHOICE = ("sweep_id", "cell_id", "ordinal")
_RUN = ("sweep_id", "cell_id", "seed")


def _move_planned_runs(connection: Connection, new_ids: Mapping[str, str]) -> None:
    touched = [*new_ids, *new_ids.values()]
    planned: dict[tuple[int, str, int], bool] = {}
    for row in connection.execute(select(sweep_run).where(sweep_run.c.cell_id.in_(touched))):
        key = (row.sweep_id, new_ids.get(row.cell_id, row.cell_id), row.seed)
        planned[key] = planned.get(key, False) or bool(row.planned)
    connection.execute(delete(sweep_run).where(sweep_run.c.cell_id.in_(touched)))
    rows = [{**dict(zip(_RUN, key, strict=True)), "planned": value} for key, value in planned.items()]
    if rows:
        connection.execute(insert(sweep_run), rows)


def _move_plans(connection: Connection, new_ids: Mapping[str, str]) -> None:
    touched = [*new_ids, *new_ids.values()]
    found = connection.execute(select(plan_cell).where(plan_cell.c.cell_id.in_(touched))).all()
    rows = {(row.plan_id, new_ids.get(row.cell_id, row.cell_id)) for row in found}
    connection.execute(delete(plan_cell).where(plan_cell.c.cell_id.in_(touched)))
    if rows:
        connection.execute(insert(plan_cell), [{"plan_id": one, "cell_id": cell_id} for one, cell_id in sorted(rows)])


def _sweeps_of(connection: Connection, cell_ids: Iterable[str]) -> set[tuple[int, str]]:
    """(sweep, cell) of every sweep that plans one of these cells, or did once."""
    ids = list(cell_ids)
    choices = select(sweep_cell.c.sweep_id, sweep_cell.c.cell_id).where(sweep_cell.c.cell_id.in_(ids))
    plans = select(plan.c.sweep_id, plan_cell.c.cell_id).join(plan).where(plan_cell.c.cell_id.in_(ids))
    return {(row[0], row[1]) for query in (choices, plans) for row in connection.execute(query)}


def _rename_in_grids(connection: Connection, sweep_ids: Collection[int], words: Sequence[RenamedWord]) -> None:
    """In tables, evaluations and facts on tasks; the texts of grids stay as they were written."""
    for table, key in ((sweep, sweep.c.id), (plan, plan.c.sweep_id)):
        for row in connection.execute(select(table.c.id, table.c.grid).where(key.in_(list(sweep_ids)))).all():
            grid = _in_json(row.grid, words)
            if grid != row.grid:
                connection.execute(update(table).where(table.c.id == row.id).values(grid=grid))


def _rename_in_evaluations(connection: Connection, run_ids: Collection[int], words: Sequence[RenamedWord]) -> None:
    """The text that was read, where it is the run's own; another text is among what tells evaluations apart."""
    corpora = [one for one in words if one.axis == "corpus"]
    of_runs = evaluation.c.run_id.in_(list(run_ids))
    for row in (
        connection.execute(select(evaluation.c.id, evaluation.c.settings).where(of_runs)).all() if corpora else ()
    ):
        settings = {**row.settings, "corpus": _word(str(row.settings.get("corpus")), corpora)}
        if "corpus" in row.settings and settings != row.settings:
            connection.execute(update(evaluation).where(evaluation.c.id == row.id).values(settings=settings))


def _cells_with_parts(connection: Connection) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Id, text and JSON of every cell with words of one's own."""
    for row in connection.execute(select(cell.c.id, cell.c.spec).where(cell.c.spec.contains('"parts":'))).all():
        plain = json.loads(row.spec)
        if isinstance(plain.get("parts"), dict) and plain["parts"]:
            yield row.id, row.spec, plain


def _chosen(plain: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(axis, word) of every word that a cell has."""
    from kdx.grid.words import chosen_in

    yield from ((family.axis, word) for family, word in chosen_in(plain))
    yield "corpus", str(plain["data"].get("corpus"))


def _renamed(plain: Mapping[str, Any], words: Sequence[RenamedWord]) -> dict[str, Any]:
    """The JSON of a cell under the new words, as a grid with them would make it."""
    found = dict(plain)
    for axis in {one.axis for one in words}:
        its = {one.former: one.new for one in words if one.axis == axis}
        if axis == "corpus":
            data = found["data"]
            found["data"] = {**data, "corpus": its.get(data["corpus"], data["corpus"])}
        elif axis == "filter" and isinstance(found.get("filter"), dict):
            found["filter"] = {key: its.get(word, word) for key, word in found["filter"].items()}
        elif isinstance(found.get(axis), list):
            found[axis] = [its.get(word, word) for word in found[axis]]
        else:
            found[axis] = its.get(str(found.get(axis)), found.get(axis))
    new = {one.former: (one.new, one.sha256) for one in words}
    found["parts"] = dict(new.get(word, (word, sha256)) for word, sha256 in plain["parts"].items())
    return _ordered(found)


def _ordered(plain: dict[str, Any]) -> dict[str, Any]:
    """The schemes of a position in the order in which a grid of today puts them."""
    if len(plain.get("position") or ()) > 1 and (known := ResolvedSpec(plain).known):
        position = list(known.position)
        if sorted(position) == sorted(plain["position"]):
            return {**plain, "position": position}
    return plain


def _in_json(value: Any, words: Sequence[RenamedWord]) -> Any:
    if isinstance(value, dict):
        return {
            _word(key, words): inner if key in _NO_WORDS else _in_json(inner, words) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_in_json(one, words) for one in value]
    return _word(value, words) if isinstance(value, str) else value


def _word(text: str, words: Sequence[RenamedWord]) -> str:
    """A choice in words; schemes of a position are joined by `+`."""
    new = {one.former: one.new for one in words}
    return "+".join(new.get(one, one) for one in text.split("+"))


def _folder(of: tuple[str, int], seed: int) -> str:
    return f"{of[0]}-{seed}-{of[1]}"


def _text(plain: Mapping[str, Any]) -> str:
    """The JSON of a cell, see `CellSpec.text`."""
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _id(text: str) -> str:
    return id_of(json.loads(text))
