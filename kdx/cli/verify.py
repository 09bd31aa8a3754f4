"""`kdx verify`: checks what an attention computes against theory, and against vectors from elsewhere."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.options import Json
from kdx.components.apart import ask_apart
from kdx.components.find import find_any
from kdx.components.registry import add
from kdx.errors import KdxError
from kdx.words.component import Component

if TYPE_CHECKING:
    from kdx.attention.verification.cases import Finding


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
    component: Annotated[
        str | None,
        typer.Option(
            "--component",
            metavar="FILE.py:Class",
            help="Only this custom component, of a file or of a package; its code is run.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Verify every attention against theory and test vectors.

    Prints the largest error of each property and of each variant, in roundings: how far a float64 or float32 result
    can be off because its inputs are rounded. Exit code 5 when one is above its tolerance.

    Each component gives what its class says, and leaves torch's settings and random numbers alone; in several variants
    of an attention with it, both paths and their gradients agree, masks, memories, caches and other rows change
    nothing, gradients are right, and half precision is as near as it can be; without positions the order of tokens
    changes nothing; and what a class says of itself holds, such as that its kernel is positive semi-definite.

    Example: kdx verify --vectors attention.npz
    """
    # torch: the help of this command does not wait for it, nor does a message on its options.
    from kdx.attention.verification.cases import check_device, findings
    from kdx.attention.verification.golden import agreements

    if component is not None and vectors is not None:
        raise KdxError("--component and --vectors exclude each other", hint="give one of them")
    check_device(device.value)
    compared = list(agreements(Path(vectors), device.value)) if vectors is not None else []
    own = None if component is None else _custom(component)
    found = list(findings(device.value) if own is None else _findings_of(own, device.value))
    missed = [finding for finding in (*compared, *found) if not finding.holds]
    if json:
        out_json([{**finding._asdict(), "holds": finding.holds} for finding in (*compared, *found)])
    else:
        if compared:
            out(_by_variant(compared))
        out(_by_check(found))
    counts = f"{len(compared)} comparisons with vectors, {len(found)} checks of properties"
    say(f"{counts}: {len(missed)} missed" if missed else f"{counts}: all hold")
    for line in _meanings(own, missed) if own else ():
        say(line)
    if missed:
        raise typer.Exit(5)


WITHIN = 60  # seconds, for each check of a custom component
_ALL = 1200  # seconds, for all of them


def _custom(word: str) -> Component:
    """Return the custom component that a word names, if it can be checked."""
    # torch
    from kdx.attention.verification.cases import AXES

    component = find_any(word, Path())
    add(component)
    if component.axis not in AXES:
        raise KdxError(f"`{word}` is a {component.axis}, which kdx verify does not check", allowed=AXES)
    return component


def _findings_of(component: Component, device: str) -> "list[Finding]":
    """Return the checks of a component, made in another process."""
    # torch
    from kdx.attention.verification.cases import Finding

    say(f"note: runs the code of {component.axis} {component.word} (source {component.sha256[:8]})")
    request = {"device": device}
    answer = ask_apart("kdx.training.rehearsal", [component], request, within=WITHIN, limit=_ALL)
    return [Finding(*finding) for finding in answer]


def _meanings(component: Component, missed: "Iterable[Finding]") -> Iterator[str]:
    """Yield what is wrong with a component, a line for each property that it misses."""
    # torch
    from kdx.attention.verification.properties import PROPERTIES

    checks = {finding.check for finding in missed}
    for known in PROPERTIES:
        if known.name in checks:
            yield f"{component.class_place}: `{component.word}` misses `{known.name}`: {known.missed}"


def _by_variant(compared: "list[Finding]") -> str:
    """Return a line for each variant: its largest error on each path in each number format."""
    checks = list(dict.fromkeys(finding.check for finding in compared))
    worst: dict[tuple[str, str], Finding] = {}
    for finding in sorted(compared, key=_error):
        worst[finding.variant, finding.check] = finding
    variants = list(dict.fromkeys(finding.variant for finding in compared))
    width = max(map(len, variants))
    lines = [" ".join(["largest error in roundings".ljust(width), *(check.rjust(16) for check in checks)])]
    for variant in variants:
        row = [worst[variant, check] for check in checks]
        cells = [f"{finding.error:.2g}{'' if finding.holds else ' MISSED'}".rjust(16) for finding in row]
        lines.append(" ".join([variant.ljust(width), *cells]))
    return "\n".join(lines) + "\n\n"


def _by_check(found: "list[Finding]") -> str:
    """Return a line for each check, and one more for each variant that misses it."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.check, []).append(finding)
    width = max(map(len, ["property", *groups]))
    lines = [f"{'property':{width}} variants  largest error in roundings"]
    for check, members in groups.items():
        lines.append(f"{check:{width}} {len(members):8}  {max(members, key=_error).error:.2g}")
        lines += [f"  MISSED by {one.variant}: {one.error:.2g}" for one in members if not one.holds]
    return "\n".join(lines)


def _error(finding: "Finding") -> float:
    """NaN is the largest of all."""
    return finding.error if finding.error == finding.error else float("inf")
