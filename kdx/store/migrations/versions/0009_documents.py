"""What tests and evaluations measured by document."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# As of this revision; `kdx.store.schema` says what the columns mean.
KEY = "typeof({0}) = 'integer' AND {0} >= 0"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
CHECKS = {
    "unit": "typeof({0}) = 'text' AND length({0}) <= 1000",
    "sums": f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END",
}


def upgrade() -> None:
    for table, key, whole in (
        ("test_document", "run_id", "run"),
        ("evaluation_document", "evaluation_id", "evaluation"),
    ):
        checks = {key: KEY, **CHECKS} if op.get_bind().dialect.name == "sqlite" else {}
        op.create_table(
            table,
            sa.Column(key, sa.Integer, sa.ForeignKey(f"{whole}.id"), primary_key=True, autoincrement=False),
            sa.Column("unit", sa.Text, nullable=False),
            sa.Column("sums", sa.JSON, nullable=False),
            *(sa.CheckConstraint(text.format(name), name=name) for name, text in checks.items()),
        )
