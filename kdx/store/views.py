"""The views for analysis: the meaning of each column, and their SQL, written once for every kind of database.

Their columns keep name and meaning from version to version even if the tables change, and more may be added. A backend
gives the few expressions in which databases differ, see `Dialect`. No SQLAlchemy, since `kdx query` needs the text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from kdx.store.records import ENDED, FINAL, RemarkKind, RunState

FINAL_STATE_TRIGGER = "run_final_state"
"""Name of the trigger that keeps runs in their final state."""

FINAL_STATES = f"({', '.join(repr(state.value) for state in RunState if state in FINAL)})"
"""SQL of the states that a run never leaves."""


_INVALIDATED = f"kind = '{RemarkKind.INVALIDATION.value}'"


class Dialect(Protocol):
    """What views say in other words on each kind of database. A path is dotted, such as `training.steps`."""

    join: str
    """A join that keeps the order in which tables are written, where the order is not chosen well."""

    def parsed(self, column: str) -> str:
        """A text column with JSON, as the other methods read it."""

    def word(self, column: str, path: str) -> str:
        """The text at a path."""

    def whole(self, column: str, path: str) -> str:
        """The whole number at a path."""

    def real(self, column: str, path: str) -> str:
        """The number at a path."""

    def joined(self, column: str, path: str, separator: str) -> str:
        """The list at a path with this between its words; `none` if it is empty or missing."""


@dataclass(frozen=True)
class View:
    """A named query in the database."""

    name: str
    comment: str
    columns: Mapping[str, str]
    """Column → its meaning and unit."""
    select: Callable[[Dialect], str]
    fields: Mapping[str, str] = field(default_factory=dict)
    """Column with JSON → one of its fields, for an example of how to read it."""

    def statement(self, dialect: Dialect) -> str:
        """Return the statement that creates it."""
        return f"CREATE VIEW {self.name} AS\n{self.select(dialect).strip()}"


class _Factor(NamedTuple):
    """A column of a view that is a field of the resolved cell."""

    name: str
    kind: str
    """What it is: word, whole or real; the method of `Dialect` of that name reads it."""
    path: str
    comment: str
    separator: str = ""
    """What stands between the words of a list; empty if it is no list."""
    otherwise: str = ""
    """Path of the number that stands for one that is missing."""

    def read(self, dialect: Dialect) -> str:
        """Return SQL that reads it of the column `whole`."""
        if self.separator:
            return dialect.joined("whole", self.path, self.separator)
        value: str = getattr(dialect, self.kind)("whole", self.path)
        return f"coalesce({value}, {dialect.whole('whole', self.otherwise)})" if self.otherwise else value


_FACTORS = (
    _Factor("task", "word", "task", "such as translation"),
    _Factor("kernel", "word", "kernel", "such as exponential"),
    _Factor("symmetry", "word", "symmetry", "asymmetric or symmetric"),
    _Factor("position", "word", "position", "position schemes joined by +, or none", separator="+"),
    _Factor("encoding", "word", "encoding", "such as sinusoidal; NULL: no scheme uses one"),
    _Factor("placement", "word", "placement", "attentions that have positions, joined by /, or none", separator="/"),
    _Factor("value_function", "word", "value", "such as without-position"),
    _Factor("norm", "word", "norm", "post or pre"),
    _Factor("mixer", "word", "mixer", "attention, or what stands in its place"),
    _Factor(
        "clip",
        "word",
        "clip",
        "distance from which on all share a vector, or none; NULL: the cell has no table of distances",
    ),
    _Factor(
        "temperature",
        "word",
        "temperature",
        "what the logarithm of the weight is divided by, or learned; NULL: the kernel has no temperature",
    ),
    _Factor("memory", "whole", "memory", "tokens of the segment before that stay visible in training"),
    _Factor("corpus", "word", "data.corpus", "such as synthetic-language"),
    _Factor("train_lines", "whole", "data.train_lines", "lines of training text; NULL: all"),
    _Factor("vocabulary", "word", "data.vocabulary", "what a token is: word, bpe or subword-nmt"),
    _Factor("width", "whole", "model.width", "features per token"),
    _Factor("heads", "whole", "model.heads", "of each attention"),
    _Factor("inner_width", "whole", "model.inner", "of the feed-forward layer"),
    _Factor("encoder_layers", "whole", "model.encoder_layers", "layers; 0: the task has no encoder"),
    _Factor("decoder_layers", "whole", "model.decoder_layers", "layers; 0: the task has no decoder"),
    _Factor("dropout", "real", "model.dropout", "on embeddings and on the output of every sublayer"),
    _Factor("steps", "whole", "training.steps", "planned optimiser steps"),
    _Factor("batch_tokens", "whole", "training.batch_tokens", "largest number of target tokens in a batch"),
    _Factor("length", "whole", "training.length", "tokens of a stream in one batch of training; NULL: not prediction"),
    _Factor("learning_rate", "real", "training.learning_rate", "at its peak"),
    _Factor("warmup", "whole", "training.warmup", "optimiser steps"),
    _Factor(
        "evaluation_length",
        "whole",
        "evaluation.length",
        "planned tokens of a stream in one batch of an evaluation; NULL: not prediction",
        otherwise="training.length",
    ),
)
_FACTOR_NAMES = ", ".join(factor.name for factor in _FACTORS)
_FACTOR_COMMENTS = {factor.name: factor.comment for factor in _FACTORS}

_WHOLE = (
    "ordinal run_id seed generation valid_step step parameters vocabulary_size longest_context streams beam cells runs "
    "completed unfinished"
)
_REAL = "valid_score test_score seconds unknown_rate value created planned made"
TYPES: Mapping[str, type] = {
    **{factor.name: {"word": str, "whole": int, "real": float}[factor.kind] for factor in _FACTORS},
    **dict.fromkeys(_WHOLE.split(), int),
    **dict.fromkeys(_REAL.split(), float),
    "selected": bool,
}
"""Column of the views → its type, the same in all of them; one that is not here is text."""


def _factors(dialect: Dialect) -> str:
    # Materialised: JSON is read once a cell, not once a run, since that takes most of the time.
    columns = (
        *_FACTORS,
        _Factor("metric", "word", "select.metric", ""),
        _Factor("direction", "word", "select.direction", ""),
    )
    read = ",\n        ".join(f"{column.read(dialect)} AS {column.name}" for column in columns)
    return f"""factors AS MATERIALIZED (
    SELECT
        id AS cell_id,
        whole,
        {read}
    FROM (SELECT id, {dialect.parsed("spec")} AS whole FROM cell) AS resolved
)"""


def _cells(dialect: Dialect) -> str:
    return f"""
WITH {_factors(dialect)}
SELECT
    sweep.name AS sweep,
    factors.cell_id,
    sweep_cell.ordinal,
    sweep_cell.labels,
    {_FACTOR_NAMES},
    metric,
    direction,
    CAST(whole AS text) AS spec
FROM sweep
JOIN sweep_cell ON sweep_cell.sweep_id = sweep.id AND sweep_cell.planned
JOIN factors ON factors.cell_id = sweep_cell.cell_id
"""


def _runs(dialect: Dialect, planned: str) -> str:
    # A score that is not a number is NULL on SQLite by itself. Ranks come before all the columns of a cell are there,
    # since what is sorted is copied.
    return f"""
WITH
{_factors(dialect)},
known AS (
    SELECT
        id, cell_id, seed, generation, state, nullif(valid_score, 'NaN') AS valid_score, valid_step,
        nullif(test_score, 'NaN') AS test_score, error, undertrained,
        (
            SELECT text FROM remark WHERE run_id = run.id AND {_INVALIDATED} ORDER BY id DESC LIMIT 1
        ) AS invalidated
    FROM run
    WHERE search_id IS NULL
),
standing AS (
    SELECT known.*, row_number() OVER (
        PARTITION BY cell_id, seed
        ORDER BY
            (invalidated IS NULL AND state IN {FINAL_STATES}) DESC,
            (invalidated IS NULL) DESC,
            generation DESC
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
    {dialect.join} standing USING (cell_id, seed)
    {dialect.join} factors USING (cell_id)
    WHERE place = 1 AND {planned}
),
choice AS MATERIALIZED (
    SELECT sweep_id, cell_id, labels
    FROM (
        SELECT sweep_cell.*, row_number() OVER (
            PARTITION BY sweep_id, cell_id ORDER BY planned DESC, ordinal
        ) AS place
        FROM sweep_cell
    ) AS sweep_cell
    WHERE place = 1
)
SELECT
    sweep.name AS sweep,
    marked.id AS run_id,
    cell_id,
    choice.labels,
    {_FACTOR_NAMES},
    seed,
    generation,
    state,
    state = 'completed' AND valid_score IS NOT NULL AND invalidated IS NULL AND rank = 1 AS selected,
    metric,
    valid_score,
    valid_step,
    test_score,
    (
        SELECT CASE WHEN abs(value) < 1e18 THEN CAST(value AS bigint) END FROM metric AS recorded
        WHERE recorded.run_id = marked.id AND recorded.name = 'model/parameters' AND recorded.step = 0
    ) AS parameters,
    (SELECT sum(ended - started) FROM attempt WHERE attempt.run_id = marked.id) AS seconds,
    error,
    undertrained,
    (SELECT {dialect.whole("data_facts", "vocabulary_size")} FROM run WHERE id = marked.id) AS vocabulary_size,
    (SELECT {dialect.real("data_facts", "test/unknown_rate")} FROM run WHERE id = marked.id) AS unknown_rate,
    (SELECT {dialect.whole("data_facts", "test/longest_context")} FROM run WHERE id = marked.id) AS longest_context,
    invalidated
FROM marked
{dialect.join} sweep ON sweep.id = sweep_id
{dialect.join} choice USING (sweep_id, cell_id)
{dialect.join} factors USING (cell_id)
"""


def _sweeps(dialect: Dialect) -> str:
    # The statement of the view `runs`, not the view: one that another needs could not be made anew by itself.
    unfinished = ", ".join(repr(state.value) for state in RunState if state not in ENDED)
    return f"""
SELECT
    sweep.name AS sweep,
    sweep.created,
    sweep.updated AS planned,
    count(DISTINCT planned_run.cell_id) AS cells,
    count(planned_run.cell_id) AS runs,
    coalesce(sum(CASE WHEN state = 'completed' THEN 1 ELSE 0 END), 0) AS completed,
    coalesce(sum(CASE WHEN state IN ({unfinished}) THEN 1 ELSE 0 END), 0) AS unfinished
FROM sweep
LEFT JOIN ({_runs(dialect, planned="planned").strip()}) AS planned_run ON planned_run.sweep = sweep.name
GROUP BY sweep.id, sweep.name, sweep.created, sweep.updated
"""


def _curves(dialect: Dialect) -> str:
    return "SELECT run_id, name, step, nullif(value, 'NaN') AS value FROM metric"


def _evaluations(dialect: Dialect) -> str:
    return f"""
SELECT
    run_id,
    settings,
    {dialect.word("settings", "split")} AS split,
    {dialect.word("settings", "corpus")} AS corpus,
    {dialect.whole("settings", "length")} AS length,
    {dialect.whole("settings", "memory")} AS memory,
    {dialect.whole("settings", "streams")} AS streams,
    {dialect.whole("settings", "beam")} AS beam,
    longest_context,
    made,
    name,
    nullif(value, 'NaN') AS value,
    error
FROM evaluation LEFT JOIN evaluation_metric ON evaluation_id = evaluation.id
"""


_LABELS = "axis → the choice as the grid words it; JSON"

_RUNS = {
    "run_id": "the run",
    "cell_id": "its cell",
    "labels": _LABELS,
    **_FACTOR_COMMENTS,
    "seed": "its seed",
    "generation": "0; each deliberate repetition adds one",
    "state": "such as completed, diverged, failed; see run.state",
    "selected": "1 where it has the best valid_score of its cell's completed runs, else 0",
    "metric": "that seeds are selected by, such as valid/bleu",
    "valid_score": "best value of that metric; NULL: none, or not a number",
    "valid_step": "optimiser step of valid_score",
    "test_score": "the same metric on the test split, with those weights",
    "parameters": "numbers that training changes; NULL: not recorded",
    "seconds": "wall time of the attempts that ended, summed",
    "error": "one line: why it failed or diverged",
    "undertrained": "one line: its final loss is not below the unigram distribution's; NULL: it is, or it did not end",
    "vocabulary_size": "target tokens that there are; NULL: no text, or not recorded",
    "unknown_rate": "share of the test's target tokens that are unknown; NULL: no text, or not recorded",
    "longest_context": "tokens that the test's are predicted from at most; NULL: not prediction, or not recorded",
    "invalidated": "one line: why tables leave it out; NULL: they do not",
}

VIEWS = (
    View(
        "cells",
        "one row a sweep and choice of its plan",
        {
            "sweep": "name of the sweep",
            "cell_id": "the cell",
            "ordinal": "place of this choice in the plan, from 0",
            "labels": _LABELS,
            **_FACTOR_COMMENTS,
            "metric": "that seeds are selected by, such as valid/bleu",
            "direction": "its good end, max or min",
            "spec": "the resolved cell, every field of it, JSON",
        },
        _cells,
        {"spec": "training.schedule"},
    ),
    View(
        "runs",
        "one row a sweep and planned run: of each seed the newest final generation that is not excluded from reports, "
        "or else the newest, as in a report",
        {"sweep": "name of the sweep; a run belongs to every sweep that plans it", **_RUNS},
        partial(_runs, planned="planned"),
    ),
    View(
        "curves",
        "every number that a run recorded",
        {
            "run_id": "the run",
            "name": "split/metric, such as valid/bleu",
            "step": "optimiser step, from 0",
            "value": "the number; NULL when it is not one",
        },
        _curves,
    ),
    View(
        "evaluations",
        "every number of every further reading of a run",
        {
            "run_id": "the run",
            "settings": "every setting of the evaluation, JSON",
            "split": "valid or test",
            "corpus": "the text that was read",
            "length": "tokens of a stream in one batch; NULL: not prediction",
            "memory": "tokens before them that stay visible; NULL: not prediction",
            "streams": "read side by side; NULL: not prediction",
            "beam": "hypotheses kept at each word; NULL: not translation",
            "longest_context": "tokens that one is predicted from at most; NULL: not prediction",
            "made": "seconds since 1970",
            "name": "metric, such as bleu; NULL: it failed",
            "value": "the number; NULL when it is not one",
            "error": "one line: why it failed; NULL: it did not",
        },
        _evaluations,
        {"settings": "length"},
    ),
    View(
        "former_runs",
        "the runs that a sweep planned once and its newest plan leaves out, as in runs; nothing is deleted",
        {
            "sweep": "name of the sweep",
            **_RUNS,
            "selected": "1 where it has the best valid_score of its cell's completed runs that are left out, else 0",
        },
        partial(_runs, planned="NOT planned"),
    ),
    View(
        "sweeps",
        "one row a sweep",
        {
            "sweep": "its name",
            "created": "when it was first planned, seconds since 1970",
            "planned": "when it was last planned, seconds since 1970",
            "cells": "cells of its plan",
            "runs": "planned runs, each seed once",
            "completed": "those of them that are completed",
            "unfinished": "those that are pending, running or interrupted; what is left has ended otherwise",
        },
        _sweeps,
    ),
)
