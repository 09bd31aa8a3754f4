"""What a user can mend: a problem with its place, what is allowed there, and what to do.

Anything that is not a `KdxError` is a fault of kdx and keeps its traceback. Nothing below `kdx.cli` prints or exits.
"""

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

LONGEST_PART = 2000
"""Characters that are shown of a place, of a problem, of what is allowed and of a hint."""
MOST_SHOWN = 20
"""Faults of one input that are shown."""
MOST_FOUND = 1000
"""Faults of one input that are looked for."""
LONGEST_VALUE = 80
"""Characters that are shown of a value."""
_LONGEST_WORD = 100  # characters; nobody mistypes a longer one


@dataclass(frozen=True, order=True)
class Place:
    """Where in a file a value stands; line and column count from 1, as editors do.

    Line 0 is that of a value which stands in no file, such as one of the command line.
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class KdxError(Exception):
    """One problem: `place: problem`, then what is allowed, then a hint. Exit code 2: bad input, nothing started."""

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        place: Place | str | None = None,
        allowed: Iterable[str] | str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.place = place
        self.allowed = allowed if allowed is None or isinstance(allowed, str) else _listed(tuple(allowed))
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        problem = _cut(self.problem)
        # A file's name may have line feeds, with which it could make up a message of its own.
        place = _cut(str(self.place or "").replace("\n", "\\n"))
        lines = [f"{place}: {problem}" if place else problem]
        if self.allowed:
            lines.append(f"  allowed: {_cut(self.allowed)}")
        if self.hint:
            lines.append(f"  hint: {_cut(self.hint)}")
        return "\n".join(lines)


class Faults(KdxError):
    """Every fault of one input at once, in the order of their places; of many, the first are shown."""

    def __init__(self, faults: Sequence[KdxError], *, all_found: bool = True) -> None:
        """`all_found`: whether these are all, or the search ended with them."""
        self.faults = tuple(faults)
        self.all_found = all_found
        super().__init__(f"{len(faults)} faults")

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults[:MOST_SHOWN]]
        if more := len(self.faults) - len(lines):
            lines.append(f"… and {'' if self.all_found else 'at least '}{more:,} more")
        return "\n".join(lines)


class FaultList(list[KdxError]):
    """The faults of one input as they are found; the search ends with the last of `MOST_FOUND`.

    Then `append` and `extend` raise all of them as `Faults`.
    """

    def append(self, fault: KdxError) -> None:
        if len(self) < MOST_FOUND:
            super().append(fault)
        if len(self) == MOST_FOUND:
            raise by_place(self, all_found=False)

    def extend(self, faults: Iterable[KdxError]) -> None:
        for fault in faults:
            self.append(fault)


def by_place(faults: Iterable[KdxError], *, all_found: bool = True) -> Faults:
    """All of these at once, in the order in which an editor shows their places."""

    def order(fault: KdxError) -> tuple[str, int, int]:
        place = fault.place
        return (place.file, place.line, place.column) if isinstance(place, Place) else (str(place), 0, 0)

    return Faults(sorted(faults, key=order), all_found=all_found)


class ComponentError(KdxError):
    """A custom component does something else than every component of its kind must, or than its class says."""

    def __init__(
        self,
        problem: str,
        *,
        component: type | None = None,
        allowed: Iterable[str] | str | None = None,
        hint: str | None = None,
    ) -> None:
        """`component`: its class; None if it is unknown which of several it is."""
        super().__init__(problem, allowed=allowed, hint=hint)
        self.component = component


class DatabaseError(KdxError):
    """The results database is absent, unreadable, of another application or of another schema."""

    exit_code = 3


class AccessError(KdxError):
    """A file or folder may not be read or written by this user."""

    exit_code = 3


class StorageError(KdxError):
    """The disk is full or failed; what was recorded before stands."""

    exit_code = 74


class ServerError(KdxError):
    """The system killed the process that workers are forked from, or gives no process; the runs can go on later."""

    exit_code = 75


class ServerEndedError(KdxError):
    """The process that workers are forked from ended of its own accord, which is a fault of kdx."""

    exit_code = 1


class ChangedError(KdxError):
    """A run began under other conditions than those of now: libraries, threads, data or code."""

    exit_code = 5

    def __init__(
        self,
        problem: str,
        *,
        place: Place | str | None = None,
        allowed: Iterable[str] | str | None = None,
        hint: str | None = None,
        changes: str | None = None,
    ) -> None:
        """`changes`: what differs, such as `torch 2.12.0 → 2.13.0`."""
        super().__init__(problem, place=place, allowed=allowed, hint=hint)
        self.changes = changes


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FAILING = {errno.EIO, errno.EROFS}  # a disk that failed is often mounted read-only from then on
_FORBIDDEN = {errno.EACCES, errno.EPERM}
TRY_AGAIN = "then try again; what was recorded stands, and kdx resume continues a sweep"
"""The end of a hint on what no command is to blame for."""


def of_the_machine(error: OSError, place: str | None = None) -> KdxError | None:
    """What a failed system call says of the disk or of permissions; None: it says something else.

    Args:
        place: the file or folder in question, where the error names none.
    """
    place = place if error.filename is None else str(error.filename)
    if error.errno in _NO_ROOM:
        return StorageError(
            f"the disk is full: {error.strerror}",
            place=place,
            hint=f"free some space (df and df -i tell what there is), {TRY_AGAIN}",
        )
    if error.errno in _FAILING:
        return StorageError(
            f"the disk failed: {error.strerror}",
            place=place,
            hint=f"look after the disk, {TRY_AGAIN}",
        )
    if error.errno in _FORBIDDEN:
        return AccessError(
            f"no permission: {error.strerror}",
            place=place,
            hint=f"look at its owner and mode and those of its folder, {TRY_AGAIN}",
        )
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the known word nearest to `word`, or None when nothing is near."""
    if len(word) > _LONGEST_WORD:
        return None
    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def _cut(text: str) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= LONGEST_PART:
        return text
    end = LONGEST_PART // 4
    return f"{text[: LONGEST_PART - end]} … {text[-end:]}"


def _listed(words: Sequence[str]) -> str:
    """The first of many words, and how many there are."""
    whole = ", ".join(words)
    if len(whole) <= LONGEST_PART:
        return whole
    room, count = LONGEST_PART // 2, 0
    while count < len(words) and room >= 0:
        room -= len(words[count]) + 2
        count += 1
    return f"{', '.join(words[:count])}, … ({len(words):,} in all)"


def shortened(value: Any) -> str:
    """A value as a message shows it: on one line, and not all of a long one."""
    # As YAML spells them, since somebody is to find them in a file.
    plain = {None: "null", True: "true", False: "false"}
    text = plain[value] if value is None or isinstance(value, bool) else " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
