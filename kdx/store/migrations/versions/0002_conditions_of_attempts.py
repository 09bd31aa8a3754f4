"""Under which conditions each attempt went on, and from where."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempt", sa.Column("environment_id", sa.String(32), sa.ForeignKey("environment.id")))
    op.add_column("attempt", sa.Column("resumed_step", sa.Integer))
    op.add_column("attempt", sa.Column("changes", sa.Text))
