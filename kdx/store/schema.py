"""The tables of the results database, with the meaning and unit of every column.

Users may query the tables. A sweep plans cells and seeds (`sweep_cell`, `sweep_run`); a run is a cell with a seed in a
generation and belongs to every sweep that plans it, so `run` and `sweep_run` are joined on (cell_id, seed). Cells and
runs that a newer plan of the same name leaves out keep their rows, with `planned` false: nothing is deleted.

Numbers are stored twice, as `value` for queries and as exact `bits`, because SQLite turns NaN into NULL and −0.0 into
0.0. Times are seconds since 1970 by the clock of the database. The database itself refuses to take a run out of a final
state.

A new database is made from these tables (`kdx.store.migrating`) and the views on them (`kdx.store.views`).
"""

import struct
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)
from sqlalchemy.sql.functions import FunctionElement

from kdx.store.columns import (
    LARGEST,
    Flag,
    Hash,
    Holds,
    Json,
    Number,
    OneWordOf,
    Packed,
    ShortText,
    Strict,
    Time,
    Whole,
)
from kdx.store.records import LOST, RunState, TrialState


class now(FunctionElement[float]):
    """Seconds since 1970 by the clock of the database, so that two hosts never compare their own clocks.

    It is the time of the call, since a transaction may have waited for a lock after its start.
    """

    type = Double()
    inherit_cache = True


_BITS, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")


def bits_of(value: float) -> int:
    """The IEEE 754 double as a signed 64-bit integer."""
    return int(_BITS.unpack(_DOUBLE.pack(value))[0])


def value_of(bits: int) -> float:
    """The double that has these bits."""
    return float(_DOUBLE.unpack(_BITS.pack(bits))[0])


NAME, LINE, TEXT = 1_000, 10_000, 10_000_000
"""Largest number of characters of a name, of a line, and of any other text."""

PACKED = 1 << 28
"""Largest size of the texts of a run in bytes, compressed."""


_NUMBERS = frozenset({"vocabulary_size", "unknown_rate", "longest_context"})
"""Facts on data that are numbers, for every split."""


def _is_grid(found: dict[str, Any]) -> bool:
    """Whether the parts that it has are of their kinds."""
    lists: dict[str, type] = {"tables": dict, "axes": str, "seeds": int, "evaluations": dict}
    listed = (isinstance(found.get(name, []), list) for name in lists)
    words = (isinstance(found.get(name, ""), str) for name in ("description", "command", "file"))
    return (
        all(listed)
        and all(words)
        and all(isinstance(one, kind) for name, kind in lists.items() for one in found.get(name, []))
        and all(isinstance(table.get("name", ""), str) for table in found.get("tables", []))
        and all(isinstance(one.get("settings"), dict) and "name" in one for one in found.get("evaluations", []))
    )


def _are_facts(found: dict[str, Any]) -> bool:
    def fits(name: str, value: object) -> bool:
        if name.rpartition("/")[2] in _NUMBERS:
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        return value is None or isinstance(value, str | int | float)

    return all(fits(name, value) for name, value in found.items())


def _are_sums(found: dict[str, Any]) -> bool:
    def are_numbers(value: object) -> bool:
        return isinstance(value, list) and all(type(one) in (int, float) for one in value)

    return (
        "targets" in found
        and all(are_numbers(value) for value in found.values())
        and len({len(value) for value in found.values()}) == 1
    )


def _are_words(found: dict[str, Any]) -> bool:
    return all(isinstance(value, str) for value in found.values())


def _key() -> Whole:
    return Whole(small=True)


def _count() -> Whole:
    return Whole(0, 1_000_000_000, small=True)


def _bits() -> Whole:
    return Whole(-LARGEST - 1)


def _object() -> Json:
    return Json(TEXT, lambda found: True, "a JSON object")


def _sums() -> Json:
    return Json(TEXT, _are_sums, "a JSON object of equally long lists of numbers, with the targets")


def _texts() -> Json:
    return Json(TEXT, _are_words, "a JSON object of texts")


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s",
        "uq": "%(table_name)s_unique",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)

identity = Table(
    "identity",
    metadata,
    Column("id", Hash(32), primary_key=True, comment="drawn at random when the database was made"),
    Column(
        "place",
        Hash(64),
        comment="hash of the machine and the path at which it last kept files of runs; NULL: it kept none",
    ),
    comment="one row that identifies this database; its copies have the same",
)

sweep = Table(
    "sweep",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("name", ShortText(NAME), nullable=False, comment="name that the grid gives itself"),
    Column("created", Time(), nullable=False, comment="when the name was first planned, seconds since 1970"),
    Column("updated", Time(), nullable=False, comment="when it was last planned, seconds since 1970"),
    Column(
        "grid",
        Json(TEXT, _is_grid, "the tables, axes and seeds of a grid as a JSON object"),
        nullable=False,
        comment="parts of the grid that concern no single cell, such as tables",
    ),
    UniqueConstraint("name"),
    comment="a named plan",
)

cell = Table(
    "cell",
    metadata,
    Column("id", Hash(32), primary_key=True, comment="hash of the resolved cell, 32 hexadecimal digits"),
    Column(
        "spec",
        ShortText(TEXT),
        nullable=False,
        comment="the resolved cell as JSON, every field of it",
    ),
    comment="one choice on each axis and all else that a run needs, except its seed",
)

sweep_cell = Table(
    "sweep_cell",
    metadata,
    Column("sweep_id", _key(), ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    Column("cell_id", Hash(32), ForeignKey("cell.id"), primary_key=True, comment="a cell of its plan"),
    Column("ordinal", _count(), primary_key=True, comment="place of this choice in the plan, from 0"),
    Column("labels", _texts(), nullable=False, comment="axis → the choice as this grid words it"),
    Column("planned", Flag(), nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="choices that a sweep plans; two choices may come to the same cell",
)

sweep_run = Table(
    "sweep_run",
    metadata,
    Column("sweep_id", _key(), ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    Column("cell_id", Hash(32), ForeignKey("cell.id"), primary_key=True, comment="cell of the run"),
    Column("seed", Whole(), primary_key=True, comment="seed of the run"),
    Column("planned", Flag(), nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="runs of a sweep, in whatever generation; joins run on (cell_id, seed)",
)

environment = Table(
    "environment",
    metadata,
    Column("id", Hash(32), primary_key=True, comment="hash of the JSON, 32 hexadecimal digits"),
    Column("environment", _object(), nullable=False, comment="library versions, processor, threads and the like"),
    comment="where a run was computed, as far as it can change its bits",
)

run = Table(
    "run",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("cell_id", Hash(32), ForeignKey("cell.id"), nullable=False, comment="the cell"),
    Column("seed", Whole(), nullable=False, comment="the seed"),
    Column("generation", _count(), nullable=False, comment="0; each deliberate repetition of a finished run adds one"),
    Column(
        "state", OneWordOf(RunState), nullable=False, comment=f"one of {', '.join(RunState)}; the last three are final"
    ),
    Column("owner", ShortText(NAME), comment="process that claimed it last"),
    Column("attempt", _count(), nullable=False, comment="number of the last claim, from 1; 0: never claimed"),
    Column("lease_until", Time(), comment="when the claim lapses, seconds since 1970"),
    Column("progress_step", Whole(small=True), nullable=False, comment="highest optimiser step recorded"),
    Column(
        "checkpoint_step",
        Whole(small=True),
        comment="optimiser step of the newest checkpoint to go on from; NULL: none was made",
    ),
    Column("stalls", _count(), nullable=False, comment="attempts in a row that died without coming further"),
    Column("valid_score", Number(), comment="best value of the cell's selection metric"),
    Column("valid_bits", _bits(), comment="valid_score as the bits of a double; NULL: no score"),
    Column("valid_step", Whole(small=True), comment="optimiser step of valid_score"),
    Column("test_score", Number(), comment="the same metric on the test split, with the weights of valid_step"),
    Column("test_bits", _bits(), comment="test_score as the bits of a double; NULL: no score"),
    Column(
        "weights_sha256",
        Hash(64),
        comment="of the file with the weights that were tested; NULL: none was written",
    ),
    Column("error", ShortText(LINE), comment="one line: why it failed or diverged"),
    Column(
        "undertrained",
        ShortText(LINE),
        comment="of a completed run, one line: its final validation loss is not below the unigram distribution's; "
        "NULL: it is",
    ),
    Column("definitions", _texts(), comment="metric → its definition or signature"),
    Column("data_fingerprint", ShortText(NAME), comment="hash of the prepared data"),
    Column(
        "data_facts",
        Json(TEXT, _are_facts, "a JSON object of numbers and texts"),
        comment="what the prepared data and the evaluation were, such as test/unknown_rate",
    ),
    Column("code_fingerprint", ShortText(NAME), comment="hash of the code that decides what a run computes"),
    Column("environment_id", Hash(32), ForeignKey("environment.id"), comment="where the last attempt was computed"),
    UniqueConstraint("cell_id", "seed", "generation"),
    comment="one row a run for ever; tries at it are attempts",
)

attempt = Table(
    "attempt",
    metadata,
    Column("run_id", _key(), ForeignKey("run.id"), primary_key=True, comment="the run"),
    Column("number", _key(), primary_key=True, comment="from 1"),
    Column("owner", ShortText(NAME), nullable=False, comment="process that claimed the run"),
    Column("started", Time(), nullable=False, comment="when it claimed the run, seconds since 1970"),
    Column("ended", Time(), comment="when it ended, or when its lease did; seconds since 1970; NULL: not yet"),
    Column(
        "outcome",
        OneWordOf(RunState, LOST),
        comment="state that it left the run in, or lost: its process died without a word",
    ),
    Column("first_step", Whole(small=True), nullable=False, comment="highest optimiser step recorded before it"),
    Column("last_step", Whole(small=True), comment="optimiser step that it reached"),
    Column("traceback", ShortText(TEXT), comment="of the exception that ended it"),
    Column("environment_id", Hash(32), ForeignKey("environment.id"), comment="where it was computed"),
    Column("resumed_step", Whole(small=True), comment="step of the checkpoint that it went on from; 0: it began anew"),
    Column(
        "changes",
        ShortText(TEXT),
        comment="what was other than under the checkpoint, such as torch 2.12 → 2.13; a run that went on so is not "
        "bit-exact",
    ),
    Column(
        "peak_memory",
        Whole(),
        comment="most memory that it held: of its GPU, or, without one, resident of its process; bytes; NULL: not "
        "recorded",
    ),
    comment="one try at a run",
)

metric = Table(
    "metric",
    metadata,
    Column("run_id", _key(), ForeignKey("run.id"), comment="the run"),
    Column("name", ShortText(NAME, bytewise=True), comment="split/metric, such as valid/bleu"),
    Column("step", Whole(small=True), comment="optimiser step, from 0"),
    Column("value", Number(), comment="the number; on SQLite NULL when it is not one"),
    Column("bits", _bits(), nullable=False, comment="the number as the bits of a double"),
    Column(
        "writes",
        _count(),
        nullable=False,
        comment="times recorded; above 1 after a resumed run replayed the step, or a write whose connection was lost",
    ),
    Column("differs", _count(), nullable=False, comment="times that a replay gave other bits than stood here"),
    PrimaryKeyConstraint("run_id", "name", "step"),
    comment="every number that a run recorded",
    sqlite_with_rowid=False,
)

output = Table(
    "output",
    metadata,
    Column("run_id", _key(), ForeignKey("run.id"), primary_key=True, comment="the run"),
    Column("name", ShortText(NAME), primary_key=True, comment="split/kind, such as test/translations"),
    Column("lines", Packed(PACKED), nullable=False, comment="JSON list of texts in the order of the corpus, zlib"),
    Column("count", _count(), nullable=False, comment="texts"),
    Column("sha256", Hash(64), nullable=False, comment="of the JSON before compression, hexadecimal"),
    comment="texts that a run produced",
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("run_id", _key(), ForeignKey("run.id"), nullable=False, comment="the run, which is completed"),
    Column(
        "settings_id",
        Hash(32),
        nullable=False,
        comment="hash of the settings that the run's own test has otherwise, 32 hexadecimal digits",
    ),
    Column("settings", _object(), nullable=False, comment="every setting, such as length, corpus and split; JSON"),
    Column("made", Time(), nullable=False, comment="when it was made, seconds since 1970"),
    Column("weights_sha256", Hash(64), comment="of the file with the weights that were read; NULL: it was not come to"),
    Column("data_fingerprint", ShortText(NAME), comment="hash of the prepared data that was read; NULL: it failed"),
    Column("code_fingerprint", ShortText(NAME), comment="hash of the code that decides what it computes"),
    Column("environment_id", Hash(32), ForeignKey("environment.id"), comment="where it was computed"),
    Column(
        "longest_context",
        _count(),
        comment="tokens that one is predicted from at most, memory included; NULL: no stream was read",
    ),
    Column("definitions", _texts(), comment="metric → its definition or signature; NULL: it failed"),
    Column("error", ShortText(LINE), comment="one line: why it failed; NULL: it did not"),
    UniqueConstraint("run_id", "settings_id"),
    comment="further readings of a completed run, made from the weights that it kept",
)

evaluation_metric = Table(
    "evaluation_metric",
    metadata,
    Column("evaluation_id", _key(), ForeignKey("evaluation.id"), primary_key=True, comment="the evaluation"),
    Column("name", ShortText(NAME), primary_key=True, comment="metric without a split, such as bleu"),
    Column("value", Number(), comment="the number; on SQLite NULL when it is not one"),
    Column("bits", _bits(), nullable=False, comment="the number as the bits of a double"),
    comment="every number that an evaluation gave",
)

_UNIT = "what a document is: article, or block where the test has no documents"
_SUMS = (
    "quantity → its sum in each document, in the order of the test: targets, how many there are; nats, their -ln p; "
    "right, how many were predicted; JSON"
)

test_document = Table(
    "test_document",
    metadata,
    Column("run_id", _key(), ForeignKey("run.id"), primary_key=True, comment="the run"),
    Column("unit", ShortText(NAME), nullable=False, comment=_UNIT),
    Column("sums", _sums(), nullable=False, comment=_SUMS),
    comment="what the test of a run measured by document; no row: its task divides no text",
)

evaluation_document = Table(
    "evaluation_document",
    metadata,
    Column("evaluation_id", _key(), ForeignKey("evaluation.id"), primary_key=True, comment="the evaluation"),
    Column("unit", ShortText(NAME), nullable=False, comment=_UNIT),
    Column("sums", _sums(), nullable=False, comment=_SUMS),
    comment="the same of an evaluation",
)

component = Table(
    "component",
    metadata,
    Column("id", Hash(64), primary_key=True, comment="hash of its axis, word and sha256"),
    Column("sha256", Hash(64), nullable=False, comment="hash of the syntax trees, which cells name"),
    Column("axis", ShortText(NAME), nullable=False, comment="what it is, such as kernel"),
    Column("word", ShortText(LINE), nullable=False, comment="as cells name it: FILE.py:Class, or a package's name"),
    Column("name", ShortText(NAME), nullable=False, comment="the name of its class"),
    Column("path", ShortText(LINE), nullable=False, comment="the module with the class, one of the sources"),
    Column("sources", _texts(), nullable=False, comment="path → text of each module; JSON"),
    Column("package", ShortText(NAME), nullable=False, comment="name and version of its package, empty for a file"),
    Column("created", Time(), nullable=False, comment="when it was recorded, seconds since 1970"),
    comment="custom components with their sources; kept to be read, never run from here",
)

plan = Table(
    "plan",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("sweep_id", _key(), ForeignKey("sweep.id"), nullable=False, comment="the sweep"),
    Column("made", Time(), nullable=False, comment="when the sweep was planned so, seconds since 1970"),
    Column(
        "grid",
        Json(TEXT, _is_grid, "the tables, axes and seeds of a grid as a JSON object"),
        nullable=False,
        comment="as sweep.grid, of this plan",
    ),
    Column(
        "sources",
        _texts(),
        nullable=False,
        comment="file → the text of the grid and of the files that it extends, the grid first, comments included; "
        "empty: not from a file; JSON",
    ),
    comment="every plan that a sweep has had, as it was written; the newest is the one that the sweep follows",
)

plan_cell = Table(
    "plan_cell",
    metadata,
    Column("plan_id", _key(), ForeignKey("plan.id"), primary_key=True, comment="the plan"),
    Column("cell_id", Hash(32), ForeignKey("cell.id"), primary_key=True, comment="a cell of it"),
    comment="the cells of every plan; its seeds are in plan.grid",
    sqlite_with_rowid=False,
)

invalidation = Table(
    "invalidation",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("run_id", _key(), ForeignKey("run.id"), nullable=False, comment="the run, which tables leave out"),
    Column("made", Time(), nullable=False, comment="when it was taken out of tables, seconds since 1970"),
    Column("why", ShortText(LINE), nullable=False, comment="one line"),
    Column("withdrawn", Time(), comment="when it was put back, seconds since 1970; NULL: it is out of tables"),
    comment="runs that somebody took out of tables, with the reason; nothing of them is deleted",
)

search = Table(
    "search",
    metadata,
    Column("id", Hash(32), primary_key=True, comment="hash of all that decides its trials, 32 hexadecimal digits"),
    Column("made", Time(), nullable=False, comment="when it was first planned, seconds since 1970"),
    Column(
        "search",
        _object(),
        nullable=False,
        comment="the cell that parameters are laid over, their distributions, sampler, pruner and seeds; JSON",
    ),
    comment="searches of the parameters of one cell",
)

sweep_search = Table(
    "sweep_search",
    metadata,
    Column("sweep_id", _key(), ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    Column("ordinal", _count(), primary_key=True, comment="place in its plan of the cell that is searched, from 0"),
    Column("search_id", Hash(32), ForeignKey("search.id"), nullable=False, comment="the search"),
    Column("labels", _texts(), nullable=False, comment="axis → the choice as the grid words it"),
    Column("trials", _count(), nullable=False, comment="how many trials the sweep asks for"),
    comment="searches that the newest plan of a sweep asks for; a search belongs to every sweep that asks for it",
)

trial = Table(
    "trial",
    metadata,
    Column("search_id", Hash(32), ForeignKey("search.id"), primary_key=True, comment="the search"),
    Column("number", _count(), primary_key=True, comment="from 0"),
    Column("parameters", _object(), nullable=False, comment="factor → its value; JSON"),
    Column("attributes", _object(), nullable=False, comment="what the sampler keeps of its draw; JSON"),
    Column("cell_id", Hash(32), ForeignKey("cell.id"), comment="the cell with them; NULL: there is no such cell"),
    Column("state", OneWordOf(TrialState), comment="how it ended; NULL: not yet"),
    Column("value", Number(), comment="mean of its runs' valid_score; of a pruned one, up to then"),
    Column("bits", _bits(), comment="value as the bits of a double; NULL: no value"),
    comment="trials of searches; their runs are those of the cell with the tuning seeds",
)

_NOTED = "NULL: it is on a {}"

note = Table(
    "note",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("made", Time(), nullable=False, comment="when it was written, seconds since 1970"),
    Column("sweep_id", _key(), ForeignKey("sweep.id"), comment=f"the sweep; {_NOTED.format('run')}"),
    Column("run_id", _key(), ForeignKey("run.id"), comment=f"the run; {_NOTED.format('sweep')}"),
    Column("text", ShortText(TEXT), nullable=False, comment="what somebody wrote"),
    comment="remarks of people on sweeps and runs",
)

tag = Table(
    "tag",
    metadata,
    Column("id", _key(), primary_key=True, comment="key"),
    Column("made", Time(), nullable=False, comment="when it was given, seconds since 1970"),
    Column("sweep_id", _key(), ForeignKey("sweep.id"), comment=f"the sweep; {_NOTED.format('run')}"),
    Column("run_id", _key(), ForeignKey("run.id"), comment=f"the run; {_NOTED.format('sweep')}"),
    Column("word", ShortText(NAME), nullable=False, comment="such as baseline"),
    comment="words by which people find sweeps and runs",
)

for _table in metadata.tables.values():
    for _column in _table.c:
        if isinstance(_column.type, Strict):
            _column.type.column, _column.type.nullable = f"{_table.name}.{_column.name}", bool(_column.nullable)
            _table.append_constraint(CheckConstraint(Holds(_column.name, _column.type), name=_column.name))
