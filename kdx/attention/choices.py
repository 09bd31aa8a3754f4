"""The classes of an attention's components, by their names, and the options that each class takes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from kdx.attention.encodings import ENCODINGS
from kdx.attention.families import options_of_words
from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    NormaliserFunction,
    PositionScheme,
    ValueFunction,
    Word,
)
from kdx.attention.kernels import KERNELS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.words.family import Family
from kdx.words.option import options_of

Choice = TypeVar("Choice", bound=StrEnum)
W = TypeVar("W", bound=Word)


class Choices(NamedTuple):
    """The classes of an attention's components, with their options."""

    kernel: type[KernelFunction]
    normaliser: type[NormaliserFunction]
    positions: Mapping[str, type[PositionScheme]]
    """Name without dots, as names of parameters must be → the scheme."""
    value: type[ValueFunction]
    filter: type[FilterFunction]
    encoding: type[AbsoluteEncoding] | None
    options: Mapping[type[Word], Mapping[str, Any]]

    def make(self, kind: type[W], *arguments: Any) -> W:
        """Return an instance of one of the classes, with its options."""
        return kind(*arguments, **self.options[kind])


def choices_of(
    *,
    kernel: str | type[KernelFunction],
    normaliser: str | type[NormaliserFunction] | None,
    positions: Sequence[str | type[PositionScheme]],
    value: str | type[ValueFunction],
    filter: str | type[FilterFunction],
    encoding: str | type[AbsoluteEncoding] | None,
    symmetric: bool,
    options: Mapping[str, Any],
) -> Choices:
    """Return the classes that names stand for; arguments as in `KernelAttention`.

    Raises:
        ValueError: an unknown name, a scheme given twice, a normaliser that does not fit the kernel, an option that no
            component has, or a use of t without an encoding.
    """
    schemes = [scheme for scheme in positions if scheme != "none"]
    scheme_classes = {_name(scheme): _class_of("positions", scheme, POSITIONS, PositionScheme) for scheme in schemes}
    if len(scheme_classes) < len(schemes):
        names = ", ".join(map(_name, positions))
        raise ValueError(f"positions: a scheme stands twice in {names}; allowed: each once")
    kernel_class = _class_of("kernel", kernel, KERNELS, KernelFunction)
    normaliser = normaliser or kernel_class.normaliser
    normaliser_class = _class_of("normaliser", normaliser, NORMALISERS, NormaliserFunction)
    value_class = _class_of("value", value, VALUES, ValueFunction)
    filter_class = _class_of("filter", filter, FILTERS, FilterFunction)
    if kernel_class.gives not in normaliser_class.kernels:
        able = [known.word for known in NORMALISERS.definitions() if kernel_class.gives in known.kernels]
        raise ValueError(
            f"normaliser: {_name(normaliser)} has no meaning for kernel {_name(kernel)}; allowed: {', '.join(able)}"
        )
    classes = [kernel_class, normaliser_class, *scheme_classes.values(), value_class, filter_class]
    encoding_class = None if encoding is None else _class_of("encoding", encoding, ENCODINGS, AbsoluteEncoding)
    if encoding_class is not None:
        classes.append(encoding_class)
    elif value_class.uses_vector or any(scheme.uses_vector for scheme in scheme_classes.values()):
        raise ValueError(f"encoding: None, but positions or values use it; allowed: {', '.join(ENCODINGS)}")
    options_by_class = _options_by_class(classes, options)
    if symmetric:
        for scheme_options in (options_by_class[scheme] for scheme in classes if "xl_bias" in options_of(scheme)):
            if scheme_options.get("xl_bias", "none") != "none":
                raise ValueError("xl_bias: u would make a symmetric kernel asymmetric; allowed with symmetric: none")
            scheme_options["xl_bias"] = "none"
    return Choices(
        kernel_class, normaliser_class, scheme_classes, value_class, filter_class, encoding_class, options_by_class
    )


def choice(argument: str, name: str, enum: type[Choice]) -> Choice:
    """Return the member of an enumeration that has the name.

    Raises:
        ValueError: no member has the name.
    """
    try:
        return enum(name)
    except ValueError:
        raise ValueError(f"{argument}: {name!r}; allowed: {', '.join(enum)}") from None


def _class_of(argument: str, given: str | type[W], family: Family[W, Any], base: type[W]) -> type[W]:
    """Return the class that a name stands for, or the class itself."""
    if isinstance(given, type) and issubclass(given, base):
        return given
    if isinstance(given, str) and given in family:
        return family[given]
    names = ["none", *family] if base is PositionScheme else family
    raise ValueError(f"{argument}: {given!r}; allowed: {', '.join(names)}, or a class of {base.__name__}")


def _name(given: str | type[Word]) -> str:
    return given.replace(".", "_") if isinstance(given, str) else given.__name__


def _options_by_class(classes: Sequence[type[Word]], options: Mapping[str, Any]) -> dict[type[Word], dict[str, Any]]:
    """Return the options that each class has; options of other names have no effect, as in a grid."""
    by_class = {kind: {name: options[name] for name in options_of(kind) if name in options} for kind in classes}
    known = options_of_words().keys() | {name for kind in classes for name in options_of(kind)}
    if unknown := options.keys() - known:
        name = min(unknown)
        allowed = ", ".join(sorted(known))
        raise ValueError(f"{name}: {options[name]!r}, but no component has such an option; allowed: {allowed}")
    return by_class
