"""What a database on a server has: its objects and those of others, what a check finds, and what it says of itself."""

import json

import pytest
from sqlalchemy import update
from stored import refusal

from kdx.errors import KdxError
from kdx.store.check import check
from kdx.store.database import Database, database_at, open_database
from kdx.store.recording import register
from kdx.store.schema import cell
from kdx.store.views import TYPES, VIEWS

HINT = "  hint: do not use it; if it is yours, drop what is not of kdx, or take the database back from a copy"


def test_a_database_of_another_application_is_refused_untouched(nowhere: str, postgresql_server):
    with postgresql_server.connected(nowhere.rpartition("/")[2]) as connection:
        connection.execute("CREATE TABLE accounts (id integer)")
    for options in ({"write": False}, {"write": True}, {"write": True, "create": True}):
        assert refusal(nowhere, **options).startswith(f"{nowhere}: this database belongs to another application\n")
    with postgresql_server.connected(nowhere.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchall()


def test_an_extension_makes_no_database_foreign(nowhere: str, postgresql_server):
    with postgresql_server.connected(nowhere.rpartition("/")[2]) as connection:
        names = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        if ("pg_stat_statements",) not in names:
            pytest.skip("the server has no extension with views")
        connection.execute("CREATE EXTENSION pg_stat_statements")
    open_database(nowhere, write=True, create=True).close()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER mine BEFORE INSERT ON metric FOR EACH ROW EXECUTE FUNCTION f()",
            "its trigger `mine` on metric is not one that kdx makes",
        ),
        ("CREATE RULE mine AS ON INSERT TO remark DO INSTEAD NOTHING", "its rule `mine` on remark is not one that kdx"),
        ("DROP VIEW curves; CREATE TABLE curves (x integer)", "its `curves` is a table"),
        ("ALTER TABLE remark RENAME TO n; CREATE VIEW remark AS SELECT * FROM n", "its `remark` is a view"),
    ],
)
def test_what_would_act_or_answer_in_place_of_kdx_is_refused(address: str, connected, change: str, problem: str):
    with connected() as connection:
        connection.execute(change)
    for write in (False, True):
        said = refusal(address, write=write)
        assert said.startswith(f"{address}: this database was not made by kdx alone: {problem}")
        assert said.endswith(HINT)


def test_the_columns_of_views_have_the_declared_types(connected):
    known = {"bigint": int, "integer": int, "double precision": float, "boolean": bool}
    with connected() as connection:
        for view in VIEWS:
            asked = f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{view.name}'"
            columns = connection.execute(asked).fetchall()
            assert {name: known.get(kind, str) for name, kind in columns} == {
                name: TYPES.get(name, str) for name in view.columns
            }


def test_views_and_tables_of_a_user_are_welcome(address: str, connected):
    with connected() as connection:
        connection.execute("CREATE VIEW mine AS SELECT * FROM runs; CREATE TABLE studies (id integer)")
    open_database(address, write=True).close()


@pytest.mark.parametrize("role", ["kdx", "writer"])
def test_views_that_kdx_may_not_replace_stay(database: Database, address: str, connected, role: str, monkeypatch):
    """A view of a user reads one of them, or another user owns them."""
    monkeypatch.setattr(Database, "views", database.views | {"curves": "CREATE VIEW curves AS SELECT 1"})
    with connected() as connection:
        connection.execute("CREATE ROLE writer; GRANT ALL ON ALL TABLES IN SCHEMA public TO writer")
        if role == "kdx":
            connection.execute("CREATE VIEW mine AS SELECT * FROM runs")
        try:
            with open_database(f"{address}?options=-crole%3D{role}", write=True) as opened, opened.read() as reading:
                assert reading.exec_driver_sql("SELECT run_id, step FROM curves").all() == []
        finally:
            connection.execute("DROP OWNED BY writer; DROP ROLE writer")


def test_a_database_that_took_the_place_of_an_open_one_is_noticed(postgresql_server, address: str, database):
    name = address.rpartition("/")[2]
    postgresql_server.execute(f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    for transaction in (database.read, database.write):
        with pytest.raises(Exception, match="the database was deleted or replaced while it was open"), transaction():
            pass
    open_database(address, write=True, create=True).close()
    with pytest.raises(Exception, match="the database was deleted or replaced"), database.write():
        pass


def test_lost_rows_a_lost_trigger_and_a_lost_check_are_found(backend, address: str, database, plan_of):
    register(database, plan_of(2, 2))
    backend.execute(address, "DROP TRIGGER run_final_state ON run", "DELETE FROM cell", "DELETE FROM plan")
    with database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE attempt DROP CONSTRAINT attempt_changes")
    trigger, checks, *references = check(database).faults
    assert checks == "column checks are missing: attempt_changes"
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


def test_a_word_in_the_place_of_a_number_is_null(database: Database, plan_of):
    register(database, plan_of(1, 1))
    with database.write() as connection:
        (planned,) = connection.execute(cell.select()).all()
        spec = json.loads(planned.spec) | {"memory": "endless"}
        connection.execute(update(cell).values(spec=json.dumps(spec)))
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT memory, kernel FROM cells").all() == [(None, "exponential")]


def test_a_copy_is_left_to_the_program_of_the_server(database, tmp_path, address: str):
    with pytest.raises(KdxError) as caught:
        database.back_up(tmp_path / "copy.db")
    assert caught.value.problem == "kdx does not copy a database of a server to a file"
    plain = address.replace("+psycopg", "")
    assert caught.value.hint == f"pg_dump --format=custom --file=runs.dump {plain}"
    assert not (tmp_path / "copy.db").exists()


def test_the_software_is_that_of_the_server(address: str):
    name, version = database_at(address).software()
    assert name == "postgresql" and int(version.partition(".")[0]) >= 13


def test_a_library_with_tables_of_its_own_opens_the_same_database(postgresql_server):
    backend = database_at("postgresql://me:p%40ss@host:5/runs?sslmode=require")
    url, arguments = backend.url()
    assert url == "postgresql+psycopg://me:p%40ss@host:5/runs?sslmode=require"
    assert arguments["poolclass"].__name__ == "NullPool"
    assert "p@ss" not in backend.name and "p%40ss" not in backend.name and "p%40ss" not in backend.recovery
