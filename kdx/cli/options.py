"""Options that several commands share.

One that describes a place or a habit can be set by `KDX_…` in the environment. One that acts, destroys, selects or
changes what is shown cannot: set once for all, it would make another command of what somebody types.
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.group import Flags
from kdx.errors import KdxError
from kdx.report.writers import Format
from kdx.run_options import RunOptions
from kdx.shell import shell_word
from kdx.slurm.job_options import JobOptions
from kdx.store.refusals import FILES, set_password_apart
from kdx.sweep.budget import Budget, read_wall_time
from kdx.sweep.gpus import AtATime, take_devices
from kdx.vocabulary import IfChanged

DATABASE = "runs.db"
MOST_AT_A_TIME = 1024

_common = partial(typer.Option, rich_help_panel="Common")
_hardware = partial(typer.Option, rich_help_panel="Hardware")
_slurm = partial(typer.Option, rich_help_panel="Slurm")


def name_folder(given: Path | None) -> Path | None:
    """Let KDX_FILES name the folder, for this process and those that it starts."""
    if given is not None:
        # Workers and jobs of Slurm have other working folders.
        os.environ[FILES] = str(given.expanduser().absolute())
    return given


Db = Annotated[
    str,
    _common(
        "--db",
        envvar="KDX_DB",
        metavar="PATH",
        # A password stays out of messages and of the arguments of processes.
        callback=lambda address: set_password_apart(address),
        help="The results database, a file or an address.",
    ),
]
Files = Annotated[
    Path | None,
    _common(
        "--files",
        envvar=FILES,
        metavar="FOLDER",
        file_okay=False,
        callback=name_folder,
        help="Folder of checkpoints, weights and logs; default: beside the database.",
    ),
]
Json = Annotated[bool, _common("--json", help="Write JSON to stdout, for programs.")]


def is_typed(ctx: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line, and not only in an environment variable."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _table_format(
    ctx: typer.Context,
    format: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="FORMAT",
            envvar="KDX_FORMAT",
            help="Format of the tables: text, markdown, latex, csv (kdx report) or html.",
        ),
    ] = Format.TEXT,
) -> Format:
    """Return the format of tables; one that an environment variable names gives way to --json."""
    if ctx.params.get("json") and is_typed(ctx, "format"):
        raise KdxError("--json and --format exclude each other")
    return format


TableFormat = Annotated[Format, Flags(_table_format)]
OnlyTable = Annotated[
    str | None, typer.Option("--table", autocompletion=completion.tables, help="Only the table of this name.")
]
Tables = Annotated[
    Path | None, typer.Option("--tables", metavar="FILE", help="Take `tables:` from this YAML file, not from the grid.")
]
MaxRuns = Annotated[int, typer.Option("--max-runs", min=1, help="Refuse a larger grid.")]
Components = Annotated[
    Path | None,
    typer.Option("--components", metavar="FOLDER", help="Folder of the sweep's custom components, whose code is run."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        autocompletion=completion.settings,
        metavar="KEY=VALUE",
        help="Replace a value, such as seeds=5; repeatable.",
    ),
]
GridFile = Annotated[str, typer.Argument(autocompletion=completion.grids, help="A YAML file, or a shipped grid.")]


def sweep_argument(help: str) -> Any:
    """Return an argument that names a sweep, or several."""
    return typer.Argument(autocompletion=completion.names, metavar="SWEEP|GRID.yaml", help=help)


def sweep_option(help: str) -> Any:
    """Return the option `--sweep`, which names a sweep, or several."""
    return typer.Option("--sweep", autocompletion=completion.names, help=help)


Sweep = Annotated[str | None, sweep_argument("A sweep, or its grid file; default: the most recent sweep.")]
ChosenRuns = Annotated[
    list[str],
    typer.Argument(
        autocompletion=completion.names,
        metavar="RUN…|SWEEP|GRID.yaml [KEY=VALUE]…",
        help="Runs by number, or those of a sweep with KEY=VALUE.",
    ),
]


def at_a_time_options(
    workers: Annotated[
        int | None,
        _hardware(
            "--workers",
            "-w",
            envvar="KDX_WORKERS",
            min=1,
            max=MOST_AT_A_TIME,
            metavar="N",
            help="Runs at a time; default: one per GPU or core.",
        ),
    ] = None,
    per_gpu: Annotated[
        int | None,
        _hardware(
            "--per-gpu",
            envvar="KDX_PER_GPU",
            min=1,
            max=MOST_AT_A_TIME,
            metavar="N",
            help="Runs at a time on each GPU.",
        ),
    ] = None,
    devices: Annotated[
        str | None,
        _hardware("--devices", envvar="KDX_DEVICES", metavar="0,2|none", help="GPUs as nvidia-smi numbers them."),
    ] = None,
) -> AtATime:
    """Return how many runs go at a time; this process and those that it starts see only the devices.

    Raises:
        KdxError: `--devices` has no such value.
    """
    if devices is not None:
        take_devices(devices)
    return AtATime(workers, per_gpu)


def run_options(
    keep_state: Annotated[
        bool, _hardware("--keep-state", help="Keep the optimiser's state, to train longer later.")
    ] = RunOptions.keep_state,
    hang_after: Annotated[
        float, _hardware("--hang-after", metavar="SECONDS", min=1, help="Stop and retry a run without a sign of life.")
    ] = RunOptions.hang_after,
    if_changed: Annotated[
        IfChanged,
        _hardware(
            "--if-changed",
            metavar="refuse|restart|continue",
            help="If a run's torch, code, data or machine changed.",
        ),
    ] = RunOptions.if_changed,
) -> RunOptions:
    """Return the options of all runs of a command."""
    return RunOptions(hang_after=hang_after, if_changed=if_changed, keep_state=keep_state)


def slurm_options(
    ctx: typer.Context,
    slurm: Annotated[bool, _slurm("--slurm", help="Submit workers to Slurm, and end.")] = False,
    jobs: Annotated[int | None, _slurm("--jobs", min=1, help="Number of jobs; default: up to 10.")] = None,
    partition: Annotated[str | None, _slurm("--partition", help="Partition of the jobs.")] = None,
    gpus_per_node: Annotated[str | None, _slurm("--gpus-per-node", help="GPUs of a job, such as 1 or a100:2.")] = None,
    time_limit: Annotated[str | None, _slurm("--time", metavar="4:00:00", help="Time limit of a job.")] = None,
    sbatch: Annotated[
        list[str] | None,
        _slurm(
            "--sbatch", metavar="OPTION", help="Another option of sbatch, such as --sbatch=--account=us; repeatable."
        ),
    ] = None,
    slurm_python: Annotated[
        str | None,
        _slurm(
            "--slurm-python", metavar="COMMAND", help="How a node runs Python, such as `apptainer exec kdx.sif python`."
        ),
    ] = None,
    slurm_setup: Annotated[
        str | None,
        _slurm(
            "--slurm-setup", envvar="KDX_SLURM_SETUP", metavar="COMMANDS", help="Run first, such as `module load cuda`."
        ),
    ] = None,
    slurm_leave: Annotated[
        int,
        _slurm("--slurm-leave", metavar="SECONDS", min=1, help="Save checkpoints and requeue before the time limit."),
    ] = JobOptions.leave,
    slurm_requeues: Annotated[
        int, _slurm("--slurm-requeues", min=0, help="Requeue a job at most this often.")
    ] = JobOptions.requeues,
) -> JobOptions | None:
    """Return the options of Slurm jobs; None without `--slurm`.

    Raises:
        KdxError: an option of Slurm is given without `--slurm`, or cannot be.
    """
    if slurm and is_typed(ctx, "devices"):
        raise KdxError("--devices and --slurm exclude each other", hint="--gpus-per-node gives each job GPUs")
    if slurm:
        more = tuple(sbatch or ())
        python, setup, leave, requeues = slurm_python, slurm_setup, slurm_leave, slurm_requeues
        return JobOptions(jobs, partition, gpus_per_node, time_limit, more, python, setup, leave, requeues)
    for parameter in ctx.command.params:
        if getattr(parameter, "rich_help_panel", None) == "Slurm" and is_typed(ctx, parameter.name or ""):
            raise KdxError(f"{parameter.opts[0]} without --slurm", hint="add --slurm, or leave it out")
    return None


def budget_option(
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="6h|90m|30s",
            help="Start what fits into this wall time; stop at its end.",
        ),
    ] = None,
) -> Budget | None:
    """Return the budget of a command that starts now; None without one.

    Raises:
        KdxError: it is not a wall time.
    """
    if budget is None:
        return None
    seconds = read_wall_time("--budget", budget, least=1.0)
    return Budget(budget, seconds, time.monotonic() + seconds)


Hardware = Annotated[AtATime, Flags(at_a_time_options)]
Running = Annotated[RunOptions, Flags(run_options)]
Slurm = Annotated[JobOptions | None, Flags(slurm_options)]
Limit = Annotated[Budget | None, Flags(budget_option)]


def set_options(given: list[str] | None) -> str:
    """Return the options of a suggested command that change a grid as `--set` of this one does."""
    return "".join(f" --set {shell_word(setting)}" for setting in given or ())
