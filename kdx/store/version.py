"""Of which schema a results database is; known without a database library."""

REVISION = "0006"
"""The newest migration, known here so that opening a database of this schema need not load Alembic."""

VERSION_TABLE = "kdx_alembic_version"
"""Not Alembic's default name: Optuna keeps its own version table in the same database."""
