"""What stands beside a command that trains: a mirror of its runs, and the user's command at its end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli.console import say, waits_for
from kdx.cli.group import Flags
from kdx.errors import KdxError, of_a_package, of_the_machine
from kdx.mirrors.choice import MirrorName, require

if TYPE_CHECKING:
    from kdx.cli.context import Context

PATIENCE = 60.0
"""Seconds that a command waits at its end until its mirror has everything."""


@dataclass(frozen=True)
class Beside:
    """The mirror and the last command of a command that trains."""

    mirror: Annotated[
        MirrorName | None,
        typer.Option(
            "--mirror", envvar="KDX_MIRROR", metavar="PROGRAM", help=f"Mirror runs to {', '.join(MirrorName)}."
        ),
    ] = None
    on_end: Annotated[
        str | None, typer.Option("--on-end", metavar="COMMAND", help="Run this at the end, with KDX_OUTCOME set.")
    ] = None


BesideRuns = Annotated[Beside, Flags(Beside)]


@contextmanager
def working(context: "Context", beside: Beside, **others: Any) -> Iterator[None]:
    """Entered before a command that may train.

    Raises:
        KdxError: the mirror's program is not installed.
    """
    waits_for("importing")
    with ExitStack() as stack:
        if beside.on_end is not None:
            stack.enter_context(_command_at_end(beside.on_end, context))
        if beside.mirror is not None:
            require(beside.mirror)
            stack.enter_context(_mirrored(beside.mirror, context))
        yield


@contextmanager
def training(
    context: "Context", beside: Beside, slurm: Any = None, budget: Any = None, **others: Any
) -> Iterator[None]:
    """Entered before a command that trains: as `working`, and the process that imports torch starts.

    Args:
        slurm: options of jobs, to which the command leaves all runs; None if it trains here.
        budget: of this one command; None if it has none.

    Raises:
        KdxError: as `working`, or what is of one command is asked of the many workers of Slurm.
    """
    from kdx.sweep.server_process import early  # late: help does without

    if slurm is not None:
        if budget is not None:
            raise KdxError("--budget and --slurm exclude each other", hint="--time is the time limit of a job")
        if beside.on_end is not None:
            hint = "--sbatch=--mail-type=END makes Slurm send a mail when a job ends"
            raise KdxError("--on-end and --slurm exclude each other", hint=hint)
        if beside.mirror is not None:
            require(beside.mirror)
            os.environ["KDX_MIRROR"] = beside.mirror  # for the workers of the jobs
        yield
        return
    with early(), working(context, beside):
        yield


OUTCOMES = {0: "done", 4: "failed"}
"""Exit code → KDX_OUTCOME; a signal's code is `stopped`, and any other is `error`."""


@contextmanager
def _command_at_end(command: str, context: "Context") -> Iterator[None]:
    """Run the user's command once, however this one ends, with the outcome in its environment."""
    try:
        yield
        code = 0
    except BaseException as ended:
        code = _code_of(ended)
        raise
    finally:
        outcome = OUTCOMES.get(code, "stopped" if code > 128 else "error")
        given = {"KDX_OUTCOME": outcome, "KDX_EXIT_CODE": str(code), "KDX_DB": context.db}
        # What it prints is no data of this command.
        done = subprocess.run(command, shell=True, env=os.environ | given, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        if done.returncode:
            say(f"note: the command of --on-end ended with exit code {done.returncode}")


def _code_of(ended: BaseException) -> int:
    """Return the exit code of a command that ends with this exception."""
    error = of_the_machine(ended) if isinstance(ended, OSError) else ended
    error = of_a_package(ended) if isinstance(ended, ImportError) else error
    if isinstance(error, KdxError | typer.Exit):
        return error.exit_code
    return ended.code if isinstance(ended, SystemExit) and isinstance(ended.code, int) else 1


@contextmanager
def _mirrored(name: MirrorName, context: "Context") -> Iterator[None]:
    """Start the process that mirrors what this one trains, and wait at the end until it has everything."""
    from kdx.sweep.lease_holder import process_name  # late: it imports SQLAlchemy
    from kdx.sweep.messages import describe_exit

    command = [sys.executable, "-P", "-m", "kdx.mirrors.follow", name, context.db, process_name()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]

    rest = f"kdx export --format {name} sends the rest"
    lines = []

    def listen() -> None:
        for line in process.stdout:
            lines.append(line)
            say(f"note: the mirror to {name} ended: {line.rstrip()}; {rest}")

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            lines.append(f"{name} did not take all within {PATIENCE:.0f} s")
            say(f"note: {lines[-1]}; {rest}")
        listener.join(1.0)
        if process.returncode and not lines:
            say(f"note: the mirror to {name} ended: {describe_exit(process.returncode)}; {rest}")
