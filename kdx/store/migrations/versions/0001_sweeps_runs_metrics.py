"""Sweeps, cells, runs, attempts, metrics, outputs and environments."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Words as of this revision; a later one may add to `kdx.store.schema`, never here.
STATES = ("pending", "running", "interrupted", "failed", "cancelled", "completed", "diverged", "pruned")
FINAL = ("completed", "diverged", "pruned")


def upgrade() -> None:
    op.create_table(
        "sweep",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("grid", sa.JSON, nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "cell",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("spec", sa.Text, nullable=False),
    )
    op.create_table(
        "sweep_cell",
        sa.Column("sweep_id", sa.Integer, sa.ForeignKey("sweep.id"), primary_key=True),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("planned", sa.Boolean, nullable=False),
    )
    op.create_table(
        "sweep_run",
        sa.Column("sweep_id", sa.Integer, sa.ForeignKey("sweep.id"), primary_key=True),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id"), primary_key=True),
        sa.Column("seed", sa.BigInteger, primary_key=True),
        sa.Column("planned", sa.Boolean, nullable=False),
    )
    op.create_table(
        "environment",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("environment", sa.JSON, nullable=False),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id"), nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.Column("progress_step", sa.Integer, nullable=False),
        sa.Column("stalls", sa.Integer, nullable=False),
        sa.Column("valid_score", sa.Double),
        sa.Column("valid_bits", sa.BigInteger),
        sa.Column("valid_step", sa.Integer),
        sa.Column("test_score", sa.Double),
        sa.Column("test_bits", sa.BigInteger),
        sa.Column("error", sa.Text),
        sa.Column("definitions", sa.JSON),
        sa.Column("data_fingerprint", sa.Text),
        sa.Column("code_fingerprint", sa.Text),
        sa.Column("environment_id", sa.String(32), sa.ForeignKey("environment.id")),
        sa.UniqueConstraint("cell_id", "seed", "generation"),
        sa.CheckConstraint(f"state IN {STATES}", name="state"),
    )
    op.create_table(
        "attempt",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("started", sa.Double, nullable=False),
        sa.Column("ended", sa.Double),
        sa.Column("outcome", sa.String(16)),
        sa.Column("first_step", sa.Integer, nullable=False),
        sa.Column("last_step", sa.Integer),
        sa.Column("traceback", sa.Text),
    )
    op.create_table(
        "metric",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id")),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql")),
        sa.Column("step", sa.Integer),
        sa.Column("value", sa.Double),
        sa.Column("bits", sa.BigInteger, nullable=False),
        sa.Column("writes", sa.Integer, nullable=False),
        sa.Column("differs", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", "step"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "output",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("lines", sa.LargeBinary, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER run_final_state BEFORE UPDATE OF state ON run "
            f"WHEN OLD.state IN {FINAL} AND NEW.state <> OLD.state "
            f"BEGIN SELECT RAISE(ABORT, 'a run never leaves a final state'); END"
        )
