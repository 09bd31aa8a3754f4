"""Evaluations: further readings of a run, beside it, and a view of them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Words and limits as of this revision; `kdx.store.schema` says what the columns mean.
INTEGER = "typeof({0}) = 'integer'"
NUMBER = "typeof({0}) IN ('real', 'integer')"
TIME = f"{NUMBER} AND {{0}} BETWEEN 0 AND 253402300799"
STEP = f"{INTEGER} AND {{0}} >= 0"
COUNT = f"{STEP} AND {{0}} <= 1000000000"
NAME = "typeof({0}) = 'text' AND length({0}) <= 1000"
LINE = "typeof({0}) = 'text' AND length({0}) <= 10000"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
JSON = f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END"


def digits(count: int) -> str:
    return f"typeof({{0}}) = 'text' AND length({{0}}) = {count} AND NOT {{0}} GLOB '*[^0-9a-f]*'"


# Those that may be NULL are named behind the others of their table.
CHECKS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "evaluation": (
        {"id": STEP, "run_id": STEP, "settings_id": digits(32), "settings": JSON, "made": TIME},
        {
            "weights_sha256": digits(64),
            "data_fingerprint": NAME,
            "code_fingerprint": NAME,
            "environment_id": digits(32),
            "longest_context": COUNT,
            "definitions": JSON,
            "error": LINE,
        },
    ),
    "evaluation_metric": ({"evaluation_id": STEP, "name": NAME, "bits": INTEGER}, {"value": NUMBER}),
}

VIEW = """
CREATE VIEW evaluations AS
SELECT
    run_id,
    settings,
    json_extract(settings, '$.split') AS split,
    json_extract(settings, '$.corpus') AS corpus,
    json_extract(settings, '$.length') AS length,
    json_extract(settings, '$.memory') AS memory,
    json_extract(settings, '$.streams') AS streams,
    json_extract(settings, '$.beam') AS beam,
    longest_context,
    made,
    name,
    value,
    error
FROM evaluation LEFT JOIN evaluation_metric ON evaluation_id = evaluation.id
"""


def upgrade() -> None:
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("settings_id", sa.String(32), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("weights_sha256", sa.String(64)),
        sa.Column("data_fingerprint", sa.Text),
        sa.Column("code_fingerprint", sa.Text),
        sa.Column("environment_id", sa.String(32), sa.ForeignKey("environment.id")),
        sa.Column("longest_context", sa.Integer),
        sa.Column("definitions", sa.JSON),
        sa.Column("error", sa.Text),
        sa.UniqueConstraint("run_id", "settings_id"),
        *checks("evaluation"),
    )
    op.create_table(
        "evaluation_metric",
        sa.Column("evaluation_id", sa.Integer, sa.ForeignKey("evaluation.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Double),
        sa.Column("bits", sa.BigInteger, nullable=False),
        *checks("evaluation_metric"),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(VIEW)


def checks(table: str) -> list[sa.CheckConstraint]:
    if op.get_bind().dialect.name != "sqlite":
        return []
    whole, nullable = CHECKS[table]
    found = {name: text.format(name) for name, text in whole.items()}
    found |= {name: f"{name} IS NULL OR ({text.format(name)})" for name, text in nullable.items()}
    return [sa.CheckConstraint(text, name=name) for name, text in found.items()]
