"""The options of the Slurm jobs in which the workers of a sweep run."""

import re
from dataclasses import dataclass

from kdx.errors import KdxError

OURS = (
    "array",
    "chdir",
    "job-name",
    "output",
    "error",
    "signal",
    "requeue",
    "no-requeue",
    "open-mode",
    "export",
    "wrap",
    "test-only",
)
"""Options of sbatch that kdx sets, or that would replace its script."""
LEAST = 120
"""Least seconds from the start of a job to Slurm's signal. Slurm may signal a minute early, and a worker takes a while
to start; a job that is signalled before a run has a checkpoint would be queued again and again."""


@dataclass(frozen=True)
class JobOptions:
    """Resources of each job, and how kdx is started in it."""

    jobs: int | None = None
    """The most workers; None for one per run to do, up to `submission.MOST_JOBS`."""
    partition: str | None = None
    gpus_per_node: str | None = None
    time: str | None = None
    """Wall time of a job in the format of sbatch, such as 4:00:00."""
    more: tuple[str, ...] = ()
    """Further options of sbatch, such as `--mem=8G`."""
    python: str | None = None
    """Shell command that runs Python on a node, such as `apptainer exec kdx.sif python`; None for this Python."""
    setup: str | None = None
    """Shell commands to run before that, such as `module load cuda`."""
    leave: int = 120
    """Seconds before the time limit at which a worker makes checkpoints and leaves."""
    requeues: int = 100
    """How many times a job that left in time is queued again."""

    def __post_init__(self) -> None:
        for option in self.more:
            name = re.split("[= ]", option.lstrip("-"))[0]
            if not option.startswith("-"):
                raise KdxError(f"`{option}` for --sbatch", allowed="one option of sbatch, such as --sbatch=--mem=8G")
            if name in OURS:
                raise KdxError(f"--sbatch `{option}`: kdx sets {name} itself", hint="leave it out")
        seconds = _seconds(self.time or "")
        if seconds and seconds - self.leave < LEAST:
            raise KdxError(
                f"--time {self.time} with --slurm-leave {self.leave}: Slurm would signal a job "
                f"{max(seconds - self.leave, 0)} s after its start, before its runs have done anything",
                allowed=f"--time at least {LEAST} s longer than --slurm-leave",
                hint="give more time, or leave later",
            )

    @property
    def flags(self) -> tuple[str, ...]:
        """Options of sbatch."""
        named = {"partition": self.partition, "gpus-per-node": self.gpus_per_node, "time": self.time}
        # `--mem 8G` is two arguments, `--comment=of me` is one.
        more = [word for option in self.more for word in option.split(None, 0 if "=" in option.split()[0] else 1)]
        return (*(f"--{name}={value}" for name, value in named.items() if value is not None), *more)


def _seconds(time: str) -> int:
    """Return the seconds of a time in sbatch's format, such as 90, 4:00:00 or 2-12; 0 for what sbatch has to judge."""
    days, dash, rest = time.rpartition("-")
    parts = rest.split(":")
    if not all(part.isascii() and part.isdigit() for part in (days or "0", *parts)):
        return 0
    units = (3600, 60, 1) if dash or len(parts) == 3 else (60, 1)
    return 86400 * int(days or 0) + sum(int(part) * unit for part, unit in zip(parts, units, strict=False))
