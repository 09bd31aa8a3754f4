"""Searches of parameters: what is searched for which cells of a sweep, and every trial."""

import sqlalchemy as sa
from alembic import op

from kdx.store.migrations import postgresql_0011

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Words and limits as of this revision; `kdx.store.schema` says what the columns mean.
INTEGER = "typeof({0}) = 'integer'"
KEY = f"{INTEGER} AND {{0}} >= 0"
COUNT = f"{INTEGER} AND {{0}} >= 0 AND {{0}} <= 1000000000"
BITS = INTEGER
TIME = "typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND 253402300799"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
JSON = f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END"
HASH = "typeof({0}) = 'text' AND length({0}) = 32 AND NOT {0} GLOB '*[^0-9a-f]*'"
NUMBER = "typeof({0}) IN ('real', 'integer')"
STATE = "{0} IN ('completed', 'pruned', 'failed')"


def checks(**columns: str) -> list[sa.CheckConstraint]:
    found = columns.items() if op.get_bind().dialect.name == "sqlite" else ()
    return [sa.CheckConstraint(text.format(name), name=name) for name, text in found]


def or_null(check: str) -> str:
    return f"{{0}} IS NULL OR ({check})"


def upgrade() -> None:
    op.create_table(
        "search",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("search", sa.JSON, nullable=False),
        *checks(id=HASH, made=TIME, search=JSON),
    )
    op.create_table(
        "sweep_search",
        sa.Column("sweep_id", sa.Integer, sa.ForeignKey("sweep.id"), primary_key=True, autoincrement=False),
        sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("search_id", sa.String(32), sa.ForeignKey("search.id"), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        *checks(sweep_id=KEY, ordinal=COUNT, search_id=HASH, labels=JSON, trials=COUNT),
    )
    op.create_table(
        "trial",
        sa.Column("search_id", sa.String(32), sa.ForeignKey("search.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("attributes", sa.JSON, nullable=False),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id")),
        sa.Column("state", sa.String(16)),
        sa.Column("value", sa.Double),
        sa.Column("bits", sa.BigInteger),
        *checks(
            search_id=HASH,
            number=COUNT,
            parameters=JSON,
            attributes=JSON,
            cell_id=or_null(HASH),
            state=or_null(STATE),
            value=or_null(NUMBER),
            bits=or_null(BITS),
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        postgresql_0011.complete(op.get_bind())
