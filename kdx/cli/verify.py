"""`kdx verify`: checks what an attention computes against theory."""

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from kdx.attention.verification import cases, properties
from kdx.attention.verification.cases import Finding
from kdx.cli.console import FOUND, out_json, out_lines, say, table, waits_for
from kdx.cli.options import Json
from kdx.components.apart import ask_apart
from kdx.errors import KdxError
from kdx.grid.components import add_any
from kdx.grid.model import GRID
from kdx.words.component import Component

EVERY = 10.0
"""Seconds between two lines on how far it is, where stderr is no terminal."""
WITHIN = 60  # seconds, for each check of a custom component
_ALL = 1200  # seconds, for all of them


class Device(StrEnum):
    """The device of the check."""

    CPU = "cpu"
    CUDA = "cuda"


def verify(
    device: Annotated[Device, typer.Option("--device", help="Where to run.")] = Device.CPU,
    component: Annotated[
        str | None,
        typer.Option("--component", metavar="FILE.py:Class", help="Only this custom component, whose code is run."),
    ] = None,
    json: Json = False,
) -> None:
    """Verify every attention against theory.

    Prints the largest error of each property, and the variants that miss it, in roundings: how far a float64 or float32
    result can be off because its inputs are rounded. Exit code 5 when one is above its tolerance.

    Each component gives what its class says, and leaves torch's settings and random numbers alone; in several variants
    of an attention with it, both paths and their gradients agree, padding and the other rows of a batch change nothing,
    a memory or a cache gives the same as one pass, gradients are right, and half precision is as near as it can be;
    without positions the order of tokens changes nothing; and what a class says of itself holds, such as that its
    kernel is positive semi-definite.

    Example: kdx verify --component my_kernels.py:Cauchy
    """
    cases.check_device(device.value)
    custom = None if component is None else _custom(component)
    if custom is None:
        checked = list(_checked(device))
    else:
        request = {"device": device.value}
        answer = ask_apart("kdx.training.rehearsal", [custom], request, within=WITHIN, limit=_ALL)
        checked = [cases.Finding(*finding) for finding in answer]
    missed = [finding for finding in checked if not finding.holds]
    if json:
        out_json([{**finding._asdict(), "holds": finding.holds} for finding in checked])
    else:
        out_lines(_by_check(checked))
    counts = f"{len(checked)} checks of properties"
    say(f"{counts}: {len(missed)} missed" if missed else f"{counts}: all hold")
    if custom is not None:
        checks = {finding.check for finding in missed}
        for known in properties.PROPERTIES:
            if known.name in checks:
                say(f"{custom.class_place}: `{custom.word}` misses `{known.name}`: {known.missed}")
    if missed:
        raise typer.Exit(FOUND)


def _checked(device: Device) -> Iterator[Finding]:
    """Yield the findings of all checks, and write to stderr how far it is."""
    checks, terminal, written = cases.checks(device.value), sys.stderr.isatty(), time.monotonic()
    for number, (name, check) in enumerate(checks.items(), 1):
        if terminal:
            waits_for(f"{number} of {len(checks)}: {name}")
        elif time.monotonic() - written >= EVERY:
            written = time.monotonic()
            say(f"{number - 1} of {len(checks)} components and choices checked")
        yield from check()
    waits_for("")


def _custom(word: str) -> Component:
    """Return the custom component that a word names, if it can be checked."""
    component = add_any(word, GRID)
    if component.axis not in cases.AXES:
        raise KdxError(f"`{word}` is a {component.axis}, which kdx verify does not check", allowed=cases.AXES)
    say(f"note: runs the code of {component.axis} {component.word} (source {component.sha256[:8]})")
    return component


def _by_check(checked: list[Finding]) -> Iterator[str]:
    """Return a line for each check, and one more for each variant that misses it."""
    groups: dict[str, list[Finding]] = {}
    for finding in checked:
        groups.setdefault(finding.check, []).append(finding)
    rows: list[tuple[str, int | None, str]] = []
    for check, members in groups.items():
        rows.append((check, len(members), f"{max(members, key=_error).error:.2g}"))
        rows += [(f"  MISSED by {each.variant}", None, f"{each.error:.2g}") for each in members if not each.holds]
    yield from table(("property", "variants", "largest error in roundings"), rows)


def _error(finding: Finding) -> float:
    """Return the error; NaN is the largest of all."""
    return finding.error if finding.error == finding.error else float("inf")
