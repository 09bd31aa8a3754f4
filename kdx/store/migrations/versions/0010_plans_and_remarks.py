"""Every plan of a sweep, runs taken out of tables, renamed cells, notes and tags, and the memory of an attempt."""

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Words and limits as of this revision; `kdx.store.schema` says what the columns mean.
INTEGER = "typeof({0}) = 'integer'"
KEY = f"{INTEGER} AND {{0}} >= 0"
TIME = "typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND 253402300799"
NAME = "typeof({0}) = 'text' AND length({0}) <= 1000"
LINE = "typeof({0}) = 'text' AND length({0}) <= 10000"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
JSON = f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END"
HASH = "typeof({0}) = 'text' AND length({0}) = 32 AND NOT {0} GLOB '*[^0-9a-f]*'"


def sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def checks(**columns: str) -> list[sa.CheckConstraint]:
    found = columns.items() if sqlite() else ()
    return [sa.CheckConstraint(text.format(name), name=name) for name, text in found]


def or_null(check: str) -> str:
    return f"{{0}} IS NULL OR ({check})"


def key() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "plan",
        key(),
        sa.Column("sweep_id", sa.Integer, sa.ForeignKey("sweep.id"), nullable=False),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("grid", sa.JSON, nullable=False),
        sa.Column("sources", sa.JSON, nullable=False),
        *checks(id=KEY, sweep_id=KEY, made=TIME, grid=JSON, sources=JSON),
    )
    op.create_table(
        "plan_cell",
        sa.Column("plan_id", sa.Integer, sa.ForeignKey("plan.id"), primary_key=True, autoincrement=False),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id"), primary_key=True),
        *checks(plan_id=KEY, cell_id=HASH),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "invalidation",
        key(),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("withdrawn", sa.Double),
        *checks(id=KEY, run_id=KEY, made=TIME, why=LINE, withdrawn=or_null(TIME)),
    )
    op.create_table(
        "cell_migration",
        key(),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("former_id", sa.String(32), nullable=False),
        sa.Column("cell_id", sa.String(32), sa.ForeignKey("cell.id"), nullable=False),
        sa.Column("former_spec", sa.Text, nullable=False),
        sa.Column("change", sa.Text, nullable=False),
        *checks(id=KEY, made=TIME, former_id=HASH, cell_id=HASH, former_spec=TEXT, change=LINE),
    )
    for table, column, limit in (("note", "text", TEXT), ("tag", "word", NAME)):
        op.create_table(
            table,
            key(),
            sa.Column("made", sa.Double, nullable=False),
            sa.Column("sweep_id", sa.Integer, sa.ForeignKey("sweep.id")),
            sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id")),
            sa.Column(column, sa.Text, nullable=False),
            *checks(id=KEY, made=TIME, sweep_id=or_null(KEY), run_id=or_null(KEY), **{column: limit}),
        )
    if sqlite():
        whole = or_null(KEY).format("peak_memory")
        op.execute(f"ALTER TABLE attempt ADD COLUMN peak_memory BIGINT CONSTRAINT attempt_peak_memory CHECK ({whole})")
    else:
        op.add_column("attempt", sa.Column("peak_memory", sa.BigInteger))
    keep_present_plans()
    if sqlite():
        for name, planned in (("runs", "planned"), ("former_runs", "NOT planned")):
            op.execute(f"DROP VIEW {name}")
            op.execute(runs(name, planned))


def keep_present_plans() -> None:
    """The history of a sweep begins with the plan that it has."""
    op.execute("INSERT INTO plan (id, sweep_id, made, grid, sources) SELECT id, id, updated, grid, '{}' FROM sweep")
    op.execute(
        "INSERT INTO plan_cell (plan_id, cell_id) SELECT DISTINCT sweep_id, cell_id FROM sweep_cell WHERE planned"
    )


def runs(name: str, planned: str) -> str:
    """The view of the runs that a sweep plans, or of those that it has left."""
    fourth = import_module("kdx.store.migrations.versions.0004_data_and_whole_cells")
    return f"""
CREATE VIEW {name} AS
WITH
factors AS MATERIALIZED ({fourth.FACTORS}),
known AS (
    SELECT run.*, (
        SELECT why FROM invalidation WHERE run_id = run.id AND withdrawn IS NULL ORDER BY id DESC LIMIT 1
    ) AS invalidated
    FROM run
),
standing AS (
    SELECT
        id, cell_id, seed, generation, state, valid_score, valid_step, test_score, error, undertrained, invalidated,
        row_number() OVER (
            PARTITION BY cell_id, seed
            ORDER BY invalidated IS NULL AND state IN {fourth.FINAL} DESC, invalidated IS NULL DESC, generation DESC
        ) AS place
    FROM known
),
marked AS (
    -- Before all the columns of a cell are there, since what is sorted is copied.
    SELECT sweep_id, standing.*, row_number() OVER (
        PARTITION BY sweep_id, cell_id
        ORDER BY
            state = 'completed' AND valid_score IS NOT NULL AND invalidated IS NULL DESC,
            CASE direction WHEN 'max' THEN -valid_score ELSE valid_score END,
            seed
    ) AS rank
    -- Crossed, SQLite joins in this order; left to itself it may scan all runs for each cell.
    FROM sweep_run
    CROSS JOIN standing USING (cell_id, seed)
    CROSS JOIN factors USING (cell_id)
    WHERE place = 1 AND {planned}
),
choice AS MATERIALIZED (
    -- SQLite takes `labels` from the row of the least; what is planned comes before what is not.
    SELECT sweep_id, cell_id, labels, min((NOT planned) * 1000000000 + ordinal) FROM (
        SELECT sweep_id, cell_id, ordinal, planned, {fourth.LABELS} AS labels
        FROM sweep_cell JOIN factors USING (cell_id)
    )
    GROUP BY sweep_id, cell_id
)
SELECT
    sweep.name AS sweep,
    marked.id AS run_id,
    cell_id,
    choice.labels,
    {fourth.SETTINGS},
    seed,
    generation,
    state,
    state = 'completed' AND valid_score IS NOT NULL AND invalidated IS NULL AND rank = 1 AS selected,
    metric,
    valid_score,
    valid_step,
    test_score,
    (
        SELECT CAST(value AS INTEGER) FROM metric AS recorded
        WHERE recorded.run_id = marked.id AND recorded.name = 'model/parameters' AND recorded.step = 0
    ) AS parameters,
    (SELECT sum(ended - started) FROM attempt WHERE attempt.run_id = marked.id) AS seconds,
    error,
    undertrained,
    (SELECT json_extract(data_facts, '$.vocabulary_size') FROM run WHERE id = marked.id) AS vocabulary_size,
    (SELECT json_extract(data_facts, '$."test/unknown_rate"') FROM run WHERE id = marked.id) AS unknown_rate,
    (SELECT json_extract(data_facts, '$."test/longest_context"') FROM run WHERE id = marked.id) AS longest_context,
    invalidated
FROM marked
CROSS JOIN sweep ON sweep.id = sweep_id
CROSS JOIN choice USING (sweep_id, cell_id)
CROSS JOIN factors USING (cell_id)
"""
