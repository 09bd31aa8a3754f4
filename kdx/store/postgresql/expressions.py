"""The schema's own SQL expressions in the dialect of PostgreSQL.

The server itself enforces the types of columns, so conditions are about what a type leaves open.
"""

from typing import Any

from sqlalchemy.ext.compiler import compiles

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
from kdx.store.schema import now


@compiles(now, "postgresql")
def _now(element: now, compiler: Any, **options: Any) -> str:
    # now() would be the start of the transaction, before the wait for a lock.
    return "extract(epoch FROM clock_timestamp())::double precision"


@compiles(Holds, "postgresql")
def _holds(element: Holds, compiler: Any, **options: Any) -> str:
    name = compiler.preparer.quote(element.name)
    condition = condition_of(element.kind, name)
    return f"{name} IS NULL OR ({condition})" if element.kind.nullable else condition


def condition_of(kind: Strict, name: str) -> str:
    """SQL that is true for every value, except NULL, that the column of this name may hold."""
    match kind:
        case Whole(least=least, most=most):
            at_least = [f"{name} >= {least}"] if least >= -LARGEST else []
            at_most = [f"{name} <= {most}"] if most < LARGEST else []
            return " AND ".join([*at_least, *at_most]) or "true"
        case Number() | Flag():
            return "true"
        case Time(most=most):
            return f"{name} >= 0 AND {name} <= {most}"
        case ShortText(most=most):
            return f"length({name}) <= {most}"
        case Hash(digits=digits):
            return f"{name} ~ '^[0-9a-f]{{{digits}}}$'"
        case OneWordOf(known=known):
            return f"{name} IN ({', '.join(repr(str(word)) for word in known)})"
        case Packed(most=most):
            return f"octet_length({name}) <= {most}"
        case Json(most=most):
            return f"length({name}::text) <= {most} AND json_typeof({name}) = 'object'"
        case _:
            raise TypeError(f"there is no condition for {kind!r}")
