"""Options: the keys of a grid that come with a kernel, a task or another name."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

_LARGEST = 2**53  # a float holds every whole number up to here


@dataclass(frozen=True)
class Option:
    """A key of the grid. Its default decides its type: a name, a whole number or a number.

    Raises:
        TypeError: an argument is of another type.
    """

    default: Any
    words: tuple[str, ...] = ()
    """The allowed names; empty for a number."""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    multiple_of: int | None = None
    also: tuple[str, ...] = ()
    """The names that are allowed beside a number."""
    follows: tuple[str, ...] = ()
    """Factors of a cell that limit the option; where cells differ in these, they may differ in the option too."""
    name: str = ""
    title: str = ""
    """The docstring of its declaration: what it is, with its unit."""

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.minimum, self.maximum, self.above, self.below) if limit is not None]
        for name in ("words", "also", "follows"):
            if not isinstance(texts := getattr(self, name), tuple) or not all(map(is_line, texts)):
                raise TypeError(f"{name} are a tuple of texts")
        if not self.words and type(self.default) not in (int, float):
            raise TypeError("the default is a number, or one of the words")
        if not all(type(limit) in (int, float) and abs(limit) <= _LARGEST for limit in limits):
            raise TypeError(f"minimum, maximum, above and below are numbers up to {_LARGEST}")
        if self.multiple_of is not None and (type(self.multiple_of) is not int or self.multiple_of < 1):
            raise TypeError("multiple_of is a whole number of 1 or more")

    @property
    def allowed(self) -> str:
        """The allowed values, for messages."""
        if self.words:
            return ", ".join(self.words)
        limits = in_words(ge=self.minimum, gt=self.above, le=self.maximum, lt=self.below)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        multiple = f", a multiple of {self.multiple_of}" if self.multiple_of else ""
        return ", or ".join([f"{kind} {limits}".rstrip() + multiple, *self.also])

    @property
    def json_schemas(self) -> list[dict[str, Any]]:
        """Return the JSON Schemas of the allowed values; a value fits one of them."""
        schemas: list[dict[str, Any]] = [{"const": word} for word in self.words]
        if not self.words:
            limits = {
                "minimum": self.minimum,
                "maximum": self.maximum,
                "exclusiveMinimum": self.above,
                "exclusiveMaximum": _LARGEST if self.below is None else self.below,
                "multipleOf": self.multiple_of,
            }
            kind = "integer" if isinstance(self.default, int) else "number"
            given = {limit: value for limit, value in limits.items() if value is not None}
            schemas.append({"title": replace(self, also=()).allowed, "type": kind, **given})
        return [*schemas, *({"const": word} for word in self.also)]

    def value(self, given: Any) -> Any:
        """Return a given value as a cell holds it: 2 becomes 2.0 if the default is 1.0.

        Raises:
            ValueError: the value is not allowed.
        """
        word = "none" if given is None else given
        if isinstance(word, str):
            if word in (*self.words, *self.also):
                return str(word)
        elif self.words:
            pass
        elif type(given) is int or (type(given) is float and type(self.default) is float and isfinite(given)):
            outside = (
                (self.minimum is not None and given < self.minimum)
                or (self.maximum is not None and given > self.maximum)
                or (self.above is not None and given <= self.above)
                or (self.below is not None and given >= self.below)
                or (self.multiple_of is not None and given % self.multiple_of)
            )
            if not outside and abs(given) < _LARGEST:
                return type(self.default)(given)
        raise ValueError(f"{self.name}: {given!r}; allowed: {self.allowed}")


def option(
    default: Any,
    *,
    words: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    multiple_of: int | None = None,
    also: tuple[str, ...] = (),
    follows: tuple[str, ...] = (),
) -> Any:
    """Declare an option in the body of a class; the docstring below it is its title.

    All arguments are literals, see `Option`. In an instance the attribute is the value that the cell has.
    """
    return Option(default, words, minimum, maximum, above, below, multiple_of, also, follows)


def options_of(kind: type) -> dict[str, Option]:
    """Return the options that a class and its base classes declare, by name."""
    declared = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return {name: replace(value, name=name) for name, value in declared.items() if isinstance(value, Option)}


def in_words(
    *, ge: float | None = None, gt: float | None = None, le: float | None = None, lt: float | None = None
) -> str:
    """Return the limits of a number for a message, such as `from 2 to 50`; empty without any."""

    def shown(limit: float) -> str:
        return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"

    if ge is not None and le is not None:
        return f"from {shown(ge)} to {shown(le)}"
    texts = {"from {} on": ge, "up to {}": le, "above {}": gt, "below {}": lt}
    return ", ".join(text.format(shown(limit)) for text, limit in texts.items() if limit is not None)


def is_line(text: Any) -> bool:
    """Return whether this is text on one line, without control characters or characters that no file can hold."""
    return isinstance(text, str) and text.isprintable()
