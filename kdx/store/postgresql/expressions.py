"""The schema's own SQL expressions in the dialect of PostgreSQL."""

from typing import Any

from sqlalchemy.ext.compiler import compiles

from kdx.store.columns import Json
from kdx.store.schema import now
from kdx.store.verbatim import FromUtf8, KeysGoOn, Utf8


@compiles(now, "postgresql")
def _now(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())"


@compiles(Utf8, "postgresql")
def _utf8(element: Utf8, compiler: Any, **options: Any) -> str:
    return f"convert_to(CAST({compiler.process(element.clauses, **options)} AS TEXT), 'UTF8')"


@compiles(FromUtf8, "postgresql")
def _from_utf8(element: FromUtf8, compiler: Any, **options: Any) -> str:
    text = f"convert_from({compiler.process(element.bytes, **options)}, 'UTF8')"
    return f"CAST({text} AS JSON)" if isinstance(element.type, Json) else text


@compiles(KeysGoOn, "postgresql")
def _keys_go_on(element: KeysGoOn, compiler: Any, **options: Any) -> str:
    table, key = (compiler.preparer.quote(one) for one in (element.key.table.name, element.key.name))
    # A sequence does not notice keys that it did not give.
    return (
        f"SELECT setval(pg_get_serial_sequence('{table}', '{element.key.name}'), "
        f"(SELECT coalesce(max({key}), 0) + 1 FROM {table}), false)"
    )
