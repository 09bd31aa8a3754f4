"""The schema of this kdx, known without a database library."""

REVISION = "0001"
"""The number of the schema, which a change of a table raises."""

VERSION_TABLE = "kdx_alembic_version"
"""Differs from Alembic's default name, since Optuna keeps its own version table in the same database."""
