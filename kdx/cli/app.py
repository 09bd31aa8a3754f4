"""The `kdx` command and the table of its commands, one file each."""

import os
import sys
from contextlib import suppress
from typing import Annotated, ClassVar, NoReturn

import typer

from kdx.cli.console import error, prepare_streams, waits_for
from kdx.cli.group import LazyGroup, Verb
from kdx.errors import KdxError, of_the_machine, packages_named
from kdx.version import VERSION

RUN, LOOK, KEEP, EXTEND = "Run", "Look", "Keep", "Extend"
"""Panels of the help, by what a user is doing."""

TRAINS, WORKS = "training", "working"
"""What `kdx.cli.beside` does before a command that trains, and before one that trains only what it finds."""


class Kdx(LazyGroup):
    """The commands of kdx, in the order of the help."""

    verbs: ClassVar = {
        "init": Verb("Copy the shipped grids into a folder.", RUN),
        "plan": Verb("Show what a sweep would run, why, and at what cost.", RUN),
        "sweep": Verb("Train the runs of a grid that the database lacks.", RUN, TRAINS),
        "resume": Verb("Resume unfinished runs, each from its last checkpoint.", RUN, TRAINS),
        "worker": Verb("Train pending runs of a database, beside other workers.", RUN, WORKS),
        "evaluate": Verb("Evaluate completed runs again, from the weights they kept.", RUN),
        "retry": Verb("Train runs again that failed, were cancelled or are stale.", RUN),
        "cancel": Verb("Cancel unfinished runs, on any machine.", RUN),
        "status": Verb("Show the progress of sweeps, their workers and a forecast.", LOOK),
        "show": Verb("Show a run, a cell or a sweep in full.", LOOK),
        "logs": Verb("Print the log of a run.", LOOK),
        "diff": Verb("Compare two runs or two cells.", LOOK),
        "report": Verb("Print the tables of sweeps, as text, LaTeX and more.", LOOK),
        "claims": Verb("Test a paper's claims against the recorded runs.", LOOK),
        "check": Verb("Check the numbers of a paper against the database.", LOOK),
        "trace": Verb("Trace a number of a table to its runs, data and code.", LOOK),
        "serve": Verb("Show sweeps in a browser while they train.", LOOK),
        "query": Verb("Query the results database in SQL, read-only.", LOOK),
        "export": Verb("Export the cells, runs and curves of a sweep to a folder.", LOOK),
        "note": Verb("Add a note or tags to a sweep or a run.", KEEP),
        "invalidate": Verb("Exclude finished runs from reports.", KEEP),
        "rm": Verb("Remove a sweep and, on request, its runs.", KEEP),
        "doctor": Verb("Check and repair the database, the runs and their files.", KEEP),
        "gc": Verb("List or remove files of runs that are no longer needed.", KEEP),
        "db": Verb("Check, back up and import results databases.", KEEP),
        "verify": Verb("Verify every attention against theory.", EXTEND),
        "explain": Verb("Explain a key or a value of a grid.", EXTEND),
        "schema": Verb("Print the JSON Schema of grids, for editors.", EXTEND),
        "data": Verb("Prepare real text, and list or show corpora.", EXTEND),
    }
    elsewhere: ClassVar = {
        "sweep": "fit launch run train",
        "worker": "agent",
        "resume": "continue",
        "cancel": "kill stop",
        "status": "list ls ps",
        "diff": "compare",
        "serve": "dashboard ui",
        "rm": "delete remove",
    }


app = typer.Typer(
    name="kdx",
    cls=Kdx,
    help="Dissect attention: grids become runs, runs become rows, rows become tables.",
    epilog="First steps: kdx sweep quickstart, then kdx report.",
    # pydantic would read the completion options before every command, although they are only used alone.
    add_completion=len(sys.argv) < 2 or sys.argv[1].startswith("-"),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kdx {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run a command; an error that a user can fix becomes one message, with the exit code of its kind."""
    # Files of kdx are writable for the user, and for the group if the umask says so, but never for all.
    os.umask(os.umask(0o077) | 0o002)
    try:
        prepare_streams()
        if "_KDX_COMPLETE" in os.environ:
            # A shell asks, while the user is in the middle of a line.
            with suppress(KdxError):
                app()
        with packages_named():
            sys.exit(app())
    except KdxError as fault:
        problem: KdxError | None = fault
    except OSError as fault:
        problem = of_the_machine(fault) or _without_a_folder(fault)
        if problem is None:
            raise
    finally:
        waits_for("")
    assert problem is not None
    error(problem)
    sys.exit(problem.exit_code)


def _without_a_folder(fault: OSError) -> KdxError | None:
    """The error for a missing working folder, if that is the cause."""
    if isinstance(fault, FileNotFoundError):
        try:
            os.getcwd()  # noqa: PTH109
        except FileNotFoundError:
            return KdxError("the working folder was deleted", hint="cd to one that is there")
    return None
