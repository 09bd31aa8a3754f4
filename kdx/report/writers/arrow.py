"""Rows as a stream of Arrow's C interface, by nanoarrow, and as a Parquet file, by pyarrow."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import nanoarrow

from kdx.errors import packages_named


def stream(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as one batch of a stream: numbers, truth values and text keep their type, the rest is text.

    A column has the first type that all its values are of: bool, int64, float64, string; what a row lacks is null.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    schema = nanoarrow.struct({name: column.schema for name, column in columns.items()})
    batch = nanoarrow.c_array_from_buffers(schema, len(rows), [None], children=list(columns.values()))
    return nanoarrow.c_array_stream(batch)


def to_parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as a Parquet file.

    Raises:
        KdxError: pyarrow, which is optional, is not installed.
    """
    with packages_named():
        from pyarrow import RecordBatchReader, parquet  # late: it is optional
    written = BytesIO()
    parquet.write_table(RecordBatchReader.from_stream(stream(rows)).read_all(), written)
    return written.getvalue()


def _column(values: Sequence[Any]) -> Any:
    given = [value for value in values if value is not None]
    if given and _are(given, bool):
        return nanoarrow.c_array(values, nanoarrow.bool_())
    if given and _are(given, int) and all(-(2**63) <= value < 2**63 for value in given):
        return nanoarrow.c_array(values, nanoarrow.int64())
    if given and _are(given, (int, float)) and not _are(given, int):
        return nanoarrow.c_array(values, nanoarrow.float64())
    return nanoarrow.c_array([None if value is None else str(value) for value in values], nanoarrow.string())


def _are(values: Iterable[Any], kinds: type | tuple[type, ...]) -> bool:
    """Whether all are of a kind; in Python, but not in Arrow, a bool is an int."""
    return all(isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool)) for value in values)
