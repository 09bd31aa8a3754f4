"""The `kdx` command, assembled from one file for each subcommand."""

import gc as collector
import os
import sys
from typing import Annotated, NoReturn

import typer

from kdx.cli import (
    cancel,
    check,
    claims,
    completion,
    data,
    db,
    diff,
    doctor,
    evaluate,
    explain,
    export,
    gc,
    init,
    invalidate,
    logs,
    note,
    plan,
    query,
    rename,
    report,
    resume,
    retry,
    rm,
    schema,
    show,
    status,
    sweep,
    trace,
    tune,
    verify,
    worker,
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
    # pydantic would read the completion options before every command, although they are only used alone.
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


RUN, LOOK, KEEP, EXTEND = "Run", "Look", "Keep", "Extend"
"""Panels of the help, by what a user is doing."""

app.command("init", rich_help_panel=RUN)(init.init)
app.command("plan", rich_help_panel=RUN)(plan.plan)
app.command("sweep", rich_help_panel=RUN)(sweep.sweep)
app.command("tune", rich_help_panel=RUN)(tune.tune)
app.command("resume", rich_help_panel=RUN)(resume.resume)
app.command("worker", rich_help_panel=RUN)(worker.worker)
app.command("evaluate", rich_help_panel=RUN)(evaluate.evaluate)
app.command("retry", rich_help_panel=RUN)(retry.retry)
app.command("cancel", rich_help_panel=RUN)(cancel.cancel)
app.command("status", rich_help_panel=LOOK)(status.status)
app.command("show", rich_help_panel=LOOK)(show.show)
app.command("logs", rich_help_panel=LOOK)(logs.logs)
app.command("diff", rich_help_panel=LOOK)(diff.diff)
app.command("report", rich_help_panel=LOOK)(report.report)
app.command("claims", rich_help_panel=LOOK)(claims.claims)
app.command("check", rich_help_panel=LOOK)(check.check)
app.command("trace", rich_help_panel=LOOK)(trace.trace)
app.command("query", rich_help_panel=LOOK)(query.query)
app.command("export", rich_help_panel=LOOK)(export.export)
app.command("note", rich_help_panel=KEEP)(note.note)
app.command("invalidate", rich_help_panel=KEEP)(invalidate.invalidate)
app.command("rename", rich_help_panel=KEEP)(rename.rename)
app.command("rm", rich_help_panel=KEEP)(rm.rm)
app.command("doctor", rich_help_panel=KEEP)(doctor.doctor)
app.command("gc", rich_help_panel=KEEP)(gc.gc)
app.add_typer(db.app, name="db", rich_help_panel=KEEP)
app.add_typer(data.app, name="data", rich_help_panel=EXTEND)
app.command("verify", rich_help_panel=EXTEND)(verify.verify)
app.command("explain", rich_help_panel=EXTEND)(explain.explain)
app.command("schema", rich_help_panel=EXTEND)(schema.schema)


def main() -> NoReturn:
    """Runs a command; an error that a user can fix becomes one message, with the exit code of its kind."""
    # A command makes many objects and few cycles: with Python's 700, a report spends a tenth of its time collecting.
    collector.set_threshold(100_000)
    prepare_streams()
    # Files of kdx are writable for the user, and for the group if the umask says so, but never for all.
    os.umask(os.umask(0o077) | 0o002)
    try:
        sys.exit(completion.answer(app) if completion.asked() else app())
    except KdxError as fault:
        problem: KdxError | None = fault
    except OSError as fault:
        problem = of_the_machine(fault) or _without_a_folder(fault)
        if problem is None:
            raise
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
