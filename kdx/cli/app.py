"""The `kdx` command, assembled from one file a command."""

import gc as collector
import os
import sys
from typing import Annotated, NoReturn

import typer

from kdx.cli import (
    check,
    claims,
    data,
    db,
    doctor,
    evaluate,
    export,
    gc,
    init,
    plan,
    query,
    report,
    resume,
    retry,
    sweep,
    trace,
    verify,
)
from kdx.cli.console import error, prepare_streams
from kdx.cli.group import CommandGroup
from kdx.errors import KdxError, of_the_machine
from kdx.version import VERSION

app = typer.Typer(
    name="kdx",
    cls=CommandGroup,
    help="Dissect attention: a grid in YAML becomes runs, runs become rows, rows become the paper's table.",
    epilog="First steps: kdx sweep quickstart, then kdx report.",
    no_args_is_help=True,
    # Read by way of pydantic before every command, too; they are of use on their own only.
    add_completion=len(sys.argv) < 2 or sys.argv[1].startswith("-"),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kdx {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("init")(init.init)
app.command("plan")(plan.plan)
app.command("sweep")(sweep.sweep)
app.command("resume")(resume.resume)
app.command("evaluate")(evaluate.evaluate)
app.command("retry")(retry.retry)
app.command("report")(report.report)
app.command("claims")(claims.claims)
app.command("check")(check.check)
app.command("trace")(trace.trace)
app.command("query")(query.query)
app.command("export")(export.export)
app.command("verify")(verify.verify)
app.command("doctor")(doctor.doctor)
app.command("gc")(gc.gc)
app.add_typer(data.app, name="data")
app.add_typer(db.app, name="db")


def main() -> NoReturn:
    """Run a command; what a user can mend is told in one message, with the exit code of its kind."""
    # A command makes many objects and few cycles: with Python's 700, a tenth of a report's time goes into finding none.
    collector.set_threshold(100_000)
    prepare_streams()
    # What kdx makes is for its user, and for their group where they say so, but never for all to change.
    os.umask(os.umask(0o077) | 0o002)
    try:
        sys.exit(app())
    except KdxError as fault:
        told: KdxError | None = fault
    except OSError as fault:
        told = of_the_machine(fault) or _without_a_folder(fault)
        if told is None:
            raise
    assert told is not None
    error(told)
    sys.exit(told.exit_code)


def _without_a_folder(fault: OSError) -> KdxError | None:
    """That the working folder is gone, where that is what is wrong."""
    if isinstance(fault, FileNotFoundError):
        try:
            os.getcwd()  # noqa: PTH109
        except FileNotFoundError:
            return KdxError("the working folder was deleted", hint="cd to one that is there")
    return None
