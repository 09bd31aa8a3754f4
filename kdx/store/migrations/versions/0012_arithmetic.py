"""Cells with the arithmetic that all runs had before there was a choice."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    cells = connection.execute(sa.text("SELECT id, resolved FROM cell WHERE resolved IS NOT NULL")).all()
    if cells:
        connection.execute(
            sa.text("UPDATE cell SET resolved = :resolved WHERE id = :id"),
            [{"id": cell.id, "resolved": completed(cell.resolved)} for cell in cells],
        )


def completed(resolved: str) -> str:
    """The cell with this field, where it has its section."""
    cell = json.loads(resolved)
    if isinstance(cell.get("training"), dict):
        cell["training"] = {"arithmetic": "exact"} | cell["training"]
    return json.dumps(cell, sort_keys=True)
