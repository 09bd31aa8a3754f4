"""The schema's own SQL expressions in the dialect of PostgreSQL."""

from typing import Any

from sqlalchemy.ext.compiler import compiles

from kdx.store.schema import now


@compiles(now, "postgresql")
def _now(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())"
