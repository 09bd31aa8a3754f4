"""Reads what each database brings to a merge: every row except the numbers and texts of runs, which may be many."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

from kdx.store import verbatim
from kdx.store.database import Database
from kdx.store.reading import whole_cell
from kdx.store.records import FINAL, RunState
from kdx.store.schema import (
    evaluation_document,
    evaluation_metric,
    metadata,
    metric,
    output,
    test_document,
)

Row = dict[str, Any]
"""Column → value, as `kdx.store.verbatim` reads it."""

OF_RUNS = (metric, output, test_document)
OF_EVALUATIONS = (evaluation_metric, evaluation_document)

_COMPARED = {
    "metric": ("name", "step", "bits"),
    "output": ("name", "count", "sha256"),
    "test_document": ("unit", "sums"),
    "evaluation_metric": ("name", "bits"),
    "evaluation_document": ("unit", "sums"),
}
"""Table → what two runs, or two evaluations, that are one have in common; a run that was resumed wrote rows twice."""


class RunKey(NamedTuple):
    """What tells runs apart in every database."""

    cell_id: bytes
    seed: int
    generation: int

    @property
    def folder(self) -> str:
        """The name of the folder of its files, see `kdx.run_files.files.folder_of`."""
        return f"{self.cell_id.decode()}-{self.seed}-{self.generation}"


class PlanKey(NamedTuple):
    """A plan of a sweep."""

    made: float
    grid: bytes
    sources: bytes
    cells: tuple[bytes, ...]


@dataclass
class SweepState:
    """A sweep with its plans, as it is in one database."""

    row: Row
    """Without its id."""
    plans: list[PlanKey] = field(default_factory=list)
    """The one that it follows is the last."""
    choices: dict[tuple[bytes, int], tuple[bytes, bool]] = field(default_factory=dict)
    """(cell, ordinal) → labels, and whether the newest plan has it."""
    runs: dict[tuple[bytes, int], bool] = field(default_factory=dict)
    """(cell, seed) → whether the newest plan has it."""
    searches: dict[int, tuple[bytes, bytes, int]] = field(default_factory=dict)
    """Ordinal → search, labels, number of trials."""


class Side:
    """The rows of one database; none where there is no database yet."""

    def __init__(self, database: Database | None, connection: Connection | None, name: str, location: Path) -> None:
        self.database = database
        self.connection = connection
        self.name = name
        self.location = location
        self.id = "" if database is None else str(database.id)
        self.rows: dict[str, list[Row]] = {
            table.name: [] for table in metadata.sorted_tables if table not in (*OF_RUNS, *OF_EVALUATIONS)
        }
        for table_name, rows in self.rows.items():
            rows += self.read(metadata.tables[table_name])
        self.runs = sorted(self.rows["run"], key=lambda row: (row["cell_id"], row["seed"], row["generation"]))
        self.key_of = {row["id"]: RunKey(row["cell_id"], row["seed"], row["generation"]) for row in self.runs}
        self._final = {row["id"] for row in self.runs if RunState(row["state"].decode()) in FINAL}
        self.attempts: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(self.rows["attempt"], key=lambda row: (row["run_id"], row["number"])):
            self.attempts[row["run_id"]].append(row)
        self.sweep_names: dict[int, bytes] = {row["id"]: row["name"] for row in self.rows["sweep"]}
        self.sweeps = self._sweeps()

    def check_cells(self) -> None:
        """Raises DatabaseError for a cell whose id is not its hash, which would join what differs."""
        with nullcontext() if self.database is None else self.database.translate_errors():
            for row in self.rows["cell"]:
                whole_cell(row["id"].decode(), row["spec"].decode(errors="surrogateescape"))

    def read(self, table: Table, column: str = "", ids: Collection[int] = ()) -> Iterator[Row]:
        """The rows of a table; with a column, those in which it has one of these values."""
        if self.connection is None or self.database is None:
            return
        names = [one.name for one in table.c]
        wanted = sorted(ids)
        chunks = [wanted[first : first + verbatim.AT_A_TIME] for first in range(0, len(wanted), verbatim.AT_A_TIME)]
        with self.database.translate_errors():
            for where in [table.c[column].in_(chunk) for chunk in chunks] if column else [None]:
                for rows in verbatim.read(self.connection, table, where):
                    yield from (dict(zip(names, row, strict=True)) for row in rows)

    def is_final(self, run_id: int) -> bool:
        """Whether a run is in a final state here."""
        return run_id in self._final

    def digests(self, tables: Collection[Table], key: str, ids: Collection[int]) -> dict[int, dict[str, int]]:
        """Run or evaluation → table → a hash of the results that it has there."""
        found: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys((one.name for one in tables), 0))
        for table in tables:
            compared = _COMPARED[table.name]
            for row in self.read(table, key, ids):
                text = repr([row[name] for name in compared])
                found[row[key]][table.name] += int.from_bytes(hashlib.sha256(text.encode()).digest())
        return found

    def environment(self, row: Row) -> Row:
        """The facts on where a run was computed."""
        texts = {one["id"]: one["environment"] for one in self.rows["environment"]}
        return dict(json.loads(texts[row["environment_id"]])) if row["environment_id"] in texts else {}

    def _sweeps(self) -> dict[bytes, SweepState]:
        states = {row["id"]: SweepState({**row, "id": None}) for row in self.rows["sweep"]}
        cells: dict[int, list[bytes]] = defaultdict(list)
        for row in self.rows["plan_cell"]:
            cells[row["plan_id"]].append(row["cell_id"])
        for row in sorted(self.rows["plan"], key=lambda row: int(row["id"])):
            key = PlanKey(row["made"], row["grid"], row["sources"], tuple(sorted(cells[row["id"]])))
            states[row["sweep_id"]].plans.append(key)
        for row in self.rows["sweep_cell"]:
            choice = (row["labels"], row["planned"])
            states[row["sweep_id"]].choices[row["cell_id"], row["ordinal"]] = choice
        for row in self.rows["sweep_run"]:
            states[row["sweep_id"]].runs[row["cell_id"], row["seed"]] = row["planned"]
        for row in self.rows["sweep_search"]:
            asked = (row["search_id"], row["labels"], row["trials"])
            states[row["sweep_id"]].searches[row["ordinal"]] = asked
        return {self.sweep_names[key]: state for key, state in states.items()}
