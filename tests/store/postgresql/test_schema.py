"""The tables as PostgreSQL makes them."""

import pytest
from sqlalchemy.dialects import postgresql as dialects
from sqlalchemy.schema import CreateTable

from kdx.store.postgresql import expressions  # noqa: F401, since it registers PostgreSQL's SQL with SQLAlchemy
from kdx.store.schema import metadata


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_is_made_without_words_of_another_dialect(table):
    made = str(CreateTable(table).compile(dialect=dialects.dialect()))
    assert "ROWID" not in made and "typeof(" not in made.replace("json_typeof(", "")
