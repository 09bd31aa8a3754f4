"""The `kdx` command and the table of its commands, one file each."""

import gc as collector
import os
import sys
from typing import Annotated, ClassVar, NoReturn

import typer

from kdx.cli import completion
from kdx.cli.console import error, prepare_streams
from kdx.cli.group import LazyGroup, Verb
from kdx.errors import KdxError, of_the_machine
from kdx.version import VERSION

RUN, LOOK, KEEP, EXTEND = "Run", "Look", "Keep", "Extend"
"""Panels of the help, by what a user is doing."""


class Kdx(LazyGroup):
    """The commands of kdx, in the order of the help."""

    verbs: ClassVar = {
        "init": Verb("kdx.cli.init:init", "Copy the shipped experiments into a folder.", RUN),
        "plan": Verb("kdx.cli.plan:plan", "Say what `kdx sweep` would do, with the reasons and the cost.", RUN),
        "sweep": Verb("kdx.cli.sweep:sweep", "Train what a grid asks for and the database does not have yet.", RUN),
        "tune": Verb("kdx.cli.tune:tune", "Search the parameters under `tune:` of a grid, and train no winner.", RUN),
        "resume": Verb("kdx.cli.resume:resume", "Resume unfinished runs, each from its last checkpoint.", RUN),
        "worker": Verb("kdx.cli.worker:worker", "Do the work of a database, beside any number of other workers.", RUN),
        "evaluate": Verb(
            "kdx.cli.evaluate:evaluate",
            "Make the evaluations that completed runs do not have yet, from the weights that they kept.",
            RUN,
        ),
        "retry": Verb(
            "kdx.cli.retry:retry",
            "Do runs again that failed, that lost their weights, or whose code has changed.",
            RUN,
        ),
        "cancel": Verb("kdx.cli.cancel:cancel", "Cancel runs that are not over, on any machine.", RUN),
        "status": Verb(
            "kdx.cli.status:status",
            "Show how far sweeps are, which processes work on them, and how long they will take.",
            LOOK,
        ),
        "show": Verb(
            "kdx.cli.show:show",
            "Show what a run, a cell or a sweep is: settings, attempts, scores, seeds, files, log, and where it ran.",
            LOOK,
        ),
        "logs": Verb(
            "kdx.cli.logs:logs",
            "Write a run's log: its progress, warnings of libraries, and how attempts ended.",
            LOOK,
        ),
        "diff": Verb(
            "kdx.cli.diff:diff",
            "Show how two runs, two cells or two sweeps differ, or a grid file and a sweep.",
            LOOK,
        ),
        "report": Verb(
            "kdx.cli.report:report",
            "Show a sweep's tables: per cell, the test score of the best-validation seed, and the spread over seeds.",
            LOOK,
        ),
        "claims": Verb(
            "kdx.cli.claims:claims",
            "Show what the runs say about a paper's claims: whether each of them holds, in each setting.",
            LOOK,
        ),
        "check": Verb(
            "kdx.cli.check:check",
            "Compare the numbers, captions and notes in a file that kdx report wrote, or in a paper, with the "
            "database.",
            LOOK,
        ),
        "trace": Verb(
            "kdx.cli.trace:trace",
            "Show what is behind a number of a table: runs, seeds, settings, data, code, machine, and every attempt.",
            LOOK,
        ),
        "query": Verb("kdx.cli.query:query", "Query the results database in SQL, read-only.", LOOK),
        "export": Verb(
            "kdx.cli.export:export",
            "Write a sweep's cells, runs and curves to a new folder, on request with weights and translations.",
            LOOK,
        ),
        "note": Verb("kdx.cli.note:note", "Write a note or tags on a sweep or a run; kdx status shows them.", KEEP),
        "invalidate": Verb(
            "kdx.cli.invalidate:invalidate", "Exclude finished runs from tables; the database keeps them.", KEEP
        ),
        "rename": Verb(
            "kdx.cli.rename:rename", "Rename a sweep; its runs, plans, notes and files stay as they are.", KEEP
        ),
        "rm": Verb("kdx.cli.rm:rm", "Remove a sweep: its plan, the history of its plans, its notes.", KEEP),
        "doctor": Verb("kdx.cli.doctor:doctor", "Check the database, the runs and all their files.", KEEP),
        "gc": Verb("kdx.cli.gc:gc", "List the files of runs that can be removed, by rule, and by which command.", KEEP),
        "db": Verb("kdx.cli.db:app", "Check, copy, import and upgrade results databases.", KEEP),
        "verify": Verb(
            "kdx.cli.verify:verify",
            "Check both paths of every attention against theory, and against vectors from elsewhere.",
            EXTEND,
        ),
        "explain": Verb(
            "kdx.cli.explain:explain",
            "Explain a key or a value of a grid: formula, source, options, an example.",
            EXTEND,
        ),
        "schema": Verb(
            "kdx.cli.schema:schema",
            "Write the JSON Schema of a grid to stdout, with which an editor completes and checks one.",
            EXTEND,
        ),
        "data": Verb(
            "kdx.cli.data:app", "Prepare real text, list the corpora that a grid can name, and show one.", EXTEND
        ),
    }


app = typer.Typer(
    name="kdx",
    cls=Kdx,
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
