"""What data was, runs that learned too little, whole cells; views that tell them, and what a sweep has left.

A cell's `spec` is the text that was hashed, which leaves out every field at its neutral value; `resolved` has them all.
A run whose final validation loss was not below the unigram distribution's was once told as diverged, whatever it had
learned. Those that did not end far above where they began become completed, as they would be now.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Words, fields and columns as of this revision; `kdx.store.schema` says what they mean.
FINAL = ("completed", "diverged", "pruned")
NEUTRAL: dict[str, Any] = {
    "space": None,
    "sinusoids": "vaswani",
    "mixer": "attention",
    "neighbours": None,
    "normaliser": None,
    "scale": "scaled",
    "temperature": 1.0,
    "clip": None,
    "sharing": None,
    "xl_bias": None,
    "position_dropout": None,
    "stride": None,
    "summary": None,
    "memory": 0,
    "data": {"merges": None, "dictionaries": "joint", "train_examples": None},
    "model": {
        "inner_dropout": 0.0,
        "output_dropout": 0.0,
        "cutoffs": [],
        "bias": "learned",
        "initialisation": "xavier",
    },
    "training": {"average": 0},
    "evaluation": {
        "beam": 1,
        "valid_beam": 1,
        "length_penalty": 1.0,
        "penalty": "length",
        "longest": [2.0, 10],
        "streams": None,
        "length": None,
        "memory": None,
    },
}

TRIGGER = (
    f"CREATE TRIGGER run_final_state BEFORE UPDATE OF state ON run "
    f"WHEN OLD.state IN {FINAL} AND NEW.state <> OLD.state "
    f"BEGIN SELECT RAISE(ABORT, 'a run never leaves a final state'); END"
)

# Numbers are finite between these, on every database. 1.25: as `kdx.training.run` decides now.
UNDERTRAINED = """
    SELECT id FROM run
    WHERE state = 'diverged'
    AND error LIKE 'final validation loss % is not below %, the unigram distribution''s'
    AND valid_score BETWEEN -1e308 AND 1e308
    AND test_score BETWEEN -1e308 AND 1e308
    AND (
        SELECT value FROM metric WHERE run_id = run.id AND name = 'valid/loss' ORDER BY step DESC LIMIT 1
    ) <= 1.25 * (SELECT value FROM metric WHERE run_id = run.id AND name = 'train/loss' AND step = 1)
"""

# Made once a cell, not once a run: reading JSON is what takes time here.
FACTORS = """
    SELECT
        id AS cell_id,
        resolved,
        json_extract(resolved, '$.task') AS task,
        json_extract(resolved, '$.kernel') AS kernel,
        json_extract(resolved, '$.symmetry') AS symmetry,
        coalesce((SELECT group_concat(value, '+') FROM json_each(resolved, '$.position')), 'none') AS position,
        json_extract(resolved, '$.encoding') AS encoding,
        coalesce((SELECT group_concat(value, '/') FROM json_each(resolved, '$.placement')), 'none') AS placement,
        json_extract(resolved, '$.value') AS value_function,
        json_extract(resolved, '$.norm') AS norm,
        json_extract(resolved, '$.mixer') AS mixer,
        json_extract(resolved, '$.clip') AS clip,
        json_extract(resolved, '$.temperature') AS temperature,
        json_extract(resolved, '$.memory') AS memory,
        json_extract(resolved, '$.data.corpus') AS corpus,
        json_extract(resolved, '$.data.train_lines') AS train_lines,
        json_extract(resolved, '$.data.vocabulary') AS vocabulary,
        json_extract(resolved, '$.model.width') AS width,
        json_extract(resolved, '$.model.heads') AS heads,
        json_extract(resolved, '$.model.inner') AS inner_width,
        json_extract(resolved, '$.model.encoder_layers') AS encoder_layers,
        json_extract(resolved, '$.model.decoder_layers') AS decoder_layers,
        json_extract(resolved, '$.model.dropout') AS dropout,
        json_extract(resolved, '$.training.steps') AS steps,
        json_extract(resolved, '$.training.batch_tokens') AS batch_tokens,
        json_extract(resolved, '$.training.length') AS length,
        json_extract(resolved, '$.training.learning_rate') AS learning_rate,
        json_extract(resolved, '$.training.warmup') AS warmup,
        coalesce(
            json_extract(resolved, '$.evaluation.length'), json_extract(resolved, '$.training.length')
        ) AS evaluation_length,
        json_extract(resolved, '$.select.metric') AS metric,
        json_extract(resolved, '$.select.direction') AS direction
    FROM cell
"""
SETTINGS = """
    task, kernel, symmetry, position, encoding, placement, value_function, norm, mixer, clip, temperature, memory,
    corpus, train_lines, vocabulary, width, heads, inner_width, encoder_layers, decoder_layers, dropout,
    steps, batch_tokens, length, learning_rate, warmup, evaluation_length
"""

# An axis that is a field of the cell has what the cell has, as `choice` of `kdx.grid.cell_selector` reads it, but for
# numbers and null, which stay what they are; any other has the grid's word. `field` is the path to it, each step in
# quotation marks; it is not called `path`, since json_each has a column of that name.
LABELS = """(
    SELECT json_group_object(axis, json(
        CASE json_type(resolved, field)
            WHEN 'array' THEN json_quote(coalesce((
                SELECT group_concat(value, CASE axis WHEN 'position' THEN '+' ELSE '/' END)
                FROM json_each(resolved, field)
            ), 'none'))
            WHEN 'object' THEN json_quote(word)
            ELSE coalesce(resolved -> field, json_quote(word))
        END
    ))
    FROM (
        SELECT
            key AS axis,
            value AS word,
            '$."' || replace(replace(key, '"', ''), '.', '"."') || '"' AS field
        FROM json_each(sweep_cell.labels)
    )
)"""

CELLS = f"""
CREATE VIEW cells AS
WITH factors AS MATERIALIZED ({FACTORS})
SELECT
    sweep.name AS sweep,
    factors.cell_id,
    sweep_cell.ordinal,
    {LABELS} AS labels,
    {SETTINGS},
    metric, direction,
    resolved AS spec
FROM sweep
JOIN sweep_cell ON sweep_cell.sweep_id = sweep.id AND sweep_cell.planned
JOIN factors ON factors.cell_id = sweep_cell.cell_id
"""


def runs(name: str, planned: str) -> str:
    """The view of the runs that a sweep plans, or of those that it has left."""
    return f"""
CREATE VIEW {name} AS
WITH
factors AS MATERIALIZED ({FACTORS}),
standing AS (
    SELECT id, cell_id, seed, generation, state, valid_score, valid_step, test_score, error, undertrained, row_number()
    OVER (
        PARTITION BY cell_id, seed ORDER BY state IN {FINAL} DESC, generation DESC
    ) AS place
    FROM run
),
marked AS (
    -- Before all the columns of a cell are there, since what is sorted is copied.
    SELECT sweep_id, standing.*, row_number() OVER (
        PARTITION BY sweep_id, cell_id
        ORDER BY
            state = 'completed' AND valid_score IS NOT NULL DESC,
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
        SELECT sweep_id, cell_id, ordinal, planned, {LABELS} AS labels
        FROM sweep_cell JOIN factors USING (cell_id)
    )
    GROUP BY sweep_id, cell_id
)
SELECT
    sweep.name AS sweep,
    marked.id AS run_id,
    cell_id,
    choice.labels,
    {SETTINGS},
    seed,
    generation,
    state,
    state = 'completed' AND valid_score IS NOT NULL AND rank = 1 AS selected,
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
    (SELECT json_extract(data_facts, '$."test/longest_context"') FROM run WHERE id = marked.id) AS longest_context
FROM marked
CROSS JOIN sweep ON sweep.id = sweep_id
CROSS JOIN choice USING (sweep_id, cell_id)
CROSS JOIN factors USING (cell_id)
"""


RUNS = runs("runs", "planned")
FORMER_RUNS = runs("former_runs", "NOT planned")


def upgrade() -> None:
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        for view in ("cells", "runs"):
            op.execute(f"DROP VIEW {view}")
    op.add_column("cell", sa.Column("resolved", sa.Text))
    op.add_column("run", sa.Column("data_facts", sa.JSON))
    op.add_column("run", sa.Column("undertrained", sa.Text))
    cells = connection.execute(sa.text("SELECT id, spec FROM cell")).all()
    if cells:
        connection.execute(
            sa.text("UPDATE cell SET resolved = :resolved WHERE id = :id"),
            [{"id": cell.id, "resolved": resolved(cell.spec)} for cell in cells],
        )
    correct(connection, sqlite=sqlite)
    if sqlite:
        for view in (CELLS, RUNS, FORMER_RUNS):
            op.execute(view)


def resolved(spec: str) -> str:
    """The cell with the neutral value of each field that its text leaves out."""

    def filled(there: dict[str, Any], neutral: dict[str, Any]) -> dict[str, Any]:
        whole = neutral | there
        for key, value in neutral.items():
            if isinstance(value, dict) and isinstance(there.get(key), dict):
                whole[key] = filled(there[key], value)
        return whole

    return json.dumps(filled(json.loads(spec), NEUTRAL), sort_keys=True)


def correct(connection: sa.Connection, *, sqlite: bool) -> None:
    """Runs that learned too little were once told as diverged."""
    ids = [row.id for row in connection.execute(sa.text(UNDERTRAINED))]
    if not ids:
        return
    if sqlite:
        op.execute("DROP TRIGGER run_final_state")
    their = [{"id": id} for id in ids]
    last = "UPDATE attempt SET outcome = 'completed' WHERE run_id = :id AND outcome = 'diverged'"
    connection.execute(sa.text(last), their)
    end = "UPDATE run SET state = 'completed', undertrained = error, error = NULL WHERE id = :id"
    connection.execute(sa.text(end), their)
    if sqlite:
        op.execute(TRIGGER)
