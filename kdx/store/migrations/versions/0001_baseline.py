"""The schema of kdx 0.1.0, the first.

A new database is made from `kdx.store.schema` as it stands and marked with the newest revision
(`kdx.store.migrating`). A revision brings a database of the one before to the same schema; it does not touch views,
which are made anew after it. Its test keeps a database of the schema before it.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """No database is older."""
