"""Databases of others, and what others put into one of ours."""

import pytest
from stored import refusal

from kdx.store.database import open_database

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


def test_views_and_tables_of_ones_own_are_welcome(address: str, connected):
    with connected() as connection:
        connection.execute("CREATE VIEW mine AS SELECT * FROM runs; CREATE TABLE studies (id integer)")
    open_database(address, write=True).close()


def test_a_database_that_took_the_place_of_an_open_one_is_noticed(postgresql_server, address: str, database, made):
    name = address.rpartition("/")[2]
    postgresql_server.execute(f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    for transaction in (database.read, database.write):
        with pytest.raises(Exception, match="the database was deleted or replaced while it was open"), transaction():
            pass
    open_database(address, write=True, create=True).close()
    with pytest.raises(Exception, match="the database was deleted or replaced"), database.write():
        pass
