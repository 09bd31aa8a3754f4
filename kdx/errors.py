"""Errors that a user can fix: a problem with its place, the allowed values, and what to do.

Any other exception is a bug of kdx and keeps its traceback. Nothing below `kdx.cli` prints or exits.
"""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

LONGEST_PART = 2000
"""The most characters shown of a place, a problem, the allowed values, and a hint."""
MOST_SHOWN = 20
"""The most faults shown for one input."""
LONGEST_VALUE = 80
"""The most characters shown of a value."""


@dataclass(frozen=True, order=True)
class Place:
    """The place of a value in a file; line and column count from 1, as in editors.

    Line 0 is for a value that is in no file, such as one from the command line.
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
        self.allowed = allowed if allowed is None or isinstance(allowed, str) else ", ".join(allowed)
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        problem = _cut(self.problem)
        # The name of a file may have line feeds, and could thus imitate a message.
        place = _cut(str(self.place or "").replace("\n", "\\n"))
        remedies = [f"  allowed: {_cut(self.allowed)}"] if self.allowed else []
        if self.hint:
            # Nobody finds a hint below a long list.
            remedies.insert(0 if len(self.allowed or "") > LONGEST_VALUE else 1, f"  hint: {_cut(self.hint)}")
        return "\n".join([f"{place}: {problem}" if place else problem, *remedies])


def in_a_line(error: KdxError) -> str:
    """Return a problem with what is allowed and what to do, for a list of what was left out."""
    parts = (error.problem, error.allowed and f"allowed: {error.allowed}", error.hint)
    return "; ".join(_cut(part) for part in parts if part)


class Faults(KdxError):
    """Every fault of one input, in the order of their places; the first `MOST_SHOWN` are shown."""

    def __init__(self, faults: Sequence[KdxError]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{len(faults)} faults")

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults[:MOST_SHOWN]]
        if more := len(self.faults) - len(lines):
            lines.append(f"… and {more:,} more")
        return "\n".join(lines)


def by_place(faults: Iterable[KdxError]) -> Faults:
    """Return faults in the order in which an editor shows their places."""

    def order(fault: KdxError) -> Place:
        return fault.place if isinstance(fault.place, Place) else Place(str(fault.place), 0, 0)

    return Faults(sorted(faults, key=order))


class ComponentError(KdxError):
    """A custom component does not do what every component of its kind must, or what its class declares."""

    def __init__(self, problem: str, *, component: type | None = None, **shown: Any) -> None:
        """Take the class of the component (None if it could be one of several), and what `KdxError` takes."""
        super().__init__(problem, **shown)
        self.component = component


class DatabaseError(KdxError):
    """The results database is absent, unreadable, of another application or of another schema."""

    exit_code = 3


class AccessError(KdxError):
    """A file or folder may not be read or written by this user."""

    exit_code = 3


class StorageError(KdxError):
    """The disk is full or failed; what was recorded before is safe."""

    exit_code = 74


class ServerError(KdxError):
    """The system killed the process that workers are forked from, or gives no process; the runs can be resumed."""

    exit_code = 75


class ServerEndedError(KdxError):
    """The process that workers are forked from ended by itself, which is a bug of kdx."""

    exit_code = 1


class ChangedError(KdxError):
    """A run was started under other conditions than the current ones: libraries, threads, data or code."""

    exit_code = 5

    def __init__(self, problem: str, *, changes: str | None = None, **shown: Any) -> None:
        """Take the difference, such as `torch 2.12.0 → 2.13.0`, and what `KdxError` takes."""
        super().__init__(problem, **shown)
        self.changes = changes


TRY_AGAIN = "then try again; what was recorded stands, and kdx resume continues a sweep"
"""The end of a hint about a failure that no command caused."""

FREE_SPACE = f"free some space (df and df -i show what there is), {TRY_AGAIN}"
"""The hint about a full disk, whoever meets it first: SQLite, or the file of a checkpoint."""


_FULL = StorageError, "the disk is full", FREE_SPACE
_FAILED = StorageError, "the disk failed", f"check the disk, {TRY_AGAIN}"
_FORBIDDEN = AccessError, "no permission", f"look at its owner and mode and those of its folder, {TRY_AGAIN}"
_READ_ONLY = (
    AccessError,
    "no permission",
    f"name a folder on another disk, or check this one: a disk that failed is often mounted so; {TRY_AGAIN}",
)
_OF_THE_MACHINE: dict[int | None, tuple[type[KdxError], str, str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EIO: _FAILED,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
}


def of_the_machine(error: OSError, place: str | None = None) -> KdxError | None:
    """Return the error for a system call that failed because of the disk or permissions; None for anything else.

    Args:
        place: the file or folder, for an error that does not name one.
    """
    if error.errno not in _OF_THE_MACHINE:
        return None
    kind, problem, remedy = _OF_THE_MACHINE[error.errno]
    place = place if error.filename is None else str(error.filename)
    return kind(f"{problem}: {error.strerror}", place=place, hint=remedy)


def kind_of(error: OSError) -> type[KdxError]:
    """Return the kind of error for something that cannot be written: the disk failed it, or it cannot be reached."""
    return _OF_THE_MACHINE.get(error.errno, _FORBIDDEN)[0]


_EXTRAS = {"pandas": "pandas", "psycopg": "postgres", "pyarrow": "parquet"}
"""Package that kdx imports → the extra of kdx that has it."""
_TRAINS = ("torch", "pytorch_lightning", "tokenizers", "sacrebleu", "sacremoses", "lion_pytorch")
"""Packages without which kdx still reads, plans, reports and checks."""


def installed_by(extra: str = "") -> str:
    """Return the line that installs what kdx needs, or an extra of it, as a hint."""
    what = f"'.[{extra}]'" if extra else "."
    return f"in a clone of kdx: pip install -c constraints.txt {what}"


def of_a_package(error: ImportError) -> KdxError | None:
    """Return the error for a package that is not installed, with the line that installs it; None for anything else."""
    package = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if package in _TRAINS:
        problem = f"{package} is not installed: this kdx can read, plan, report and check, but not train"
        return KdxError(problem, hint=installed_by())
    if package in _EXTRAS:
        return KdxError(f"{package} is not installed", hint=installed_by(_EXTRAS[package]))
    return None


@contextmanager
def packages_named() -> Iterator[None]:
    """Raise KdxError for a package that is not installed, see `of_a_package`."""
    try:
        yield
    except ImportError as error:
        named = of_a_package(error)
        if named is None:
            raise
        raise named from error


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known word nearest to `word`, or None if none is near."""
    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.65)
    return f"did you mean `{near[0]}`?" if near else None


def _cut(text: str) -> str:
    """Return the start and the end of a long text."""
    if len(text) <= LONGEST_PART:
        return text
    end = LONGEST_PART // 4
    return f"{text[: LONGEST_PART - end]} … {text[-end:]}"


def shortened(value: Any) -> str:
    """Return a value as a message shows it: on one line, and shortened if it is long."""
    # Spelled as in YAML, so that a user finds them in the file.
    plain = {None: "null", True: "true", False: "false"}
    text = plain[value] if value is None or isinstance(value, bool) else " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
