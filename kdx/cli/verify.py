"""`kdx verify`: checks that attention computes what the papers say."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.options import Json
from kdx.components.apart import ask_apart
from kdx.components.component import Component
from kdx.components.find import find_any
from kdx.components.registry import add
from kdx.errors import KdxError

if TYPE_CHECKING:
    from kdx.attention.verification.golden import VectorAgreement
    from kdx.attention.verification.propositions import PropositionError


class Device(StrEnum):
    """The device of the check."""

    CPU = "cpu"
    CUDA = "cuda"


def verify(
    vectors: Annotated[
        str | None,
        typer.Option("--vectors", metavar="FILE.npz", help="Golden vectors, FILE.json beside."),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to run.")] = Device.CPU,
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            metavar="FILE.py:Class",
            help="Only this custom component, of a file or of a package; its code is run.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check both paths of every attention against theory, and against vectors from elsewhere.

    Prints the largest error of each proposition and of each variant, in roundings: how far a float64 or float32 result
    can be off because its inputs are rounded. Exit code 5 when one is above 32.

    With --part: it gives what its class says, and leaves torch's settings and random numbers alone; in several variants
    of an attention with it, both paths and their gradients agree, masks, memories, caches and other rows change
    nothing, gradients are right, and half precision is as near as it can be.

    Example: kdx verify --vectors attention.npz
    """
    # torch: the help of this command does not wait for it, nor does a message on its options.
    from kdx.attention.verification.golden import agreements
    from kdx.attention.verification.propositions import findings

    if part is not None and vectors is not None:
        raise KdxError("--part and --vectors exclude each other", hint="give one of them")
    compared = list(agreements(Path(vectors), device.value)) if vectors is not None else []
    own = None if part is None else _own_part(part)
    found = list(findings(device.value) if own is None else _findings_of(own, device.value))
    missed = sum(not one.holds for one in compared) + sum(not one.holds for one in found)
    if json:
        vector_rows = [
            {"case": one.case, "variant": one.variant, "check": f"{one.path} {one.dtype}", "error": one.error,
             "tolerance": one.tolerance, "holds": one.holds}
            for one in compared
        ]  # fmt: skip
        proposition_rows = [
            {"case": None, "variant": one.variant, "check": one.proposition, "error": one.error,
             "tolerance": one.tolerance, "holds": one.holds}
            for one in found
        ]  # fmt: skip
        out_json([*vector_rows, *proposition_rows])
    else:
        if compared:
            out(_vectors(compared))
        out(_propositions(found))
    counts = f"{len(compared)} comparisons with vectors, {len(found)} checks of propositions"
    say(f"{counts}: {missed} missed" if missed else f"{counts}: all hold")
    for line in _meanings(own, found) if own else ():
        say(line)
    if missed:
        raise typer.Exit(5)


WITHIN = 60  # seconds, for each check of a part of one's own
_ALL = 1200  # seconds, for all of them


def _own_part(word: str) -> Component:
    """The custom component that a word names, which may be checked."""
    # torch
    from kdx.attention.verification.component import AXES

    part = find_any(word, Path())
    add(part)
    if part.axis not in AXES:
        raise KdxError(f"`{word}` is a {part.axis}, which kdx verify does not check", allowed=AXES)
    return part


def _findings_of(part: Component, device: str) -> "Iterator[PropositionError]":
    """The checks of a part, made in another process."""
    # torch
    from kdx.attention.verification.propositions import PropositionError

    say(f"note: runs the code of {part.axis} {part.word} (source {part.sha256[:8]})")
    asked = {"device": device}
    found = ask_apart("kdx.cli.verify_part", [part], asked, within=WITHIN, limit=_ALL)
    yield from (PropositionError(*one) for one in found)


def _meanings(part: Component, found: "Iterable[PropositionError]") -> "Iterator[str]":
    """What is wrong with a part, a line for each proposition that it misses."""
    # torch
    from kdx.attention.verification.component import MEANING

    for proposition in dict.fromkeys(one.proposition for one in found if not one.holds):
        yield f"{part.class_place}: `{part.word}` misses `{proposition}`: {MEANING[proposition]}"


def _vectors(compared: "list[VectorAgreement]") -> str:
    """A line for each variant: its largest error on each path in each number format."""
    ways = list(dict.fromkeys((one.path, one.dtype) for one in compared))
    worst: dict[str, dict[tuple[str, str], VectorAgreement]] = {}
    for one in compared:
        row = worst.setdefault(one.variant, {})
        way = (one.path, one.dtype)
        row[way] = max(row.get(way, one), one, key=_error)
    width = max(map(len, worst))
    lines = [" ".join(["largest error in roundings".ljust(width), *(f"{p} {d}".rjust(16) for p, d in ways)])]
    for variant, row in worst.items():
        cells = [f"{row[way].error:.2g}{'' if row[way].holds else ' MISSED'}".rjust(16) for way in ways]
        lines.append(" ".join([variant.ljust(width), *cells]))
    return "\n".join(lines) + "\n\n"


def _propositions(found: "list[PropositionError]") -> str:
    """A line for each proposition, and one more for each variant that misses it."""
    groups: dict[str, list[PropositionError]] = {}
    for one in found:
        groups.setdefault(one.proposition, []).append(one)
    width = max(map(len, ["proposition", *groups]))
    lines = [f"{'proposition':{width}} variants  largest error in roundings"]
    for proposition, members in groups.items():
        largest = max(members, key=_error)
        lines.append(f"{proposition:{width}} {len(members):8}  {largest.error:.2g}")
        lines += [f"  MISSED by {one.variant}: {one.error:.2g}" for one in members if not one.holds]
    return "\n".join(lines)


def _error(one: "VectorAgreement | PropositionError") -> float:
    """NaN is the largest of all."""
    return one.error if one.error == one.error else float("inf")
