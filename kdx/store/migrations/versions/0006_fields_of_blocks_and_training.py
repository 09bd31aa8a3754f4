"""Cells that are whole again: fields that were added since, each at the value that it has had until then."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# As of this revision.
NEUTRAL: dict[str, dict[str, Any]] = {
    "model": {
        "feed_forward": "relu",
        "feed_forward_bias": "learned",
        "normalisation": "layer",
        "normalisation_bias": "learned",
    },
    "training": {"decay": None, "final_rate": 0.0, "optimiser": "adamw", "momentum": 0.95},
}


def upgrade() -> None:
    connection = op.get_bind()
    cells = connection.execute(sa.text("SELECT id, resolved FROM cell WHERE resolved IS NOT NULL")).all()
    if cells:
        connection.execute(
            sa.text("UPDATE cell SET resolved = :resolved WHERE id = :id"),
            [{"id": cell.id, "resolved": completed(cell.resolved)} for cell in cells],
        )


def completed(resolved: str) -> str:
    """The cell with these fields, where it has their section."""
    cell = json.loads(resolved)
    for section, fields in NEUTRAL.items():
        if isinstance(cell.get(section), dict):
            cell[section] = fields | cell[section]
    return json.dumps(cell, sort_keys=True)
