"""Under which conditions each attempt went on, and from where."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # SQLite cannot add a reference to a table that is there; the batch copies the table, which is short.
    with op.batch_alter_table("attempt") as attempt:
        where = sa.ForeignKey("environment.id", name="attempt_environment")
        attempt.add_column(sa.Column("environment_id", sa.String(32), where))
        attempt.add_column(sa.Column("resumed_step", sa.Integer))
        attempt.add_column(sa.Column("changes", sa.Text))
