"""Views for analysis: cells, runs, curves."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Words and columns as of this revision; `kdx.store.schema` says what they mean.
FINAL = ("completed", "diverged", "pruned")

# Made once a cell, not once a run: reading JSON is what takes time here.
FACTORS = """
    SELECT
        id AS cell_id,
        spec,
        json_extract(spec, '$.task') AS task,
        json_extract(spec, '$.kernel') AS kernel,
        json_extract(spec, '$.symmetry') AS symmetry,
        coalesce((SELECT group_concat(value, '+') FROM json_each(spec, '$.position')), 'none') AS position,
        coalesce((SELECT group_concat(value, '/') FROM json_each(spec, '$.placement')), 'none') AS placement,
        json_extract(spec, '$.value') AS value_function,
        json_extract(spec, '$.norm') AS norm,
        json_extract(spec, '$.select.metric') AS metric,
        json_extract(spec, '$.select.direction') AS direction
    FROM cell
"""

CELLS = f"""
CREATE VIEW cells AS
WITH factors AS MATERIALIZED ({FACTORS})
SELECT
    sweep.name AS sweep,
    factors.cell_id,
    sweep_cell.ordinal,
    sweep_cell.labels,
    task, kernel, symmetry, position, placement, value_function, norm, metric, direction, spec
FROM sweep
JOIN sweep_cell ON sweep_cell.sweep_id = sweep.id AND sweep_cell.planned
JOIN factors ON factors.cell_id = sweep_cell.cell_id
"""

RUNS = f"""
CREATE VIEW runs AS
WITH
factors AS MATERIALIZED ({FACTORS}),
standing AS (
    SELECT run.*, row_number() OVER (
        PARTITION BY cell_id, seed ORDER BY state IN {FINAL} DESC, generation DESC
    ) AS place
    FROM run
),
choice AS (
    -- SQLite takes `labels` from the row of the least ordinal.
    SELECT sweep_id, cell_id, labels, min(ordinal) FROM sweep_cell WHERE planned GROUP BY sweep_id, cell_id
)
SELECT
    sweep.name AS sweep,
    standing.id AS run_id,
    standing.cell_id,
    choice.labels,
    task, kernel, symmetry, position, placement, value_function, norm,
    standing.seed,
    standing.generation,
    standing.state,
    standing.state = 'completed' AND standing.valid_score IS NOT NULL AND row_number() OVER (
        PARTITION BY sweep.id, standing.cell_id
        ORDER BY
            standing.state = 'completed' AND standing.valid_score IS NOT NULL DESC,
            CASE direction WHEN 'max' THEN -standing.valid_score ELSE standing.valid_score END,
            standing.seed
    ) = 1 AS selected,
    metric,
    standing.valid_score,
    standing.valid_step,
    standing.test_score,
    (
        SELECT value FROM metric AS recorded
        WHERE recorded.run_id = standing.id AND recorded.name = 'model/parameters' AND recorded.step = 0
    ) AS parameters,
    (SELECT sum(ended - started) FROM attempt WHERE attempt.run_id = standing.id) AS seconds,
    standing.error
FROM sweep
JOIN sweep_run ON sweep_run.sweep_id = sweep.id AND sweep_run.planned
JOIN standing ON standing.cell_id = sweep_run.cell_id AND standing.seed = sweep_run.seed AND standing.place = 1
JOIN choice ON choice.sweep_id = sweep.id AND choice.cell_id = standing.cell_id
JOIN factors ON factors.cell_id = standing.cell_id
"""

CURVES = "CREATE VIEW curves AS SELECT run_id, name, step, value FROM metric"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for view in (CELLS, RUNS, CURVES):
            op.execute(view)
