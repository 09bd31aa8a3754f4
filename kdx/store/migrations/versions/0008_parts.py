"""The sources of parts of one's own; and cells with the fields that were added since, at their neutral values."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# As of this revision; `kdx.store.schema` says what the columns mean.
NUMBER = "typeof({0}) IN ('real', 'integer')"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
CHECKS = {
    "sha256": "typeof({0}) = 'text' AND length({0}) = 64 AND NOT {0} GLOB '*[^0-9a-f]*'",
    "sources": f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END",
    "package": "typeof({0}) = 'text' AND length({0}) <= 1000",
    "created": f"{NUMBER} AND {{0}} BETWEEN 0 AND 253402300799",
}
NEUTRAL: dict[str, Any] = {"parts": {}, "qk_norm": "none", "kv_heads": None, "maps": "single", "output_gate": "none"}
ROTARY = {
    "rotary_base": 10000.0,
    "rotary_share": 1.0,
    "rotary_scaling": "none",
    "rotary_factor": 1.0,
    "original_length": 512,
}


def upgrade() -> None:
    connection = op.get_bind()
    checks = CHECKS.items() if connection.dialect.name == "sqlite" else ()
    op.create_table(
        "part",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("sources", sa.JSON, nullable=False),
        sa.Column("package", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        *(sa.CheckConstraint(text.format(name), name=name) for name, text in checks),
    )
    cells = connection.execute(sa.text("SELECT id, resolved FROM cell WHERE resolved IS NOT NULL")).all()
    if cells:
        connection.execute(
            sa.text("UPDATE cell SET resolved = :resolved WHERE id = :id"),
            [{"id": cell.id, "resolved": completed(cell.resolved)} for cell in cells],
        )


def completed(resolved: str) -> str:
    """The cell with these fields, and with the options that its word has got since."""
    cell = NEUTRAL | json.loads(resolved)
    return json.dumps((ROTARY if "rotary" in cell.get("position", ()) else {}) | cell, sort_keys=True)
