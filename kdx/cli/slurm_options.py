"""The options of commands that submit workers to Slurm."""

import inspect
from typing import Annotated

import typer

from kdx.errors import KdxError
from kdx.slurm.job_options import JobOptions


def slurm_options(
    context: typer.Context,
    slurm: Annotated[
        bool,
        typer.Option(
            "--slurm",
            rich_help_panel="Slurm",
            help="Submit workers to Slurm, which do the runs, and end.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, rich_help_panel="Slurm", help="How many; 10 at most if not said."),
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", envvar="KDX_PARTITION", rich_help_panel="Slurm", help="Of Slurm.")
    ] = None,
    gpus_per_node: Annotated[
        str | None,
        typer.Option(
            "--gpus-per-node",
            rich_help_panel="Slurm",
            help="GPUs of a job, such as 1 or a100:2.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="4:00:00", rich_help_panel="Slurm", help="Time limit of a job."),
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", envvar="KDX_ACCOUNT", rich_help_panel="Slurm", help="Who pays.")
    ] = None,
    qos: Annotated[
        str | None, typer.Option("--qos", envvar="KDX_QOS", rich_help_panel="Slurm", help="Quality of service.")
    ] = None,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(
            "--sbatch",
            envvar="KDX_SBATCH",
            metavar="OPTION",
            rich_help_panel="Slurm",
            help="Any other option of sbatch, such as --sbatch=--mem=8G; any number of times.",
        ),
    ] = None,
    slurm_python: Annotated[
        str | None,
        typer.Option(
            "--slurm-python",
            envvar="KDX_SLURM_PYTHON",
            metavar="COMMAND",
            rich_help_panel="Slurm",
            help="Shell command that runs Python on a node, such as `apptainer exec kdx.sif python`; this Python if "
            "not said.",
        ),
    ] = None,
    slurm_setup: Annotated[
        str | None,
        typer.Option(
            "--slurm-setup",
            envvar="KDX_SLURM_SETUP",
            metavar="COMMANDS",
            rich_help_panel="Slurm",
            help="Shell commands before that, such as `module load cuda`.",
        ),
    ] = None,
    slurm_leave: Annotated[
        int,
        typer.Option(
            "--slurm-leave",
            metavar="SECONDS",
            min=1,
            rich_help_panel="Slurm",
            help="Before its time limit a job makes checkpoints and is queued again.",
        ),
    ] = JobOptions.leave,
    slurm_requeues: Annotated[
        int,
        typer.Option(
            "--slurm-requeues",
            min=0,
            rich_help_panel="Slurm",
            help="How often at most.",
        ),
    ] = JobOptions.requeues,
) -> JobOptions | None:
    """What is asked of Slurm; None: nothing.

    Raises:
        KdxError: something is asked of Slurm without `--slurm`, or cannot be asked.
    """
    if slurm:
        more = tuple(sbatch or ())
        return JobOptions(
            jobs,
            partition,
            gpus_per_node,
            time,
            account,
            qos,
            more,
            slurm_python,
            slurm_setup,
            slurm_leave,
            slurm_requeues,
        )
    for name in inspect.signature(slurm_options).parameters:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise KdxError(f"--{name.replace('_', '-')} without --slurm", hint="add --slurm, or leave it out")
    return None
