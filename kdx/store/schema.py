"""The tables of the results database, with the meaning and unit of every column.

They are meant to be queried. A sweep plans cells and seeds (`sweep_cell`, `sweep_run`); a run is a cell with a seed in
a generation and belongs to every sweep that plans it, so `run` and `sweep_run` meet on (cell_id, seed). What a newer
plan of the same name leaves out keeps its rows, with `planned` false: nothing is deleted.

Numbers live twice, as `value` to query and as `bits` to trust, because SQLite turns NaN into NULL and −0.0 into 0.0.
Times are seconds since 1970 by the clock of the database. The database itself (a trigger, see the first migration)
refuses to take a run out of a final state.

Migrations build these tables; a test holds the two equal. `VIEWS` are made of them for analysis, and their columns keep
name and meaning from version to version, whatever becomes of the tables; there may be more of them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from kdx.store.records import RunState

FINAL_STATE_TRIGGER = "run_final_state"
"""Refuses to take a run out of a final state."""


class now(FunctionElement[float]):
    """Seconds since 1970 by the clock of the database, so that two hosts never compare their own clocks."""

    type = Double()
    inherit_cache = True


@compiles(now, "sqlite")
def _now_sqlite(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_postgresql(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())"


_BITS, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")


def bits_of(value: float) -> int:
    """The IEEE 754 double as a signed 64-bit integer."""
    return int(_BITS.unpack(_DOUBLE.pack(value))[0])


def value_of(bits: int) -> float:
    """The double that has these bits."""
    return float(_DOUBLE.unpack(_BITS.pack(bits))[0])


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s",
        "uq": "%(table_name)s_unique",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)

sweep = Table(
    "sweep",
    metadata,
    Column("id", Integer, primary_key=True, comment="key"),
    Column("name", Text, nullable=False, comment="name that the grid gives itself"),
    Column("created", Double, nullable=False, comment="when the name was first planned, seconds since 1970"),
    Column("updated", Double, nullable=False, comment="when it was last planned, seconds since 1970"),
    Column("grid", JSON, nullable=False, comment="parts of the grid that concern no single cell, such as tables"),
    UniqueConstraint("name"),
    comment="a named plan",
)

cell = Table(
    "cell",
    metadata,
    Column("id", String(32), primary_key=True, comment="hash of the resolved cell, 32 hexadecimal digits"),
    Column(
        "spec",
        Text,
        nullable=False,
        comment="the text that was hashed: the cell as canonical JSON, without the fields that are at the value under "
        "which kdx does what it did before they existed",
    ),
    Column("resolved", Text, comment="the resolved cell as JSON, every field of it"),
    comment="one choice on each axis and all else that a run needs, except its seed",
)

sweep_cell = Table(
    "sweep_cell",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    Column("cell_id", ForeignKey("cell.id"), primary_key=True, comment="a cell of its plan"),
    Column("ordinal", Integer, primary_key=True, comment="place of this choice in the plan, from 0"),
    Column("labels", JSON, nullable=False, comment="axis → the choice as this grid words it"),
    Column("planned", Boolean, nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="choices that a sweep plans; two choices may come to the same cell",
)

sweep_run = Table(
    "sweep_run",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    Column("cell_id", ForeignKey("cell.id"), primary_key=True, comment="cell of the run"),
    Column("seed", BigInteger, primary_key=True, comment="seed of the run"),
    Column("planned", Boolean, nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="runs of a sweep, in whatever generation; joins run on (cell_id, seed)",
)

environment = Table(
    "environment",
    metadata,
    Column("id", String(32), primary_key=True, comment="hash of the JSON, 32 hexadecimal digits"),
    Column("environment", JSON, nullable=False, comment="library versions, processor, threads and the like"),
    comment="where a run was computed, as far as it can change its bits",
)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True, comment="key"),
    Column("cell_id", ForeignKey("cell.id"), nullable=False, comment="the cell"),
    Column("seed", BigInteger, nullable=False, comment="the seed"),
    Column("generation", Integer, nullable=False, comment="0; each deliberate repetition of a finished run adds one"),
    Column("state", String(16), nullable=False, comment=f"one of {', '.join(RunState)}; the last three are final"),
    Column("owner", Text, comment="process that claimed it last"),
    Column("attempt", Integer, nullable=False, comment="number of the last claim, from 1; 0: never claimed"),
    Column("lease_until", Double, comment="when the claim lapses, seconds since 1970"),
    Column("progress_step", Integer, nullable=False, comment="highest optimiser step recorded"),
    Column("stalls", Integer, nullable=False, comment="attempts in a row that died without coming further"),
    Column("valid_score", Double, comment="best value of the cell's selection metric"),
    Column("valid_bits", BigInteger, comment="valid_score as the bits of a double; NULL: no score"),
    Column("valid_step", Integer, comment="optimiser step of valid_score"),
    Column("test_score", Double, comment="the same metric on the test split, with the weights of valid_step"),
    Column("test_bits", BigInteger, comment="test_score as the bits of a double; NULL: no score"),
    Column("error", Text, comment="one line: why it failed or diverged"),
    Column(
        "undertrained",
        Text,
        comment="of a completed run, one line: its final validation loss is not below the unigram distribution's; "
        "NULL: it is",
    ),
    Column("definitions", JSON(none_as_null=True), comment="metric → its definition or signature"),
    Column("data_fingerprint", Text, comment="hash of the prepared data"),
    Column(
        "data_facts",
        JSON(none_as_null=True),
        comment="what the prepared data and the evaluation were, such as test/unknown_rate; NULL: an older kdx ran it",
    ),
    Column("code_fingerprint", Text, comment="hash of the code that decides what a run computes"),
    Column("environment_id", ForeignKey("environment.id"), comment="where the last attempt was computed"),
    UniqueConstraint("cell_id", "seed", "generation"),
    CheckConstraint(f"state IN ({', '.join(repr(str(state)) for state in RunState)})", name="state"),
    comment="one row a run for ever; tries at it are attempts",
)

attempt = Table(
    "attempt",
    metadata,
    Column("run_id", ForeignKey("run.id"), primary_key=True, comment="the run"),
    Column("number", Integer, primary_key=True, comment="from 1"),
    Column("owner", Text, nullable=False, comment="process that claimed the run"),
    Column("started", Double, nullable=False, comment="when it claimed the run, seconds since 1970"),
    Column("ended", Double, comment="when it ended, or when its lease did; seconds since 1970; NULL: not yet"),
    Column("outcome", String(16), comment="state that it left the run in, or lost: its process died without a word"),
    Column("first_step", Integer, nullable=False, comment="highest optimiser step recorded before it"),
    Column("last_step", Integer, comment="optimiser step that it reached"),
    Column("traceback", Text, comment="of the exception that ended it"),
    Column("environment_id", ForeignKey("environment.id"), comment="where it was computed"),
    Column("resumed_step", Integer, comment="step of the checkpoint that it went on from; 0: it began anew"),
    Column(
        "changes",
        Text,
        comment="what was other than under the checkpoint, such as torch 2.12 → 2.13; a run that went on so is not "
        "bit-exact",
    ),
    comment="one try at a run",
)

metric = Table(
    "metric",
    metadata,
    Column("run_id", ForeignKey("run.id"), comment="the run"),
    # Bytewise order on every database, so that a prefix is a range of the key.
    Column("name", Text().with_variant(Text(collation="C"), "postgresql"), comment="split/metric, such as valid/bleu"),
    Column("step", Integer, comment="optimiser step, from 0"),
    Column("value", Double, comment="the number; on SQLite NULL when it is not one"),
    Column("bits", BigInteger, nullable=False, comment="the number as the bits of a double"),
    Column("writes", Integer, nullable=False, comment="times recorded; above 1 after a resumed run replayed the step"),
    Column("differs", Integer, nullable=False, comment="times that a replay gave other bits than stood here"),
    PrimaryKeyConstraint("run_id", "name", "step"),
    comment="every number that a run recorded",
    sqlite_with_rowid=False,
)

output = Table(
    "output",
    metadata,
    Column("run_id", ForeignKey("run.id"), primary_key=True, comment="the run"),
    Column("name", Text, primary_key=True, comment="split/kind, such as test/translations"),
    Column("lines", LargeBinary, nullable=False, comment="JSON list of texts in the order of the corpus, zlib"),
    Column("count", Integer, nullable=False, comment="texts"),
    Column("sha256", String(64), nullable=False, comment="of the JSON before compression, hexadecimal"),
    comment="texts that a run produced",
)


@dataclass(frozen=True)
class View:
    """A query that the database keeps under a name; the migrations have its text."""

    name: str
    comment: str
    columns: Mapping[str, str]
    """Column → its meaning and unit."""


_LABELS = (
    "axis → what the resolved cell has, or, of an axis that is no field of it, the choice as the grid words it; JSON"
)

_FACTORS = {
    "task": "such as translation",
    "kernel": "such as exponential",
    "symmetry": "asymmetric or symmetric",
    "position": "position schemes joined by +, or none",
    "encoding": "such as sinusoidal; NULL: no scheme uses one",
    "placement": "attentions that have positions, joined by /, or none",
    "value_function": "such as without-position",
    "norm": "post or pre",
    "mixer": "attention, or what stands in its place",
    "clip": "distance from which on all share a vector, or none; NULL: the cell has no table of distances",
    "temperature": "what the logarithm of the weight is divided by",
    "memory": "tokens of the segment before that stay visible in training",
    "corpus": "such as synthetic-language",
    "train_lines": "lines of training text; NULL: all",
    "vocabulary": "what a token is: word, bpe or subword-nmt",
    "width": "features per token",
    "heads": "of each attention",
    "inner_width": "of the feed-forward layer",
    "encoder_layers": "layers; 0: the task has no encoder",
    "decoder_layers": "layers; 0: the task has no decoder",
    "dropout": "on embeddings and on the output of every sublayer",
    "steps": "optimiser steps asked for",
    "batch_tokens": "target tokens in a batch at most",
    "length": "tokens of a stream in one batch of training; NULL: not prediction",
    "learning_rate": "at its peak",
    "warmup": "optimiser steps",
    "evaluation_length": "tokens of a stream in one batch of an evaluation, as asked for; NULL: not prediction",
}

_RUNS = {
    "run_id": "the run",
    "cell_id": "its cell",
    "labels": _LABELS,
    **_FACTORS,
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
            **_FACTORS,
            "metric": "that seeds are selected by, such as valid/bleu",
            "direction": "its good end, max or min",
            "spec": "the resolved cell, every field of it, JSON; read one by json_extract(spec, '$.training.schedule')",
        },
    ),
    View(
        "runs",
        "one row a sweep and planned run: of each seed the newest final generation, or else the newest, as in a report",
        {"sweep": "name of the sweep; a run belongs to every sweep that plans it", **_RUNS},
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
    ),
    View(
        "former_runs",
        "the runs that a sweep planned once and its newest plan leaves out, as in runs; nothing is deleted",
        {
            "sweep": "name of the sweep",
            **_RUNS,
            "selected": "1 where it has the best valid_score of its cell's completed runs that are left out, else 0",
        },
    ),
)
"""Made by the migrations on SQLite."""
