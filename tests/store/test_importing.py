"""What a database has and another lacks comes into it once; a result that is there is never overwritten."""

import os
import signal
import tempfile
from itertools import count
from pathlib import Path

import pytest
from filled import came_to, fill, made, natural, plan_at, run_of, states
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select, update

from kdx.errors import DatabaseError
from kdx.store import claims, importing, reading, remarks
from kdx.store.check import check
from kdx.store.database import Database, database_at, open_database
from kdx.store.importing import import_database
from kdx.store.recording import repeat
from kdx.store.remarks import invalidate
from kdx.store.schema import (
    attempt,
    bits_of,
    cell,
    evaluation,
    evaluation_metric,
    metadata,
    plan,
    run,
    search,
    sweep,
    trial,
)


@pytest.fixture
def make(backend, tmp_path):
    """Makes a database of a name."""
    return lambda name: made(backend, tmp_path / name)


@pytest.fixture
def new(backend, tmp_path):
    """An address at which there is nothing, the same for the same name."""
    addresses: dict[str, str] = {}

    def new(name: str) -> str:
        if name not in addresses:
            (tmp_path / name).mkdir()
            addresses[name] = backend.nowhere(tmp_path / name)
        return addresses[name]

    return new


@pytest.fixture
def two(make, plan_of):
    """Two databases with the same sweep: runs 1 to 4, of which none has begun."""
    found = []
    for number, name in enumerate("ab"):
        address = make(name)
        # Each database has an id of its own, which copies of one have not.
        with open_database(address, write=True) as opened:
            with opened.write() as connection:
                connection.exec_driver_sql(f"UPDATE identity SET id = '{name * 32}'")
            opened.id = name * 32
            plan_at(opened, plan_of, [0, 1], 10.0 + number)
        found.append(address)
    return found


def of(address: str, read=natural):
    with open_database(address, write=False) as opened:
        return read(opened)


def written(address: str, *ends: tuple) -> None:
    """Lets runs of a database end: cell, seed, state, and whatever `came_to` takes."""
    with open_database(address, write=True) as opened:
        for cell, seed, state, *more in ends:
            came_to(opened, run_of(opened, cell, seed), state, **(more[0] if more else {}))


def assert_repeatable(source: str, target: str, backend) -> None:
    before = repr(backend.content(target))  # NaN is not equal to itself
    assert import_database(source, target).rows == {}
    assert repr(backend.content(target)) == before


def finish(database: Database) -> None:
    """Lets the runs of a filled database be finished, with a state that has no other columns."""
    with database.write() as connection:
        connection.execute(update(run).values(state="diverged"))


def test_all_that_a_database_has_comes_into_a_new_one(address, database, plan_of, new, backend, monkeypatch):
    fill(database, plan_of())
    finish(database)
    monkeypatch.setattr(importing, "AT_A_TIME", 3)
    imported = import_database(address, new("target"))
    assert of(new("target")) == natural(database)
    assert {name for name in metadata.tables if name not in imported.rows} == {"identity"}
    assert len(of(new("target"), check).faults) == len(check(database).faults)
    assert of(new("target"), lambda opened: opened.id) != database.id
    assert_repeatable(address, new("target"), backend)


def test_runs_of_both_are_there_once(two, new, backend):
    written(two[0], (0, 0, "completed"), (0, 1, "failed", {"step": 3}))
    written(two[1], (1, 0, "completed", {"host": "b"}), (1, 1, "interrupted", {"step": 4, "host": "b"}))
    imports = [import_database(source, new("target")) for source in two]
    assert [(imported.runs, imported.conflicts) for imported in imports] == [(1, ()), (1, ())]
    assert sorted(of(new("target"), states).values()) == ["completed", "completed", "pending", "pending"]
    assert {name for name, rows in of(new("target")).items() if len(rows) == 1} == {"plan", "sweep"}
    for source in two:
        assert_repeatable(source, new("target"), backend)
    assert of(new("target"), check).faults == ()


def test_what_is_done_elsewhere_replaces_what_waits(two, backend):
    written(two[0], (0, 1, "interrupted", {"step": 4, "host": "a"}))
    written(two[1], (0, 0, "completed"), (0, 1, "completed", {"host": "b"}))
    with open_database(two[0], write=True) as opened:
        remarks.annotate(opened, run_id=run_of(opened, 0, 1), text="see here", tags=["odd"])
    assert import_database(two[1], two[0]).runs == 2
    assert sorted(of(two[0], states).values()) == ["completed", "completed", "pending", "pending"]
    with open_database(two[0], write=False) as opened, opened.read() as connection:
        assert sorted(connection.scalars(select(attempt.c.owner))) == ["a", "b"]
        assert len(remarks.remarks(opened).of_runs) == 1
    assert_repeatable(two[1], two[0], backend)


def test_what_is_done_or_started_here_is_not_replaced_by_what_waits_there(two):
    written(two[0], (0, 0, "completed"), (0, 1, "failed", {"step": 5}))
    written(two[1], (0, 0, "interrupted", {"step": 4}), (0, 1, "interrupted", {"step": 4}))
    before = of(two[0])
    import_database(two[1], two[0])
    after = of(two[0])
    assert {name for name in before if before[name] != after[name]} <= {"environment"}


def test_the_same_results_are_one_run_and_that_of_the_target_stands(two):
    written(two[0], (0, 0, "completed", {"host": "a", "at": 200.0}))
    written(two[1], (0, 0, "completed", {"host": "b", "at": 100.0}))
    imported = import_database(two[1], two[0])
    assert (imported.runs, imported.same, imported.conflicts) == (0, 1, ())
    with open_database(two[0], write=False) as opened, opened.read() as connection:
        assert connection.scalars(select(attempt.c.owner)).all() == ["a"]


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        ({"value": 2.0}, ("valid_score 1.0 here, 2.0 there", "other metric rows", "other output rows")),
        ({"state": "diverged"}, ("state completed here, diverged there",)),
        ({"step": 11}, ("valid_step 10 here, 11 there", "other metric rows")),
    ],
)
def test_other_results_are_a_conflict_and_nothing_of_the_run_changes(two, change, differences):
    written(two[0], (0, 0, "completed", {"host": "a"}))
    others = {key: value for key, value in change.items() if key != "state"}
    written(two[1], (0, 0, change.get("state", "completed"), {"host": "b", **others}), (1, 1, "completed"))
    before = of(two[0])
    imported = import_database(two[1], two[0])
    (conflict,) = imported.conflicts
    assert conflict.differences == differences
    assert imported.runs == 1
    after = of(two[0])
    assert set(before["metric"]) < set(after["metric"])
    assert len(after["metric"]) == 2
    assert before["run"][0] in after["run"] or before["run"][1] in after["run"]
    again = import_database(two[1], two[0])
    assert (again.rows, again.conflicts) == ({}, imported.conflicts)


def test_what_is_written_on_a_run_in_conflict_is_left_with_it(two):
    written(two[0], (0, 0, "completed"))
    written(two[1], (0, 0, "completed", {"value": 2.0}))
    with open_database(two[1], write=True) as opened:
        remarks.annotate(opened, run_id=run_of(opened, 0, 0), text="of the other", tags=["other"])
        invalidate(opened, [run_of(opened, 0, 0)], "odd")
    import_database(two[1], two[0])
    assert of(two[0])["remark"] == []


def test_generations_of_both_are_joined(two, backend):
    for address in two:
        written(address, (0, 0, "completed"))
    with open_database(two[1], write=True) as opened:
        (again,) = repeat(opened, [run_of(opened, 0, 0)])
        came_to(opened, again, "completed", value=3.0)
    imported = import_database(two[1], two[0])
    assert (imported.runs, imported.conflicts) == (1, ())
    assert_repeatable(two[1], two[0], backend)


def test_what_is_running_elsewhere_waits_here_and_comes_later(two):
    with open_database(two[1], write=True) as opened:
        claims.claim(opened, run_of(opened, 0, 0), "b", 60)
    imported = import_database(two[1], two[0])
    assert (imported.runs, imported.running) == (0, 1)
    assert set(of(two[0], states).values()) == {"pending"}
    with open_database(two[1], write=True) as opened, opened.write() as connection:
        connection.execute(update(run).where(run.c.owner == "b").values(state="diverged"))
    assert import_database(two[1], two[0]).runs == 1


def test_what_is_finished_here_and_still_running_elsewhere_is_not_waited_for(two):
    written(two[0], (0, 0, "completed"))
    with open_database(two[1], write=True) as opened:
        claims.claim(opened, run_of(opened, 0, 0), "b", 60)
    assert import_database(two[1], two[0]).running == 0


def test_seeds_that_are_planned_no_more_here_are_planned_again(make, plan_of, backend):
    a, b = make("a"), make("b")
    for address, plans in ((a, ([0, 1, 2], [0])), (b, ([0, 1, 2],))):
        for seeds in plans:
            with open_database(address, write=True) as opened:
                plan_at(opened, plan_of, seeds, 10.0)
    import_database(b, a)
    with open_database(a, write=False) as opened:
        record = reading.load_sweep(opened)
        assert record.grid["seeds"] == [0, 1, 2] and {run.seed for run in record.runs} == {0, 1, 2}
    assert_repeatable(b, a, backend)


def test_what_is_running_here_is_left_alone(two):
    with open_database(two[0], write=True) as opened:
        claims.claim(opened, run_of(opened, 0, 0), "a", 60)
    written(two[1], (0, 0, "completed"))
    imported = import_database(two[1], two[0])
    assert (imported.runs, imported.running) == (0, 1)
    with open_database(two[0], write=True) as opened:
        assert claims.renew(opened, "a", 60) == 1


def test_seeds_of_one_plan_are_joined(make, new, plan_of, backend):
    addresses = {}
    for name, seeds in (("a", [0, 1]), ("b", [1, 5])):
        addresses[name] = make(name)
        with open_database(addresses[name], write=True) as opened:
            plan_at(opened, plan_of, seeds, 10.0)
    for order in ("ab", "ba"):
        target = new(f"to-{order}")
        for name in order:
            assert import_database(addresses[name], target).conflicts == ()
        with open_database(target, write=False) as opened, opened.read() as connection:
            row = connection.execute(select(sweep)).one()
            last = connection.execute(select(plan).order_by(plan.c.id.desc()).limit(1)).one()
            assert row.grid["seeds"] == last.grid["seeds"] == [0, 1, 5]
            assert connection.scalar(select(func.count()).select_from(plan)) == 2
            assert connection.scalar(select(func.count()).select_from(run)) == 6
        for name in order:
            assert_repeatable(addresses[name], target, backend)


def test_another_plan_of_the_same_name_is_a_conflict_and_its_runs_come(make, plan_of):
    a, b = make("a"), make("b")
    for address, cells in ((a, 2), (b, 3)):
        with open_database(address, write=True) as opened:
            plan_at(opened, plan_of, [0], 10.0, cells=cells)
    written(b, (0, 0, "completed"), (1, 0, "completed"), (2, 0, "completed"))
    before = of(a)
    imported = import_database(b, a)
    assert [(conflict.what, conflict.differences) for conflict in imported.conflicts] == [
        ("sweep demo", ("other cells",))
    ]
    assert imported.runs == 3
    assert [of(a)[name] for name in ("sweep", "plan")] == [before[name] for name in ("sweep", "plan")]


def reading_of(opened: Database, run_id: int, value: float | None, made: float = 1.0) -> None:
    with opened.write() as connection:
        error = "no room" if value is None else None
        row = {"run_id": run_id, "settings_id": "a" * 32, "settings": {"length": 9}, "made": made, "error": error}
        key = connection.execute(insert(evaluation).values(row).returning(evaluation.c.id)).scalar_one()
        if value is not None:
            number = {"evaluation_id": key, "name": "loss", "value": value, "bits": bits_of(value)}
            connection.execute(insert(evaluation_metric), number)


@pytest.mark.parametrize(
    ("here", "there", "stands", "conflicts"),
    [(None, 2.0, [2.0], 0), (2.0, None, [2.0], 0), (2.0, 2.0, [2.0], 0), (2.0, 3.0, [2.0], 1), (None, None, [], 0)],
)
def test_an_evaluation_that_was_made_stands(two, backend, here, there, stands, conflicts):
    for address, value in zip(two, (here, there), strict=True):
        written(address, (0, 0, "completed"))
        with open_database(address, write=True) as opened:
            reading_of(opened, run_of(opened, 0, 0), value)
    imported = import_database(two[1], two[0])
    assert [conflict.what.partition(" ")[0] for conflict in imported.conflicts] == ["evaluation"] * conflicts
    with open_database(two[0], write=False) as opened, opened.read() as connection:
        assert connection.scalars(select(evaluation_metric.c.value)).all() == stands
        assert connection.scalar(select(func.count()).select_from(evaluation)) == 1
    assert_repeatable(two[1], two[0], backend)


def drawn(address: str, *rates: float, ended: int = 0) -> None:
    with open_database(address, write=True) as opened, opened.write() as connection:
        connection.execute(insert(search).values(id="5" * 32, made=1.0, search={"tuning": {"seeds": [0]}}))
        cells = [*sorted(connection.scalars(select(cell.c.id))), None]
        for number, rate in enumerate(rates):
            row = {"search_id": "5" * 32, "number": number, "parameters": {"lr": rate}, "attributes": {}}
            connection.execute(insert(trial).values(**row, cell_id=cells[number]))
            if cells[number] is not None:
                key = {"search_id": "5" * 32, "cell_id": cells[number], "seed": 0, "generation": 0}
                state = {"state": "completed" if number < ended else "pending", "attempt": 0}
                connection.execute(insert(run).values(**key, **state, progress_step=0, stalls=0))


def test_trials_of_one_series_are_joined_with_their_runs(two, backend):
    drawn(two[0], 0.1, 0.2, ended=1)
    drawn(two[1], 0.1, 0.2, 0.3, ended=2)
    imported = import_database(two[1], two[0])
    assert (imported.conflicts, imported.runs, imported.same) == ((), 1, 1)
    assert any(each.name.endswith("-0-0-" + "5" * 32) for each in imported.folders), "the folder of a run of a trial"
    with open_database(two[0], write=False) as opened, opened.read() as connection:
        (found,) = reading.trials(connection, ["5" * 32]).values()
        assert [(record.number, len(record.runs)) for record in found] == [(0, 1), (1, 1), (2, 0)]
        assert {run.state for item in found for run in item.runs} == {"completed"}
    assert_repeatable(two[1], two[0], backend)


def test_another_series_of_trials_is_a_conflict(two):
    drawn(two[0], 0.1, 0.2)
    drawn(two[1], 0.1, 0.5, 0.3)
    (conflict,) = import_database(two[1], two[0]).conflicts
    assert (conflict.what, conflict.differences) == ("search 55555555", ("other trial 1",))
    assert len(of(two[0])["trial"]) == 2


def test_no_run_comes_of_a_search_that_is_another_one(two):
    drawn(two[0], 0.1)
    drawn(two[1], 0.5, 0.3, ended=2)
    before = len(of(two[0])["run"])
    assert import_database(two[1], two[0]).runs == 0
    assert len(of(two[0])["run"]) == before


def test_a_database_is_not_imported_into_itself(two, backend):
    before = backend.content(two[0])
    with pytest.raises(DatabaseError, match="this is one database under both names"):
        import_database(two[0], two[0])
    assert backend.content(two[0]) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cell SET spec = '{}'",
        "UPDATE run SET seed = -1 WHERE id = 1",
        "UPDATE run SET cell_id = 'ffffffffffffffffffffffffffffffff' WHERE id = 1",
        "UPDATE sweep_run SET sweep_id = 77",
        "UPDATE run SET state = 'nonsense' WHERE id = 1",
        "UPDATE sweep SET grid = '[]'",
    ],
)
def test_a_database_that_was_made_up_is_refused_before_anything_is_written(two, new, backend, statement):
    backend.execute(two[1], statement)
    before = backend.content(two[0])
    with pytest.raises(DatabaseError):
        import_database(two[1], new("none"))
    assert not database_at(new("none")).exists()
    with pytest.raises(DatabaseError) as caught:
        import_database(two[1], two[0])
    assert caught.value.place == two[1]
    assert backend.content(two[0]) == before


def test_an_import_that_is_killed_changes_nothing_and_is_done_again(two, new, in_processes):
    written(two[1], (0, 0, "completed"), (1, 0, "completed"))
    before = of(two[0])
    for number in range(1, 8, 2):

        def import_until(number: int = number) -> int:
            seen = []

            def progress(rows: int) -> None:
                seen.append(rows)
                if len(seen) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            child = os.fork()
            if not child:
                import_database(two[1], two[0], progress=progress)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        (code,) = in_processes(import_until)
        if code == "0":
            break
        assert of(two[0]) == before
    import_database(two[1], two[0])
    assert of(two[0]) != before


ENDS = st.sampled_from(["pending", "interrupted", "failed", "cancelled", "completed", "diverged"])


@st.composite
def _side(draw, number: int):
    """What became of each run of (cell, seed), its attempts being this side's own."""
    seeds = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    runs = {(cell, seed): (draw(ENDS), draw(st.integers(1, 3))) for cell in range(2) for seed in seeds}
    words = draw(st.lists(st.sampled_from(["x", "y"]), unique=True))
    return sorted(seeds), runs, words, number


@pytest.fixture
def written_side(backend, plan_of, tmp_path):
    counter = count()

    def written_side(side) -> str:
        seeds, runs, words, number = side
        address = made(backend, tmp_path / f"side-{next(counter)}")
        host = "abc"[number]
        with open_database(address, write=True) as opened:
            plan_at(opened, plan_of, seeds, 10.0 + number)
            for (cell, seed), (state, step) in runs.items():
                # A finished run is the same bits wherever it was computed; the value stands for them.
                final = state in ("completed", "diverged")
                end, value = (
                    ("completed" if (cell + seed) % 2 else "diverged", 1.0) if final else (state, float(number))
                )
                if state != "pending":
                    reached = 10 if final else step
                    which = run_of(opened, cell, seed)
                    came_to(opened, which, end, value=value, step=reached, host=host, at=100.0 + 7 * number)
            for word in words:
                remarks.annotate(opened, sweep_id=1, text=f"{word} of {host}", tags=[word])
            with opened.write() as connection:
                # A tag is the same whenever it was given; which time it keeps depends on the order.
                connection.exec_driver_sql(
                    f"UPDATE remark SET made = CASE kind WHEN 'tag' THEN 5 ELSE {6 + number} END"
                )
        return address

    return written_side


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=_side(0), other=_side(1), third=_side(2))
def test_the_order_of_databases_does_not_matter_and_again_changes_nothing(
    written_side, tmp_path, backend, one, other, third
):
    sources = [written_side(side) for side in (one, other, third)]
    folders = Path(tempfile.mkdtemp(dir=tmp_path))
    ends = [of(source, states) for source in sources]
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        target = made(backend, folders / str(len(found)))
        for each in order:
            assert import_database(sources[each], target).conflicts == ()
        for each in order:
            assert_repeatable(sources[each], target, backend)
        # All that is final anywhere is final here, and every run is there once.
        here = of(target, states)
        assert here.keys() == {key for each in ends for key in each}
        for key, state in here.items():
            finals = {each[key] for each in ends if each.get(key) in ("completed", "diverged")}
            assert {state} == (finals or {"pending"})
        assert of(target, check).faults == ()
        found.append({name: of(target)[name] for name in ("metric", "remark", "sweep_run", "sweep_cell")})
    assert found[0] == found[1]
