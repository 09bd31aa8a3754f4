"""Runs migrations inside the transaction that the caller holds (`kdx.store.migrating`); there is no other way in."""

from alembic import context

from kdx.store.schema import metadata
from kdx.store.version import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
