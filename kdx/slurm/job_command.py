"""The command that submits workers, and the environment of their jobs; every job runs the script `job.sh`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kdx.slurm.job_options import JobOptions

SCRIPT = Path("kdx", "slurm", "job.sh")
"""Path of the script, in the folder with the package that the workers use."""


def job_command(
    options: JobOptions, *, sweep: str, folder: Path, source: Path, jobs: int, words: Sequence[str]
) -> list[str]:
    """Return the command line of sbatch. No shell interprets it, here or on a node.

    Args:
        sweep: name of the sweep.
        folder: folder in which the jobs work and write logs; it also identifies them.
        source: folder with the package that the workers use.
        jobs: number of jobs in the array.
        words: command line after `kdx`.
    """
    return [
        "sbatch",
        "--parsable",
        "--export=ALL",
        *options.flags,
        f"--job-name={_one_word(sweep)}",
        f"--array=0-{jobs - 1}",
        f"--chdir={folder}",
        # In the name of a log, % begins a pattern.
        f"--output={str(folder).replace('%', '%%')}/%A_%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR2@{options.leave}",
        str(source / SCRIPT),
        *words,
    ]


def job_environment(options: JobOptions, *, source: Path, again: str) -> dict[str, str]:
    """Return what `job.sh` reads from its environment.

    Args:
        source: folder with the package that the workers use.
        again: command that submits workers again.
    """
    return {
        "KDX_JOB_SETUP": options.setup or "",
        "KDX_JOB_PYTHON": options.python or shlex.quote(sys.executable),
        "KDX_JOB_SOURCE": str(source),
        "KDX_JOB_REQUEUES": str(options.requeues),
        "KDX_JOB_AGAIN": again,
    }


def _one_word(sweep: str) -> str:
    return "kdx:" + "".join(letter if letter.isalnum() or letter in "-_./" else "-" for letter in sweep)[:60]
