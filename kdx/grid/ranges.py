"""Numbers of an axis by their ends: `{from: 1e-4, to: 1e-2, log: 5}`, `{…, linear: 5}`, or `{…, step: 100}`.

They are computed in decimals, so that a step of 0.1 gives 0.3 and not 0.30000000000000004. Where all that is written is
whole, so are they; between other ends a linear and a logarithmic range have numbers of four significant digits.
"""

from decimal import Decimal

from kdx.errors import KdxError, did_you_mean
from kdx.grid.source import Node

MOST_NUMBERS = 1000
_SPACINGS = ("linear", "log", "step")
_KEYS = ("from", "to", *_SPACINGS)
_EXAMPLE = "such as {from: 1e-4, to: 1e-2, log: 5}"


def is_range(node: Node) -> bool:
    """Whether a mapping is meant as one."""
    return isinstance(node.value, dict) and any(key in node.value for key in _KEYS)


def numbers_of(node: Node) -> list[Node]:
    """The numbers, each at the place of the range.

    Raises:
        KdxError: an end is missing or no number, they are swapped, or there would be too many or equal numbers.
    """
    for key in node.value:
        if key not in _KEYS:
            problem, place = f"unknown key `{key}` in a range", node.key((key,))
            raise KdxError(problem, place=place, allowed=_KEYS, hint=did_you_mean(key, _KEYS))
    spacings = [key for key in _SPACINGS if key in node.value]
    if len(spacings) != 1 or "from" not in node.value or "to" not in node.value:
        allowed = f"`from`, `to`, and one of linear, log (how many numbers) and step, {_EXAMPLE}"
        raise KdxError(f"`{node}` as a range", place=node.place, allowed=allowed)
    first, last = (_number(node.value[key], key) for key in ("from", "to"))
    (spacing,) = spacings
    how = node.value[spacing]
    if first >= last:
        hint = f"swap its ends: {{from: {last}, to: {first}}}" if first > last else None
        allowed = "from a smaller to a larger number"
        raise KdxError(f"a range from {first} to {last}", place=node.value["from"].place, allowed=allowed, hint=hint)
    ends = (node.value["from"].value, node.value["to"].value)
    whole = all(isinstance(number, int) for number in (*ends, how.value))
    found = _stepped(first, last, how) if spacing == "step" else _spaced(first, last, how, spacing, whole=whole)
    if len(set(found)) < len(found):
        problem = f"{len(found)} whole numbers between {first} and {last} are not all different"
        raise KdxError(problem, place=how.place, hint="ask for fewer")
    return [Node(node.place, int(number) if whole else float(number)) for number in found]


def _number(node: Node, what: str) -> Decimal:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise KdxError(f"`{node}` as `{what}` of a range", place=node.place, allowed="a number")
    return Decimal(repr(node.value))


def _stepped(first: Decimal, last: Decimal, node: Node) -> list[Decimal]:
    step = _number(node, "step")
    if step <= 0:
        raise KdxError(f"`{node}` as `step` of a range", place=node.place, allowed="a number above 0")
    count = int((last - first) / step) + 1
    _check_count(count, node)
    return [first + index * step for index in range(count)]


def _spaced(first: Decimal, last: Decimal, node: Node, how: str, *, whole: bool) -> list[Decimal]:
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 2:
        raise KdxError(f"`{node}` as `{how}` of a range", place=node.place, allowed="how many numbers, 2 or more")
    _check_count(node.value, node)
    if how == "log" and first <= 0:
        raise KdxError(f"a logarithmic range from {first}", place=node.place, allowed="from a number above 0")
    shares = [Decimal(index) / (node.value - 1) for index in range(node.value)]
    between = [
        first * (last / first) ** share if how == "log" else first + (last - first) * share for share in shares[1:-1]
    ]
    return [first, *(Decimal(round(one)) if whole else Decimal(f"{one:.4g}") for one in between), last]


def _check_count(count: int, node: Node) -> None:
    if count > MOST_NUMBERS:
        raise KdxError(f"{count:,} numbers in a range", place=node.place, allowed=f"at most {MOST_NUMBERS:,}")
