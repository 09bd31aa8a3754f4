"""A merge writes what the target lacks and nothing else, in few statements."""

import pytest
from filled import fill
from sides import came_to, made, plan_at, run_of

from kdx.store import verbatim
from kdx.store.database import Database, open_database
from kdx.store.merge_sides import Side
from kdx.store.merge_union import unite
from kdx.store.merge_writing import write
from kdx.store.schema import metric


@pytest.fixture
def other(backend, tmp_path):
    with open_database(made(backend, tmp_path / "other"), write=True) as opened:
        yield opened


def merged(target: Database, source: Database) -> tuple[dict[str, int], list[int]]:
    progress: list[int] = []
    with source.read() as reading, target.write() as connection:
        sides = [Side(target, connection, "here", target.location), Side(source, reading, "there", source.location)]
        return write(connection, sides, unite(sides), progress.append), progress


def test_it_counts_what_it_writes(database: Database, other: Database, plan_of):
    fill(other, plan_of())
    rows, progress = merged(database, other)
    assert sum(progress) == sum(rows.values())
    assert rows["metric"] == 7
    assert merged(database, other) == ({}, [])


def test_the_number_of_statements_does_not_depend_on_the_rows(database: Database, other: Database, plan_of, statements):
    counts = []
    for seeds in ([0], [0, 1, 2, 3, 4, 5]):
        plan_at(other, plan_of, seeds, 1.0, name=f"sweep {len(seeds)}", cells=2)
        for seed in seeds[-1:]:
            came_to(other, run_of(other, 0, seed), "completed")
        with other.write() as connection:
            numbers = {"name": "train/loss", "value": 1.0, "bits": 1, "writes": 1, "differs": 0}
            which = run_of(other, 0, seeds[-1])
            many = [numbers | {"run_id": which, "step": step} for step in range(10 * len(seeds))]
            connection.execute(metric.insert(), many)
        with statements() as sent:
            merged(database, other)
        counts.append(len(sent))
    assert abs(counts[0] - counts[1]) <= 6, counts


def test_rows_are_written_some_at_a_time(database: Database, other: Database, plan_of, monkeypatch):
    fill(other, plan_of())
    monkeypatch.setattr(verbatim, "AT_A_TIME", 3)
    _, progress = merged(database, other)
    assert max(progress) == 3
