"""The schema's own SQL expressions in the dialect of SQLite.

A column of SQLite can hold any type, so each condition begins with `typeof`.
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


@compiles(now, "sqlite")
def _now(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Holds, "sqlite")
def _holds(element: Holds, compiler: Any, **options: Any) -> str:
    name, condition = element.name, condition_of(element.kind, element.name)
    return f"{name} IS NULL OR ({condition})" if element.kind.nullable else condition


def condition_of(kind: Strict, name: str) -> str:
    """SQL that is true for every value, except NULL, that the column of this name may hold."""
    match kind:
        case Whole(least=least, most=most):
            at_least = f" AND {name} >= {least}" if least >= -LARGEST else ""
            at_most = f" AND {name} <= {most}" if most < LARGEST else ""
            return f"typeof({name}) = 'integer'{at_least}{at_most}"
        case Number():
            return f"typeof({name}) IN ('real', 'integer')"
        case Time(most=most):
            return f"typeof({name}) IN ('real', 'integer') AND {name} BETWEEN 0 AND {most}"
        case ShortText(most=most):
            return f"typeof({name}) = 'text' AND length({name}) <= {most}"
        case Hash(digits=digits):
            return f"typeof({name}) = 'text' AND length({name}) = {digits} AND NOT {name} GLOB '*[^0-9a-f]*'"
        case OneWordOf(known=known):
            return f"{name} IN ({', '.join(repr(str(word)) for word in known)})"
        case Flag():
            return f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
        case Packed(most=most):
            return f"typeof({name}) = 'blob' AND length({name}) <= {most}"
        case Json(most=most):
            # The length comes first, so that long texts are not parsed.
            return (
                f"typeof({name}) = 'text' AND length({name}) <= {most}"
                f" AND CASE WHEN json_valid({name}) THEN json_type({name}) = 'object' ELSE 0 END"
            )
        case _:
            raise TypeError(f"there is no condition for {kind!r}")
