"""Cells that are whole again: fields that were added since, each at the value that it has had until then.

And options that no word of a cell takes are no longer fields of it."""

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
OPTIONS = (
    "clip",
    "neighbours",
    "pooling",
    "position_dropout",
    "scale",
    "sharing",
    "sinusoids",
    "stride",
    "summary",
    "temperature",
    "xl_bias",
)


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
    for option in OPTIONS:
        if option in cell and not taken(cell, option):
            del cell[option]
    return json.dumps(cell, sort_keys=True)


def taken(cell: dict[str, Any], option: str) -> bool:
    """Whether a word of the cell has the option."""
    # Another mixer stands in for self-attention; only translation has another attention.
    attends = cell.get("mixer") in (None, "attention") or cell.get("task") == "translation"
    match option:
        case "scale":
            return attends and cell.get("kernel") == "exponential"
        case "temperature":
            return attends and cell.get("kernel") in ("exponential", "rbf")
        case "sinusoids":
            return bool(cell.get("encoding") == "sinusoidal")
    return cell[option] is not None
