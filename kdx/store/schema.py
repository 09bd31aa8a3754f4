"""The tables of the results database, with the meaning and unit of every column.

Users may query the tables. A sweep plans cells and seeds (`sweep_cell`, `sweep_run`); a run is a cell with a seed in a
generation and belongs to every sweep that plans it, so `run` and `sweep_run` are joined on (cell_id, seed), where
`run.search_id` is NULL. Runs with a search are those of its trials and belong to it alone: `trial` and `run` are joined
on (search_id, cell_id). Cells and runs that a newer plan of the same name leaves out keep their rows, with `planned`
false: nothing is deleted.

Numbers are stored twice, as `value` for queries and as exact `bits`, because SQLite turns NaN into NULL and −0.0 into
0.0. Times are seconds since 1970 by the clock of the database. The database itself refuses to take a run out of a final
state.

A new database is made from these tables (`create`) and the views on them (`kdx.store.views`).
"""

import json
import secrets
import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    bindparam,
    insert,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from kdx.store.json_object import ENVIRONMENT, FACTS, GRID, SUMS, TEXTS, JsonObject, Shape
from kdx.store.records import LOST, RemarkKind, RunState

REVISION = "0001"
"""The number of the schema, which a change of a table raises."""

VERSION_TABLE = "kdx_schema"
"""The table with that number."""


class now(FunctionElement[float]):
    """Seconds since 1970 by the clock of the database, so that two hosts never compare their own clocks.

    It is the time of the call, since a transaction may have waited for a lock after its start.
    """

    type = Double()
    inherit_cache = True


class is_object(ColumnElement[bool]):
    """Whether a column holds a JSON object, for a CHECK of its table."""

    type = Boolean()
    inherit_cache = False

    def __init__(self, column: str) -> None:
        self.column = column


class _Listed(TypeDecorator[Any]):
    """Values as one JSON array."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return json.dumps(value)


class among(FunctionElement[bool]):
    """Whether a column holds one of these values.

    They are one parameter, since databases limit the number of parameters: PostgreSQL to 65,535, SQLite to 32,766.
    """

    type = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], values: Iterable[Any]) -> None:
        listed = _Listed().with_variant(ARRAY(column.type), "postgresql")
        super().__init__(column, bindparam("values", list(values), unique=True, type_=listed))


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

LARGEST = 2**63 - 1
"""Largest whole number that a database keeps."""

LAST_SECOND = 253402300799
"""The end of the year 9999 in seconds since 1970."""


class State(TypeDecorator[Any]):
    """A member of an enumeration, kept as its value."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.members = {member.value: member for member in kind}

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return self.members.get(value, value)


_NUMBER: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")
_WHOLE: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
_SORTED: TypeEngine[str] = Text().with_variant(Text(collation="C"), "postgresql")
"""A text that sorts by its bytes on every database, so that a prefix is a range of the key."""
_FLAG: TypeEngine[bool] = Boolean().with_variant(Integer(), "sqlite")


def _column(
    name: str, kind: TypeEngine[Any], *further: Any, holds: str | ColumnElement[bool] | None = None, **options: Any
) -> Column[Any]:
    """A column whose values the database itself checks.

    Args:
        holds: SQL that is true or NULL for every value that the column may hold, in the words of any database.
    """
    checks = () if holds is None else (CheckConstraint(holds, name=name),)
    return Column(name, kind, *further, *checks, **options)


def _key(name: str, *further: Any, **options: Any) -> Column[int]:
    return _column(name, Integer(), *further, holds=f"{name} >= 0", **options)


_step = _key


def _count(name: str, *further: Any, **options: Any) -> Column[int]:
    return _column(name, Integer(), *further, holds=f"{name} BETWEEN 0 AND 1000000000", **options)


def _whole(name: str, **options: Any) -> Column[int]:
    return _column(name, _WHOLE, holds=f"{name} >= 0", **options)


def _bits(name: str, **options: Any) -> Column[int]:
    return _column(name, _WHOLE, **options)


def _number(name: str, **options: Any) -> Column[float]:
    return _column(name, _NUMBER, **options)


def _time(name: str, **options: Any) -> Column[float]:
    return _column(name, _NUMBER, holds=f"{name} BETWEEN 0 AND {LAST_SECOND}", **options)


def _flag(name: str, **options: Any) -> Column[bool]:
    return _column(name, _FLAG, holds=f"{name} IN (true, false)", **options)


def _text(name: str, most: int, **options: Any) -> Column[str]:
    return _column(name, Text(), holds=f"length({name}) <= {most}", **options)


def _hash(name: str, digits: int, *further: Any, **options: Any) -> Column[str]:
    holds = f"length({name}) = {digits} AND trim({name}, '0123456789abcdef') = ''"
    return _column(name, Text(), *further, holds=holds, **options)


def _json(name: str, shape: Shape = None, **options: Any) -> Column[Any]:
    return _column(name, JsonObject(name, shape), holds=is_object(name), **options)


def _state(name: str, kind: type[StrEnum], *more: str, **options: Any) -> Column[Any]:
    values = ", ".join(f"'{value}'" for value in (*kind, *more))
    return _column(name, State(kind), holds=f"{name} IN ({values})", **options)


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s",
        "uq": "%(table_name)s_unique",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)


def _table(name: str, *parts: Any, comment: str, **options: Any) -> Table:
    return Table(name, metadata, *parts, comment=comment, sqlite_strict=True, **options)


identity = _table(
    "identity",
    _hash("id", 32, primary_key=True, comment="drawn at random when the database was made"),
    _hash(
        "place",
        64,
        comment="hash of the machine and the path at which it last kept files of runs; NULL: it kept none",
    ),
    comment="one row that identifies this database; its copies have the same",
)

sweep = _table(
    "sweep",
    _key("id", primary_key=True, comment="key"),
    _text("name", NAME, nullable=False, comment="name that the grid gives itself"),
    _time("created", nullable=False, comment="when the name was first planned, seconds since 1970"),
    _time("updated", nullable=False, comment="when it was last planned, seconds since 1970"),
    _json("grid", GRID, nullable=False, comment="parts of the grid that concern no single cell, such as tables"),
    UniqueConstraint("name"),
    comment="a named plan",
)

cell = _table(
    "cell",
    _hash("id", 32, primary_key=True, comment="hash of the resolved cell, 32 hexadecimal digits"),
    _text("spec", TEXT, nullable=False, comment="the resolved cell as JSON, every field of it"),
    comment="one choice on each axis and all else that a run needs, except its seed",
)

sweep_cell = _table(
    "sweep_cell",
    _key("sweep_id", ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    _hash("cell_id", 32, ForeignKey("cell.id"), primary_key=True, comment="a cell of its plan"),
    _count("ordinal", primary_key=True, comment="place of this choice in the plan, from 0"),
    _json("labels", TEXTS, nullable=False, comment="axis → the choice as this grid words it"),
    _flag("planned", nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="choices that a sweep plans; two choices may come to the same cell",
)

sweep_run = _table(
    "sweep_run",
    _key("sweep_id", ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    _hash("cell_id", 32, ForeignKey("cell.id"), primary_key=True, comment="cell of the run"),
    _whole("seed", primary_key=True, comment="seed of the run"),
    _flag("planned", nullable=False, comment="whether the newest plan of the sweep has it"),
    comment="runs of a sweep, in whatever generation; joins run on (cell_id, seed)",
)

environment = _table(
    "environment",
    _hash("id", 32, primary_key=True, comment="hash of the JSON, 32 hexadecimal digits"),
    _json("environment", ENVIRONMENT, nullable=False, comment="library versions, processor, threads and the like"),
    comment="where a run was computed, as far as it can change its bits",
)

definitions = _table(
    "definitions",
    _hash("id", 32, primary_key=True, comment="hash of the JSON, 32 hexadecimal digits"),
    _json("definitions", TEXTS, nullable=False, comment="metric → its definition or signature"),
    comment="what the metrics of a run or of an evaluation mean",
)

run = _table(
    "run",
    _key("id", primary_key=True, comment="key"),
    _hash("cell_id", 32, ForeignKey("cell.id"), nullable=False, comment="the cell"),
    _whole("seed", nullable=False, comment="the seed"),
    _hash("search_id", 32, ForeignKey("search.id"), comment="the search whose trial it is; NULL: sweeps plan it"),
    _count("generation", nullable=False, comment="0; each deliberate repetition of a finished run adds one"),
    _state("state", RunState, nullable=False, comment=f"one of {', '.join(RunState)}; the last three are final"),
    _text("owner", NAME, comment="process that claimed it last"),
    _count("attempt", nullable=False, comment="number of the last claim, from 1; 0: never claimed"),
    _time("lease_until", comment="when the claim lapses, seconds since 1970"),
    _step("progress_step", nullable=False, comment="highest optimiser step recorded"),
    _step("checkpoint_step", comment="optimiser step of the newest checkpoint to go on from; NULL: none was made"),
    _count("stalls", nullable=False, comment="attempts in a row that died without coming further"),
    _number("valid_score", comment="best value of the cell's selection metric"),
    _bits("valid_bits", comment="valid_score as the bits of a double; NULL: no score"),
    _step("valid_step", comment="optimiser step of valid_score"),
    _number("test_score", comment="the same metric on the test split, with the weights of valid_step"),
    _bits("test_bits", comment="test_score as the bits of a double; NULL: no score"),
    _hash("weights_sha256", 64, comment="of the file with the weights that were tested; NULL: none was written"),
    _text("error", LINE, comment="one line: why it failed or diverged"),
    _text(
        "undertrained",
        LINE,
        comment="of a completed run, one line: its final validation loss is not below the unigram distribution's; "
        "NULL: it is",
    ),
    _hash("definitions_id", 32, ForeignKey("definitions.id"), comment="what its metrics mean"),
    _text("data_fingerprint", NAME, comment="hash of the prepared data"),
    _json("data_facts", FACTS, comment="what the prepared data and the evaluation were, such as test/unknown_rate"),
    _text("code_fingerprint", NAME, comment="hash of the code that decides what a run computes"),
    _hash("environment_id", 32, ForeignKey("environment.id"), comment="where the last attempt was computed"),
    UniqueConstraint("cell_id", "seed", "generation", "search_id"),
    comment="one row a run for ever; tries at it are attempts",
)


def _run_index(name: str, columns: Sequence[Column[Any]], where: ColumnElement[bool], *, unique: bool) -> Index:
    """An index of some of the runs."""
    # `kdx.store.postgresql.objects` sets the same condition: here it would import SQLAlchemy's PostgreSQL dialect for
    # each command.
    return Index(name, *columns, unique=unique, sqlite_where=where)


# For the constraint, two runs without a search always differ.
_run_index("run_of_sweeps", (run.c.cell_id, run.c.seed, run.c.generation), run.c.search_id.is_(None), unique=True)
_run_index("run_of_search", (run.c.search_id,), run.c.search_id.is_not(None), unique=False)

NEW_RUN = {"generation": 0, "state": RunState.PENDING, "attempt": 0, "progress_step": 0, "stalls": 0}
"""Column → value in the row of a run that nobody has claimed yet, beside its key."""

attempt = _table(
    "attempt",
    _key("run_id", ForeignKey("run.id"), primary_key=True, comment="the run"),
    _key("number", primary_key=True, comment="from 1"),
    _text("owner", NAME, nullable=False, comment="process that claimed the run"),
    _time("started", nullable=False, comment="when it claimed the run, seconds since 1970"),
    _time("ended", comment="when it ended, or when its lease did; seconds since 1970; NULL: not yet"),
    _state(
        "outcome",
        RunState,
        LOST,
        comment="state that it left the run in, or lost: its process died without a word",
    ),
    _step("first_step", nullable=False, comment="highest optimiser step recorded before it"),
    _step("last_step", comment="optimiser step that it reached"),
    _text("traceback", TEXT, comment="of the exception that ended it"),
    _hash("environment_id", 32, ForeignKey("environment.id"), comment="where it was computed"),
    _step("resumed_step", comment="step of the checkpoint that it went on from; 0: it began anew"),
    _text(
        "changes",
        TEXT,
        comment="what was other than under the checkpoint, such as torch 2.12 → 2.13; a run that went on so is not "
        "bit-exact",
    ),
    _whole(
        "peak_memory",
        comment="most memory that it held: of its GPU, or, without one, resident of its process; bytes; NULL: not "
        "recorded",
    ),
    comment="one try at a run",
)

metric = _table(
    "metric",
    _key("run_id", ForeignKey("run.id"), comment="the run"),
    _column("name", _SORTED, holds=f"length(name) <= {NAME}", comment="split/metric, such as valid/bleu"),
    _step("step", comment="optimiser step, from 0"),
    _number("value", comment="the number; on SQLite NULL when it is not one"),
    _bits("bits", nullable=False, comment="the number as the bits of a double"),
    _count(
        "writes",
        nullable=False,
        comment="times recorded; above 1 after a resumed run replayed the step, or a write whose connection was lost",
    ),
    _count("differs", nullable=False, comment="times that a replay gave other bits than stood here"),
    PrimaryKeyConstraint("run_id", "name", "step"),
    comment="every number that a run recorded",
    sqlite_with_rowid=False,
)

output = _table(
    "output",
    _key("run_id", ForeignKey("run.id"), primary_key=True, comment="the run"),
    _text("name", NAME, primary_key=True, comment="split/kind, such as test/translations"),
    _column(
        "lines",
        LargeBinary(),
        holds=f"length(lines) <= {PACKED}",
        nullable=False,
        comment="JSON list of texts in the order of the corpus, zlib",
    ),
    _count("count", nullable=False, comment="texts"),
    _hash("sha256", 64, nullable=False, comment="of the JSON before compression, hexadecimal"),
    comment="texts that a run produced",
)

evaluation = _table(
    "evaluation",
    _key("id", primary_key=True, comment="key"),
    _key("run_id", ForeignKey("run.id"), nullable=False, comment="the run, which is completed"),
    _hash(
        "settings_id",
        32,
        nullable=False,
        comment="hash of the settings that the run's own test has otherwise, 32 hexadecimal digits",
    ),
    _json("settings", nullable=False, comment="every setting, such as length, corpus and split; JSON"),
    _time("made", nullable=False, comment="when it was made, seconds since 1970"),
    _hash("weights_sha256", 64, comment="of the file with the weights that were read; NULL: it was not come to"),
    _text("data_fingerprint", NAME, comment="hash of the prepared data that was read; NULL: it failed"),
    _text("code_fingerprint", NAME, comment="hash of the code that decides what it computes"),
    _hash("environment_id", 32, ForeignKey("environment.id"), comment="where it was computed"),
    _count(
        "longest_context",
        comment="tokens that one is predicted from at most, memory included; NULL: no stream was read",
    ),
    _hash("definitions_id", 32, ForeignKey("definitions.id"), comment="what its metrics mean; NULL: it failed"),
    _text("error", LINE, comment="one line: why it failed; NULL: it did not"),
    UniqueConstraint("run_id", "settings_id"),
    comment="further readings of a completed run, made from the weights that it kept",
)

evaluation_metric = _table(
    "evaluation_metric",
    _key("evaluation_id", ForeignKey("evaluation.id"), primary_key=True, comment="the evaluation"),
    _text("name", NAME, primary_key=True, comment="metric without a split, such as bleu"),
    _number("value", comment="the number; on SQLite NULL when it is not one"),
    _bits("bits", nullable=False, comment="the number as the bits of a double"),
    comment="every number that an evaluation gave",
)

_UNIT = "what a document is: article, or block where the test has no documents"
_SUMS = (
    "quantity → its sum in each document, in the order of the test: targets, how many there are; nats, their -ln p; "
    "right, how many were predicted; JSON"
)

test_document = _table(
    "test_document",
    _key("run_id", ForeignKey("run.id"), primary_key=True, comment="the run"),
    _text("unit", NAME, nullable=False, comment=_UNIT),
    _json("sums", SUMS, nullable=False, comment=_SUMS),
    comment="what the test of a run measured by document; no row: its task divides no text",
)

evaluation_document = _table(
    "evaluation_document",
    _key("evaluation_id", ForeignKey("evaluation.id"), primary_key=True, comment="the evaluation"),
    _text("unit", NAME, nullable=False, comment=_UNIT),
    _json("sums", SUMS, nullable=False, comment=_SUMS),
    comment="the same of an evaluation",
)

component = _table(
    "component",
    _hash("id", 64, primary_key=True, comment="hash of its axis, word and sha256"),
    _hash("sha256", 64, nullable=False, comment="hash of the syntax trees, which cells name"),
    _text("axis", NAME, nullable=False, comment="what it is, such as kernel"),
    _text("word", LINE, nullable=False, comment="as cells name it: FILE.py:Class, or a package's name"),
    _text("name", NAME, nullable=False, comment="the name of its class"),
    _text("path", LINE, nullable=False, comment="the module with the class, one of the sources"),
    _json("sources", TEXTS, nullable=False, comment="path → text of each module; JSON"),
    _text("package", NAME, nullable=False, comment="name and version of its package, empty for a file"),
    _time("created", nullable=False, comment="when it was recorded, seconds since 1970"),
    comment="custom components with their sources; kept to be read, never run from here",
)

plan = _table(
    "plan",
    _key("id", primary_key=True, comment="key"),
    _key("sweep_id", ForeignKey("sweep.id"), nullable=False, comment="the sweep"),
    _time("made", nullable=False, comment="when the sweep was planned so, seconds since 1970"),
    _json("grid", GRID, nullable=False, comment="as sweep.grid, of this plan"),
    _json(
        "sources",
        TEXTS,
        nullable=False,
        comment="file → the text of the grid and of the files that it extends, the grid first, comments included; "
        "empty: not from a file; JSON",
    ),
    comment="every plan that a sweep has had, as it was written; the newest is the one that the sweep follows",
)

plan_cell = _table(
    "plan_cell",
    _key("plan_id", ForeignKey("plan.id"), primary_key=True, comment="the plan"),
    _hash("cell_id", 32, ForeignKey("cell.id"), primary_key=True, comment="a cell of it"),
    comment="the cells of every plan; its seeds are in plan.grid",
    sqlite_with_rowid=False,
)

search = _table(
    "search",
    _hash("id", 32, primary_key=True, comment="hash of all that decides its trials, 32 hexadecimal digits"),
    _time("made", nullable=False, comment="when it was first planned, seconds since 1970"),
    _json(
        "search",
        nullable=False,
        comment="the cell that parameters are laid over, their distributions, sampler, pruner and seeds; JSON",
    ),
    comment="searches of the parameters of one cell",
)

sweep_search = _table(
    "sweep_search",
    _key("sweep_id", ForeignKey("sweep.id"), primary_key=True, comment="the sweep"),
    _count("ordinal", primary_key=True, comment="place in its plan of the cell that is searched, from 0"),
    _hash("search_id", 32, ForeignKey("search.id"), nullable=False, comment="the search"),
    _json("labels", TEXTS, nullable=False, comment="axis → the choice as the grid words it"),
    _count("trials", nullable=False, comment="how many trials the sweep asks for"),
    comment="searches that the newest plan of a sweep asks for; a search belongs to every sweep that asks for it",
)

trial = _table(
    "trial",
    _hash("search_id", 32, ForeignKey("search.id"), primary_key=True, comment="the search"),
    _count("number", primary_key=True, comment="from 0"),
    _json("parameters", nullable=False, comment="factor → its value; JSON"),
    _json("attributes", nullable=False, comment="what the sampler keeps of its draw; JSON"),
    _hash("cell_id", 32, ForeignKey("cell.id"), comment="the cell with them; NULL: there is no such cell"),
    comment="trials of searches; their runs, one a tuning seed, have the same search and cell, and say how they ended",
)

remark = _table(
    "remark",
    _key("id", primary_key=True, comment="key"),
    _time("made", nullable=False, comment="when it was written, seconds since 1970"),
    _key("sweep_id", ForeignKey("sweep.id"), comment="the sweep; NULL: it is on a run"),
    _key("run_id", ForeignKey("run.id"), comment="the run; NULL: it is on a sweep"),
    _state(
        "kind",
        RemarkKind,
        nullable=False,
        comment="note; tag, by which people find sweeps and runs; invalidation, of a run that tables leave out",
    ),
    _text("text", TEXT, nullable=False, comment="the note, the tag, or the reason in one line"),
    comment="what people wrote on sweeps and runs",
)


def create(connection: Connection, statements: Iterable[str]) -> None:
    """Make the tables of a new database, and mark it with the schema of this kdx.

    Args:
        statements: make what else there is, such as the views.
    """
    metadata.create_all(connection)
    for statement in statements:
        connection.exec_driver_sql(statement)
    connection.execute(insert(identity).values(id=secrets.token_hex(16)))
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (revision VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISION}')")
