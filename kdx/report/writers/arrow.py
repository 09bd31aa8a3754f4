"""Rows as a stream of Arrow's C interface, by nanoarrow, and as a Parquet file, by pyarrow."""

from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from types import NoneType
from typing import Any, get_args

import nanoarrow

from kdx.errors import packages_named

_ARROW = {bool: nanoarrow.bool_, int: nanoarrow.int64, float: nanoarrow.float64, str: nanoarrow.string}


def stream(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> Any:
    """Return rows as one batch of a stream; what a row lacks is null.

    Args:
        types: every column → its type, bool, int, float or str, with `| None` or without; Any: what its values show.
    """
    columns = {name: _column([row.get(name) for row in rows], kind) for name, kind in types.items()}
    schema = nanoarrow.struct({name: column.schema for name, column in columns.items()})
    batch = nanoarrow.c_array_from_buffers(schema, len(rows), [None], children=list(columns.values()))
    return nanoarrow.c_array_stream(batch)


def to_parquet(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> bytes:
    """Return rows as a Parquet file.

    Args:
        types: see `stream`.

    Raises:
        KdxError: pyarrow, which is optional, is not installed.
    """
    with packages_named():
        from pyarrow import RecordBatchReader, parquet  # late: it is optional
    written = BytesIO()
    parquet.write_table(RecordBatchReader.from_stream(stream(rows, types)).read_all(), written)
    return written.getvalue()


def _column(values: Sequence[Any], declared: Any) -> Any:
    given = [value for value in values if value is not None]
    (kind,) = {*get_args(declared)} - {NoneType} or {declared}
    kinds = list(_ARROW)
    # A database may hold what its columns do not declare, such as a word of a later kdx for a number.
    wider = kinds[kinds.index(_shown(given) if kind is Any else kind) :]
    kind = next(kind for kind in wider if all(_holds(kind, value) for value in given))
    return nanoarrow.c_array([None if value is None else kind(value) for value in values], _ARROW[kind]())


def _shown(given: Collection[Any]) -> type:
    """Return the type that all these values are of."""
    kinds = {*map(type, given)}
    return kinds.pop() if kinds in ({bool}, {int}, {float}) else float if kinds == {int, float} else str


def _holds(kind: type, value: Any) -> bool:
    if kind is bool:
        return value in (0, 1)  # SQLite has no truth values
    if kind is int:
        return isinstance(value, int) and -(2**63) <= value < 2**63
    return kind is str or isinstance(value, int | float)
