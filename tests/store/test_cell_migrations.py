"""Whatever cells, runs and plans there are: a renamed word moves them all, and loses none."""

import json
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select
from stored import rows

from kdx.grid.spec import CellSpec
from kdx.store import cell_migrations
from kdx.store.cell_migrations import RenamedWord
from kdx.store.check import check
from kdx.store.database import open_database
from kdx.store.records import FINAL, RunState
from kdx.store.schema import cell, cell_migration, plan, plan_cell, run, sweep, sweep_cell, sweep_run

SOURCE, OTHER = "1" * 64, "2" * 64
OLD, NEW = "my.py:K", "at/my.py:K"
WORD = RenamedWord("kernel", OLD, NEW, SOURCE, frozenset({SOURCE}))
BASE = json.loads(CellSpec.model_validate({"task": "translation", "data": {"corpus": "toy"}}).text)


def text_of(word: str, number: int, source: str = SOURCE) -> str:
    own = {"parts": {word: source}} if ".py" in word else {}
    plain = {**BASE, "kernel": word, "data": {**BASE["data"], "seed": number}, **own}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def id_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def place(one: tuple) -> tuple:
    """What no two rows have in common."""
    return text_of(*one[0]), *one[1:3]


a_cell = st.tuples(st.sampled_from([OLD, NEW, "rbf"]), st.integers(0, 1), st.sampled_from([SOURCE, OTHER]))
a_run = st.tuples(a_cell, st.integers(0, 1), st.integers(0, 2), st.sampled_from(RunState), st.booleans())


@pytest.mark.slow
@given(
    st.lists(a_run, max_size=12, unique_by=place),
    st.lists(
        st.tuples(a_cell, st.integers(1, 2), st.integers(0, 2), st.booleans()),
        max_size=8,
        unique_by=place,
    ),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_result_is_there_afterwards_under_the_new_id_or_nothing_is_done(backend, tmp_path_factory, runs, choices):
    address = backend.make(tmp_path_factory.mktemp("migrations"))
    with open_database(address, write=True) as database:
        with database.write() as connection:
            texts = {text_of(*one) for one, *_ in (*runs, *choices)}
            for text in texts:
                connection.execute(insert(cell).values(id=id_of(text), spec=text))
            for number in (1, 2):
                grid = {"tables": [{"name": "t", "where": {"kernel": OLD}}]}
                connection.execute(insert(sweep).values(id=number, name=f"s{number}", created=1, updated=1, grid=grid))
                connection.execute(insert(plan).values(id=number, sweep_id=number, made=1, grid=grid, sources={}))
            for one, seed, generation, state, started in runs:
                values = {"seed": seed, "generation": generation, "state": state, "attempt": int(started)}
                connection.execute(
                    insert(run).values(cell_id=id_of(text_of(*one)), progress_step=0, stalls=0, **values)
                )
            for one, number, ordinal, planned in choices:
                own = {"cell_id": id_of(text_of(*one)), "sweep_id": number}
                labels = {"kernel": one[0], "position": f"rotary+{one[0]}"}
                connection.execute(insert(sweep_cell).values(ordinal=ordinal, labels=labels, planned=planned, **own))
            for one, number in {(id_of(text_of(*one)), number) for one, number, *_ in choices}:
                connection.execute(insert(sweep_run).values(cell_id=one, sweep_id=number, seed=0, planned=True))
                connection.execute(insert(plan_cell).values(plan_id=number, cell_id=one))
        before = {row.id: row for row in rows(database, run)}
        kept = {row.id: row.spec for row in rows(database, cell)}
        with database.write() as connection:
            found = cell_migrations.find(connection, [WORD])
            if not found.conflicts:
                cell_migrations.carry_out(connection, found, [WORD])
        after = {row.id: row for row in rows(database, run)}
        if found.conflicts:
            assert after == before and rows(database, cell_migration) == []
            return
        assert check(database).faults == ()
        moved = {
            id_of(text): id_of(text_of(NEW, json.loads(text)["data"]["seed"]))
            for text in kept.values()
            if f'"{OLD}":"{SOURCE}"' in text
        }
        assert {row.former_id: row.cell_id for row in rows(database, cell_migration)} == moved
        assert {row.id for row in rows(database, cell)} == {moved.get(one, one) for one in kept}
        # Only runs that never started may go, and only where another one has their place.
        for run_id, row in before.items():
            new_cell = moved.get(row.cell_id, row.cell_id)
            if run_id not in after:
                assert row.state == RunState.PENDING and not row.attempt
                assert any((one.cell_id, one.seed) == (new_cell, row.seed) for one in after.values())
            else:
                assert (after[run_id].cell_id, after[run_id].seed, after[run_id].state) == (
                    new_cell,
                    row.seed,
                    row.state,
                )
        # The order of generations within what was one cell stays, and the former word's come first.
        for one in before.values():
            for other in before.values():
                same = {one.id, other.id} <= after.keys() and after[one.id].seed == after[other.id].seed
                if same and one.cell_id == other.cell_id and one.generation < other.generation:
                    assert after[one.id].generation < after[other.id].generation
                joined = same and one.cell_id in moved and moved[one.cell_id] == other.cell_id
                if joined:
                    assert after[one.id].generation < after[other.id].generation
                    assert one.state in FINAL and other.state in FINAL
        for row in rows(database, sweep_cell):
            assert row.cell_id in {one.id for one in rows(database, cell)}
            if row.cell_id in moved.values():
                assert all(OLD not in label.split("+") for label in row.labels.values())
        planned = {(number, moved.get(id_of(text_of(*one)), id_of(text_of(*one)))) for one, number, *_ in choices}
        assert {(row.sweep_id, row.cell_id) for row in rows(database, sweep_run)} == planned
        assert {(row.plan_id, row.cell_id) for row in rows(database, plan_cell)} == planned
        touched = {number for number, one in planned if one in moved.values()}
        for row in rows(database, sweep):
            assert row.grid["tables"][0]["where"] == {"kernel": NEW if row.id in touched else OLD}


@pytest.mark.parametrize(
    ("axis", "change"),
    [
        ("position", {"position": ["rotary", OLD]}),
        ("filter", {"filter": {"decoder-self": OLD, "encoder-self": "full"}}),
        ("corpus", {"data": {"corpus": OLD}}),
        ("mixer", {"mixer": OLD}),
        ("task", {"task": OLD}),
    ],
)
def test_a_word_of_any_axis_is_renamed_where_it_stands_and_nowhere_else(axis, change):
    plain = {**BASE, **change, "parts": {OLD: SOURCE}, "note": OLD}
    word = RenamedWord(axis, OLD, NEW, OTHER, frozenset({SOURCE}))
    found = cell_migrations._renamed(plain, [word])
    expected = json.loads(json.dumps({**BASE, **change}).replace(OLD, NEW))
    assert found == {**expected, "parts": {NEW: OTHER}, "note": OLD}


def test_words_and_hashes_of_a_database_are_found(database):
    with database.write() as connection:
        for text in (text_of(OLD, 0), text_of(OLD, 1, OTHER), text_of("rbf", 0)):
            connection.execute(insert(cell).values(id=id_of(text), spec=text))
    with database.read() as connection:
        assert cell_migrations.words_of(connection) == {"kernel": {OLD}}
        assert cell_migrations.hashes_of(connection, OLD) == {SOURCE, OTHER}
        assert cell_migrations.find(connection, [WORD]).other_sources == {OLD: 1}
        assert connection.scalars(select(cell_migration.c.id)).all() == []
