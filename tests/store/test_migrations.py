"""The scripts of Alembic, and the tables that they are to lead to."""

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect

from kdx.store.database import Database
from kdx.store.migrating import MIGRATIONS
from kdx.store.schema import metadata
from kdx.store.version import REVISION, VERSION_TABLE


@pytest.fixture(scope="module")
def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return ScriptDirectory.from_config(config)


def test_revisions_are_numbered_one_after_the_other(scripts: ScriptDirectory):
    walked = [script.revision for script in scripts.walk_revisions()]
    assert walked[::-1] == [f"{number:04d}" for number in range(1, len(walked) + 1)]


def test_each_file_is_named_by_its_revision(scripts: ScriptDirectory):
    files = sorted(Path(scripts.versions).glob("[!_]*.py"))
    assert [file.name[:5] for file in files] == [f"{script.revision}_" for script in scripts.walk_revisions()][::-1]


def test_the_newest_revision_is_the_one_that_opening_asks_for(scripts: ScriptDirectory):
    assert scripts.get_current_head() == REVISION


def differ(context: MigrationContext, column: object, wanted: object, there: Any, type_: Any) -> bool:
    """Whether a column has another type; Alembic itself takes types of our own for others."""
    return there.compile(context.dialect) != type_.compile(context.dialect)


def test_a_new_database_has_the_tables_of_the_schema(database: Database):
    # As Alembic itself connects, which reads JSON in another way than kdx.
    url, arguments = database.url()
    engine = create_engine(url, **arguments)
    with engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": differ}
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata)
        assert context.get_current_revision() == REVISION
    engine.dispose()
    assert not differences


def test_optuna_and_kdx_keep_their_version_tables_apart(database: Database):
    with database.read() as connection:
        tables = inspect(connection).get_table_names()
    assert VERSION_TABLE == "kdx_alembic_version"
    assert "alembic_version" not in tables
