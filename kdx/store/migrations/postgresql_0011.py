"""What a database of PostgreSQL has beside its tables as of revision 0011, the first that kdx makes there.

Until then migrations make conditions of columns, the trigger and the views on SQLite alone. Words, limits and columns
are those of that revision; `kdx.store.schema` says what they mean.
"""

import sqlalchemy as sa

FINAL = ("completed", "diverged", "pruned")
STATES = ("pending", "running", "interrupted", "failed", "cancelled", *FINAL)

STEP = "{0} >= 0"
COUNT = "{0} >= 0 AND {0} <= 1000000000"
TIME = "{0} >= 0 AND {0} <= 253402300799"
ANY = "true"
NAME = "length({0}) <= 1000"
LINE = "length({0}) <= 10000"
TEXT = "length({0}) <= 10000000"
JSON = "length({0}::text) <= 10000000 AND json_typeof({0}) = 'object'"
PACKED = "octet_length({0}) <= 268435456"
CELL = "{0} ~ '^[0-9a-f]{{32}}$'"
SHA256 = "{0} ~ '^[0-9a-f]{{64}}$'"


def null(condition: str) -> str:
    return f"{{0}} IS NULL OR ({condition})"


CHECKS: dict[str, dict[str, str]] = {
    "identity": {"id": CELL, "place": null(SHA256)},
    "sweep": {"id": STEP, "name": NAME, "created": TIME, "updated": TIME, "grid": JSON},
    "cell": {"id": CELL, "spec": TEXT, "resolved": null(TEXT)},
    "sweep_cell": {"sweep_id": STEP, "cell_id": CELL, "ordinal": COUNT, "labels": JSON, "planned": ANY},
    "sweep_run": {"sweep_id": STEP, "cell_id": CELL, "seed": STEP, "planned": ANY},
    "environment": {"id": CELL, "environment": JSON},
    "run": {
        "id": STEP,
        "cell_id": CELL,
        "seed": STEP,
        "generation": COUNT,
        # The first migration makes that of `state`.
        "owner": null(NAME),
        "attempt": COUNT,
        "lease_until": null(TIME),
        "progress_step": STEP,
        "checkpoint_step": null(STEP),
        "stalls": COUNT,
        "valid_score": null(ANY),
        "valid_bits": null(ANY),
        "valid_step": null(STEP),
        "test_score": null(ANY),
        "test_bits": null(ANY),
        "weights_sha256": null(SHA256),
        "error": null(LINE),
        "undertrained": null(LINE),
        "definitions": null(JSON),
        "data_fingerprint": null(NAME),
        "data_facts": null(JSON),
        "code_fingerprint": null(NAME),
        "environment_id": null(CELL),
    },
    "attempt": {
        "run_id": STEP,
        "number": STEP,
        "owner": NAME,
        "started": TIME,
        "ended": null(TIME),
        "outcome": null(f"{{0}} IN {(*STATES, 'lost')}"),
        "first_step": STEP,
        "last_step": null(STEP),
        "traceback": null(TEXT),
        "environment_id": null(CELL),
        "resumed_step": null(STEP),
        "changes": null(TEXT),
        "peak_memory": null(STEP),
    },
    "metric": {
        "run_id": STEP,
        "name": NAME,
        "step": STEP,
        "value": null(ANY),
        "bits": ANY,
        "writes": COUNT,
        "differs": COUNT,
    },
    "output": {"run_id": STEP, "name": NAME, "lines": PACKED, "count": COUNT, "sha256": SHA256},
    "evaluation": {
        "id": STEP,
        "run_id": STEP,
        "settings_id": CELL,
        "settings": JSON,
        "made": TIME,
        "weights_sha256": null(SHA256),
        "data_fingerprint": null(NAME),
        "code_fingerprint": null(NAME),
        "environment_id": null(CELL),
        "longest_context": null(COUNT),
        "definitions": null(JSON),
        "error": null(LINE),
    },
    "evaluation_metric": {"evaluation_id": STEP, "name": NAME, "value": null(ANY), "bits": ANY},
    "test_document": {"run_id": STEP, "unit": NAME, "sums": JSON},
    "evaluation_document": {"evaluation_id": STEP, "unit": NAME, "sums": JSON},
    "part": {"sha256": SHA256, "sources": JSON, "package": NAME, "created": TIME},
    "plan": {"id": STEP, "sweep_id": STEP, "made": TIME, "grid": JSON, "sources": JSON},
    "plan_cell": {"plan_id": STEP, "cell_id": CELL},
    "invalidation": {"id": STEP, "run_id": STEP, "made": TIME, "why": LINE, "withdrawn": null(TIME)},
    "cell_migration": {
        "id": STEP,
        "made": TIME,
        "former_id": CELL,
        "cell_id": CELL,
        "former_spec": TEXT,
        "change": LINE,
    },
    "search": {"id": CELL, "made": TIME, "search": JSON},
    "sweep_search": {"sweep_id": STEP, "ordinal": COUNT, "search_id": CELL, "labels": JSON, "trials": COUNT},
    "trial": {
        "search_id": CELL,
        "number": COUNT,
        "parameters": JSON,
        "attributes": JSON,
        "cell_id": null(CELL),
        "state": null("{0} IN ('completed', 'pruned', 'failed')"),
        "value": null(ANY),
        "bits": null(ANY),
    },
    "note": {"id": STEP, "made": TIME, "sweep_id": null(STEP), "run_id": null(STEP), "text": TEXT},
    "tag": {"id": STEP, "made": TIME, "sweep_id": null(STEP), "run_id": null(STEP), "word": NAME},
}

TRIGGER = f"""
CREATE FUNCTION run_final_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a run never leaves a final state' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER run_final_state BEFORE UPDATE OF state ON run FOR EACH ROW
WHEN (OLD.state IN {FINAL} AND NEW.state <> OLD.state) EXECUTE FUNCTION run_final_state()
"""


def joined(path: str, separator: str) -> str:
    """The words of a list, joined; a single word as it is."""
    return f"""coalesce(CASE json_typeof({path})
        WHEN 'array' THEN (
            SELECT string_agg(word, '{separator}' ORDER BY place)
            FROM json_array_elements_text({path}) WITH ORDINALITY AS listed (word, place)
        )
        ELSE {path} #>> '{{}}'
    END, 'none')"""


def number(path: str, kind: str = "bigint") -> str:
    """The number there; NULL for anything else, since a cell may be of another kdx."""
    return f"CASE json_typeof({path}) WHEN 'number' THEN ({path} #>> '{{}}')::numeric::{kind} END"


def real(path: str) -> str:
    return number(path, "double precision")


def word(path: str) -> str:
    return f"{path} #>> '{{}}'"


def of(*steps: str) -> str:
    """The JSON at a path of the resolved cell."""
    return f"(whole #> '{{{','.join(steps)}}}')"


FACTORS = f"""
    SELECT
        id AS cell_id,
        resolved,
        whole,
        {word(of("task"))} AS task,
        {word(of("kernel"))} AS kernel,
        {word(of("symmetry"))} AS symmetry,
        {joined(of("position"), "+")} AS position,
        {word(of("encoding"))} AS encoding,
        {joined(of("placement"), "/")} AS placement,
        {word(of("value"))} AS value_function,
        {word(of("norm"))} AS norm,
        {word(of("mixer"))} AS mixer,
        {word(of("clip"))} AS clip,
        {real(of("temperature"))} AS temperature,
        {number(of("memory"))} AS memory,
        {word(of("data", "corpus"))} AS corpus,
        {number(of("data", "train_lines"))} AS train_lines,
        {word(of("data", "vocabulary"))} AS vocabulary,
        {number(of("model", "width"))} AS width,
        {number(of("model", "heads"))} AS heads,
        {number(of("model", "inner"))} AS inner_width,
        {number(of("model", "encoder_layers"))} AS encoder_layers,
        {number(of("model", "decoder_layers"))} AS decoder_layers,
        {real(of("model", "dropout"))} AS dropout,
        {number(of("training", "steps"))} AS steps,
        {number(of("training", "batch_tokens"))} AS batch_tokens,
        {number(of("training", "length"))} AS length,
        {real(of("training", "learning_rate"))} AS learning_rate,
        {number(of("training", "warmup"))} AS warmup,
        coalesce({number(of("evaluation", "length"))}, {number(of("training", "length"))}) AS evaluation_length,
        {word(of("select", "metric"))} AS metric,
        {word(of("select", "direction"))} AS direction
    FROM (SELECT id, resolved, resolved::json AS whole FROM cell) AS read
"""
SETTINGS = """
    task, kernel, symmetry, position, encoding, placement, value_function, norm, mixer, clip, temperature, memory,
    corpus, train_lines, vocabulary, width, heads, inner_width, encoder_layers, decoder_layers, dropout,
    steps, batch_tokens, length, learning_rate, warmup, evaluation_length
"""

# As on SQLite: an axis that is a field of the cell has what the cell has, any other the grid's word.
LABELS = """(
    SELECT ('{' || coalesce(string_agg(to_json(axis)::text || ':' || CASE json_typeof(found)
        WHEN 'array' THEN to_json(coalesce((
            SELECT string_agg(word, CASE axis WHEN 'position' THEN '+' ELSE '/' END ORDER BY place)
            FROM json_array_elements_text(found) WITH ORDINALITY AS listed (word, place)
        ), 'none'))::text
        WHEN 'object' THEN to_json(chosen)::text
        ELSE coalesce(found::text, to_json(chosen)::text)
    END, ',' ORDER BY ordinal_of_axis), '') || '}')::json
    FROM (
        SELECT axis, chosen, ordinal_of_axis, whole #> string_to_array(replace(axis, '"', ''), '.') AS found
        FROM json_each_text(sweep_cell.labels) WITH ORDINALITY AS each (axis, chosen, ordinal_of_axis)
    ) AS axes
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

CURVES = "CREATE VIEW curves AS SELECT run_id, name, step, nullif(value, 'NaN') AS value FROM metric"

EVALUATIONS = f"""
CREATE VIEW evaluations AS
SELECT
    run_id,
    settings,
    settings ->> 'split' AS split,
    settings ->> 'corpus' AS corpus,
    {number("(settings -> 'length')")} AS length,
    {number("(settings -> 'memory')")} AS memory,
    {number("(settings -> 'streams')")} AS streams,
    {number("(settings -> 'beam')")} AS beam,
    longest_context,
    made,
    name,
    nullif(value, 'NaN') AS value,
    error
FROM evaluation LEFT JOIN evaluation_metric ON evaluation_id = evaluation.id
"""


def runs(name: str, planned: str) -> str:
    """The view of the runs that a sweep plans, or of those that it has left."""
    return f"""
CREATE VIEW {name} AS
WITH
factors AS MATERIALIZED ({FACTORS}),
known AS (
    -- NaN is no score; on SQLite it is NULL.
    SELECT
        id, cell_id, seed, generation, state, nullif(valid_score, 'NaN') AS valid_score, valid_step,
        nullif(test_score, 'NaN') AS test_score, error, undertrained, data_facts,
        (
            SELECT why FROM invalidation WHERE run_id = run.id AND withdrawn IS NULL ORDER BY id DESC LIMIT 1
        ) AS invalidated
    FROM run
),
standing AS (
    SELECT known.*, row_number() OVER (
        PARTITION BY cell_id, seed
        ORDER BY (invalidated IS NULL AND state IN {FINAL}) DESC, (invalidated IS NULL) DESC, generation DESC
    ) AS place
    FROM known
),
marked AS (
    SELECT sweep_id, standing.*, row_number() OVER (
        PARTITION BY sweep_id, cell_id
        ORDER BY
            (state = 'completed' AND valid_score IS NOT NULL AND invalidated IS NULL) DESC,
            CASE direction WHEN 'max' THEN -valid_score ELSE valid_score END,
            seed
    ) AS rank
    FROM sweep_run
    JOIN standing USING (cell_id, seed)
    JOIN factors USING (cell_id)
    WHERE place = 1 AND {planned}
),
choice AS MATERIALIZED (
    -- What is planned comes before what is not.
    SELECT DISTINCT ON (sweep_id, cell_id) sweep_id, cell_id, {LABELS} AS labels
    FROM sweep_cell JOIN factors USING (cell_id)
    ORDER BY sweep_id, cell_id, planned DESC, ordinal
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
    state = 'completed' AND valid_score IS NOT NULL AND invalidated IS NULL AND rank = 1 AS selected,
    metric,
    valid_score,
    valid_step,
    test_score,
    (
        SELECT CASE WHEN abs(value) < 1e18 THEN value::bigint END FROM metric AS recorded
        WHERE recorded.run_id = marked.id AND recorded.name = 'model/parameters' AND recorded.step = 0
    ) AS parameters,
    (SELECT sum(ended - started) FROM attempt WHERE attempt.run_id = marked.id) AS seconds,
    error,
    undertrained,
    {number("(data_facts -> 'vocabulary_size')")} AS vocabulary_size,
    {real("(data_facts -> 'test/unknown_rate')")} AS unknown_rate,
    {number("(data_facts -> 'test/longest_context')")} AS longest_context,
    invalidated
FROM marked
JOIN sweep ON sweep.id = sweep_id
JOIN choice USING (sweep_id, cell_id)
JOIN factors USING (cell_id)
"""


VIEWS = {
    "cells": CELLS,
    "curves": CURVES,
    "evaluations": EVALUATIONS,
    "runs": runs("runs", "planned"),
    "former_runs": runs("former_runs", "NOT planned"),
}


def complete(connection: sa.Connection) -> None:
    """Makes all of it; the tables are empty."""
    for table, columns in CHECKS.items():
        checks = ", ".join(
            f"ADD CONSTRAINT {table}_{name} CHECK ({text.format(name)})" for name, text in columns.items()
        )
        connection.exec_driver_sql(f"ALTER TABLE {table} {checks}")
    connection.exec_driver_sql(TRIGGER)
    for view in VIEWS.values():
        connection.exec_driver_sql(view)
