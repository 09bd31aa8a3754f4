"""Tables of PostgreSQL, as far as they can be made without one."""

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from kdx.store.postgresql import expressions  # noqa: F401, since it teaches SQLAlchemy
from kdx.store.schema import metadata, now


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_can_be_made_on_postgresql(table):
    made = str(CreateTable(table).compile(dialect=postgresql.dialect()))
    assert "ROWID" not in made
    assert "clock_timestamp" in str(select(now()).compile(dialect=postgresql.dialect()))
