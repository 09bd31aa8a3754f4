"""A YAML file, read with the place of every value and without YAML's traps.

The scalars are those of YAML 1.2: `no`, `on` and `12:30` are words, `1e-3` is a number. Tags and aliases are refused
(a grid needs neither, and a few hundred bytes of nested aliases unfold to billions of values), and so are duplicate
keys, which YAML readers usually resolve in silence.

ruamel.yaml would give places too; but it takes aliases, reads `1_000` as a number, and took 0.8 s for a file of 20,000
values, which this reads in 0.07 s.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kdx.errors import Faults, KdxError, Place, shortened
from kdx.files import TooLargeError, read_file
from kdx.grid.not_yaml import forbidden_character, not_utf8, not_yaml

LARGEST_FILE = 1_000_000  # bytes
DEEPEST_NESTING = 50
LONGEST_KEY = 200  # characters; keys become labels, of which every run has one

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF|nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Node:
    """A value and where it stands; a list holds nodes, and so does a mapping, beside the places of its keys."""

    place: Place
    value: Any
    keys: dict[str, Place] = field(default_factory=dict)
    replaces: bool = False
    """Whether it was laid on another value, see `overlaid`."""

    def __str__(self) -> str:
        return written(self.plain())

    def plain(self) -> Any:
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def at(self, path: tuple[str | int, ...]) -> Place:
        """Return the place of the value at `path`, or of the nearest one around it."""
        node = self
        for step in path:
            inner = node._inner(step)
            if inner is None:
                break
            node = inner
        return node.place

    def key(self, path: tuple[str | int, ...]) -> Place:
        """Return the place of the key that leads to the value at `path`."""
        node = self
        for step in path[:-1]:
            node = node._inner(step) or node
        return node.keys.get(str(path[-1]), node.place)

    def inner(self, path: Sequence[str | int]) -> "Node | None":
        """Return the value at `path`; None if there is none."""
        node: Node | None = self
        for step in path:
            node = node._inner(step) if node is not None else None
        return node

    def only(self, keys: Collection[str]) -> "Node":
        """Return the mapping without its other keys."""
        return replace(self, value={key: node for key, node in self.value.items() if key in keys})

    def without(self, path: tuple[str | int, ...]) -> "Node":
        """Return the same without the entry at `path`; all of it if there is no such entry."""
        step, *rest = path
        inner = self._inner(step)
        if inner is None or inner is self:
            return Node(self.place, {}, {}) if inner is self else self
        if isinstance(self.value, list):
            items = list(self.value)
            items[int(step) : int(step) + 1] = [inner.without(tuple(rest))] if rest else []
            return replace(self, value=items)
        values = {key: node for key, node in self.value.items() if key != step}
        if rest and (shorter := inner.without(tuple(rest))).value:
            values[str(step)] = shorter
        return replace(self, value=values)

    def _inner(self, step: str | int) -> "Node | None":
        if isinstance(self.value, list):
            return self.value[step] if isinstance(step, int) and step < len(self.value) else None
        # What stands alone is a list of one.
        return self if step == 0 else self.value.get(step) if isinstance(self.value, dict) else None

    def overlaid(self, over: "Node") -> "Node":
        """Return `over` laid on this: mappings merge key by key, anything else replaces; each value keeps its place."""
        if not isinstance(self.value, dict) or not isinstance(over.value, dict):
            return replace(over, replaces=True)
        values = dict(self.value)
        for key, node in over.value.items():
            values[key] = values[key].overlaid(node) if key in values else node
        return Node(self.place, values, self.keys | over.keys)


NOTHING_SET = Node(Place("--set", 0, 0), {})
"""What a command line without `--set` sets."""


def at_path(path: Sequence[str], value: Node) -> Node:
    """Return a value under each step of a dotted key."""
    for step in reversed(path):
        value = Node(value.place, {step: value}, {step: value.place})
    return value


def written(value: Any) -> str:
    """Return a value as a file has it, shortened; a text that would be read as another value stands in quotes."""
    return shortened(in_flow_style(value))


def in_flow_style(value: Any) -> str:
    """Return a value on one line, as YAML has it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {in_flow_style(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_flow_style, value))}]"
    if not isinstance(value, str):
        return shortened(value)
    is_other = value in _WORDS or _INTEGER.fullmatch(value) or _FLOAT.fullmatch(value)
    return f"'{value}'" if is_other or value != value.strip() else value


def no_value(key: str, place: Place, allowed: Iterable[str] | str | None) -> KdxError:
    """Return the fault of a key that has nothing after its colon, or null."""
    return KdxError(f"`{key}` has no value", place=place, allowed=allowed, hint="write one, or remove it")


def read(
    path: Path,
    faults: list[KdxError],
    *,
    what: str = "grid",
    most: int = LARGEST_FILE,
    texts: dict[Path, str] | None = None,
) -> Node:
    """Return the mapping that a file holds; YAML's traps go to `faults`, to be reported with the grid's other faults.

    Args:
        faults: the list that they are appended to.
        what: what a message calls the file.
        most: largest number of bytes.
        texts: takes the text of the file.

    Raises:
        Faults: the file cannot be read or is not YAML at all.
    """
    name = str(path)
    try:
        raw = read_file(path, most)
    except TooLargeError as error:
        allowed = f"at most {LARGEST_FILE} bytes" + (", with all that it extends" if most < LARGEST_FILE else "")
        raise Faults([KdxError(f"{error.size} bytes are no {what}", place=name, allowed=allowed)]) from error
    except OSError as error:
        raise Faults([KdxError(f"cannot read the {what}: {error.strerror}", place=name)]) from error
    if (fault := not_utf8(name, raw)) is not None:
        raise Faults([fault])
    text = raw.decode("utf-8-sig")
    if texts is not None:
        texts[path] = text
    return _Reader(name, text, faults, what).document()


def read_value(text: str, place: Place, faults: list[KdxError]) -> Node | None:
    """Return a value of the command line as a file would have it, all of it at `place`; None if it is faulty."""
    own: list[KdxError] = []
    try:
        # A terminal's bytes that are not UTF-8 come as surrogates.
        text.encode()
        # As the value of a key, so that it is read as in a grid.
        node = _Reader(place.file, f"value: {text}", own, "value", place).document().value.get("value")
    except UnicodeEncodeError:
        own, node = [KdxError("a value that is not UTF-8", hint="use a terminal that speaks UTF-8")], None
    except Faults as error:
        own, node = [*error.faults], None
    if "\n" in text:
        own.append(KdxError("a value of several lines", place=place, allowed="one line"))
    faults.extend(KdxError(fault.problem, place=place, allowed=fault.allowed, hint=fault.hint) for fault in own)
    return None if own else node


class _Reader:
    """Builds nodes from the parser's events; a recursive composer would follow aliases before it could be stopped."""

    def __init__(self, name: str, text: str, faults: list[KdxError], what: str, place: Place | None = None) -> None:
        """`place`: that of all values of a text that is no file."""
        self.name = name
        self.text = text
        self.what = what
        self.place = place
        self.faults = faults
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> Node:
        try:
            self._take(yaml.StreamStartEvent)
            if isinstance(next(self.events), yaml.StreamEndEvent):
                hint = "`kdx init` copies examples to start from" if self.what == "grid" else None
                raise KdxError(f"the {self.what} is empty", place=self.name, hint=hint)
            if (root := self._node(next(self.events), 0)) is None:
                raise Faults(self.faults)
            self._take(yaml.DocumentEndEvent)
            if not isinstance(event := next(self.events), yaml.StreamEndEvent):
                raise KdxError("a second document", place=self._place(event), allowed=f"one {self.what} a file")
        except yaml.MarkedYAMLError as error:
            raise Faults([*self.faults, not_yaml(self.name, self.text, error)]) from error
        except yaml.reader.ReaderError as error:
            raise Faults([*self.faults, forbidden_character(self.name, self.text, error)]) from error
        except Faults:
            raise
        except KdxError as error:
            raise Faults([*self.faults, error]) from error
        if not isinstance(root.value, dict):
            problem, hint = (
                f"a {self.what} is a mapping of keys to values",
                "write KEY: VALUE, with a blank after the colon",
            )
            raise Faults([*self.faults, KdxError(problem, place=root.place, hint=hint)])
        return root

    def _take(self, kind: type[yaml.Event]) -> None:
        event = next(self.events)
        assert isinstance(event, kind), event

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        assert mark is not None
        return self.place or Place(self.name, mark.line + 1, mark.column + 1)

    def _node(self, event: yaml.Event, depth: int) -> Node | None:
        """Return the value that begins with an event; None if it cannot be read, so that it has no further fault."""
        place = self._place(event)
        if depth > DEEPEST_NESTING:
            raise KdxError("nested too deep", place=place, allowed=f"at most {DEEPEST_NESTING} levels")
        if isinstance(event, yaml.AliasEvent):
            problem = f"alias `*{shortened(event.anchor)}`"
            raise KdxError(problem, place=place, hint="write the value out, or share it through `extends:`")
        tag = getattr(event, "tag", None)
        # The bare `!` is how a parser reports a quoted scalar's own tag.
        if tag is not None and tag != "!":
            self.faults.append(
                KdxError(f"tag `{shortened(tag)}`", place=place, hint=f"a {self.what} has plain values only; remove it")
            )
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(inner := next(self.events), yaml.SequenceEndEvent):
                items.append(self._node(inner, depth + 1))
            return None if None in items else Node(place, items)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth)
        assert isinstance(event, yaml.ScalarEvent), event
        before = len(self.faults)
        plain = event.implicit[0] and event.style in (None, "")
        if plain and event.end_mark is not None and event.end_mark.line + 1 > place.line:
            self._refuse_items_in(event, place)
        value = self._scalar(event.value, place) if plain else self._text(event.value, place)
        return Node(place, value) if len(self.faults) == before else None

    def _refuse_items_in(self, event: yaml.ScalarEvent, place: Place) -> None:
        """Refuse a list under a key that has a value already: YAML takes its items for further lines of the value."""
        assert event.end_mark is not None
        following = self.text.splitlines()[place.line : event.end_mark.line + 1]
        if any(line.lstrip().startswith("- ") for line in following):
            problem = f"a list under a key that has a value already, `{shortened(event.value)}`"
            self.faults.append(KdxError(problem, place=place, hint="remove the value or the list, or use quotes"))

    def _mapping(self, place: Place, depth: int) -> Node:
        values: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            here = self._place(event)
            key = None
            if not isinstance(event, yaml.ScalarEvent):
                self._node(event, depth + 1)
                self.faults.append(KdxError("a list or a mapping as a key", place=here))
            elif len(event.value) > LONGEST_KEY:
                problem = f"a key of {len(event.value):,} characters, `{shortened(event.value)}`"
                self.faults.append(KdxError(problem, place=here, allowed=f"at most {LONGEST_KEY}"))
            else:
                key = self._text(event.value, here)
            value = self._node(next(self.events), depth + 1)
            if key is None:
                continue
            if key in keys:
                problem = f"`{shortened(key)}` stands twice; first at line {keys[key].line}"
                self.faults.append(KdxError(problem, place=here, hint="keep one of them"))
            keys.setdefault(key, here)
            # A key that is written again below an empty one is meant to have that value.
            if value is not None and (key not in values or values[key].value is None):
                values[key] = value
        return Node(place, values, keys)

    def _text(self, text: str, place: Place) -> str:
        text = unicodedata.normalize("NFC", text)
        if any(unicodedata.category(sign) in ("Cs", "Cc") and sign not in "\n\t" for sign in text):
            self.faults.append(
                KdxError(f"a control character in {shortened(repr(text))}", place=place, hint="remove it")
            )
        return text

    def _scalar(self, text: str, place: Place) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text) and len(text) < 20:
            return int(text)
        if _LEADING_ZERO.fullmatch(text):
            hint = f"write {int(text)}, or '{text}' in quotes for text" if len(text) < 20 else None
            self.faults.append(
                KdxError(f"`{shortened(text)}` is octal to some and decimal to others", place=place, hint=hint)
            )
            return None
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and abs(float(text)) == float("inf")):
            self.faults.append(KdxError(f"`{shortened(text)}` is not a finite number", place=place))
            return None
        if _FLOAT.fullmatch(text):
            return float(text)
        return self._text(text, place)
