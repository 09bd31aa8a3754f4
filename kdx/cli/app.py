"""The `kdx` command, assembled from one file a command."""

import gc as collector
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from kdx import __version__
from kdx.cli import data, db, doctor, export, gc, init, plan, query, report, resume, retry, sweep, trace, verify
from kdx.cli.console import error
from kdx.cli.group import Group
from kdx.errors import KdxError

app = typer.Typer(
    name="kdx",
    cls=Group,
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
        typer.echo(f"kdx {__version__}")
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
app.command("retry")(retry.retry)
app.command("report", cls=report.Report)(report.report)
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
    if isinstance(sys.stdout, TextIOWrapper):
        # Where the locale lacks a sign of ours, such as ×, a command goes on all the same.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.exit(app())
    except KdxError as fault:
        error(fault)
        sys.exit(fault.exit_code)
