"""What is wrong below the rows of tables."""

from kdx.store.check import check
from kdx.store.database import open_database
from kdx.store.recording import register


def test_a_sound_database_has_no_faults(database, plan_of):
    register(database, plan_of(), {"tables": []})
    assert check(database).faults == ()


def test_lost_rows_and_a_lost_trigger_are_found(made, address: str, database, plan_of):
    register(database, plan_of(2, 2), {"tables": []})
    made.execute(address, "DROP TRIGGER run_final_state ON run", "DELETE FROM cell", "DELETE FROM plan")
    trigger, *references = check(database).faults
    assert trigger == "the trigger run_final_state, which keeps final states final, is missing"
    assert sorted(references) == sorted(
        [
            "4 rows of run name a row of cell that is not there",
            "2 rows of plan_cell name a row of plan that is not there",
            "2 rows of plan_cell name a row of cell that is not there",
            "2 rows of sweep_cell name a row of cell that is not there",
            "4 rows of sweep_run name a row of cell that is not there",
        ]
    )


def test_a_view_that_says_something_else_and_one_that_is_not_there_are_found(database, connected):
    with connected() as connection:
        connection.execute("CREATE OR REPLACE VIEW curves AS SELECT run_id, name, step, value + 1 AS value FROM metric")
        connection.execute("DROP VIEW former_runs")
    views = [fault for fault in check(database).faults if "not as kdx makes it" in fault]
    assert views == ["the view curves is not as kdx makes it", "the view former_runs is not as kdx makes it"]


def test_comparing_views_leaves_nothing_behind(database, connected):
    before = "SELECT relname, relnamespace FROM pg_class ORDER BY 1, 2"
    with connected() as connection:
        there = connection.execute(before).fetchall()
        assert check(database).faults == ()
        assert connection.execute(before).fetchall() == there


def test_who_may_not_make_temporary_views_is_told_of_no_fault(database, address, postgresql_server, connected):
    name = address.rpartition("/")[2]
    postgresql_server.execute(
        f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC",
        "DROP USER IF EXISTS looker",
        "CREATE USER looker PASSWORD 'look'",
    )
    with connected() as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    with open_database(postgresql_server.address(name, "looker:look"), write=False) as opened:
        assert check(opened).faults == ()
    with connected() as connection:
        connection.execute("DROP OWNED BY looker")
    postgresql_server.execute("DROP USER looker")
