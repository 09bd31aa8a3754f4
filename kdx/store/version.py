"""The schema of this kdx, known without a database library."""

REVISION = "0001"
"""The newest migration, known here so that opening a database of this schema need not load Alembic."""

VERSION_TABLE = "kdx_alembic_version"
"""Differs from Alembic's default name, since Optuna keeps its own version table in the same database."""
