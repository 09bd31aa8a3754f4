"""What a user asks of Slurm for the workers of a sweep."""

from dataclasses import asdict, dataclass
from typing import Any

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
"""Options of sbatch that kdx sets, or that would take its script away."""


@dataclass(frozen=True)
class Asked:
    """Resources of each job, and how kdx is started in it."""

    jobs: int | None = None
    """Workers at most; None: as many as there are runs to do, up to `submission.MOST_JOBS`."""
    partition: str | None = None
    gpus_per_node: str | None = None
    time: str | None = None
    """Wall time of a job, as sbatch has it, such as 4:00:00."""
    account: str | None = None
    qos: str | None = None
    more: tuple[str, ...] = ()
    """Further options of sbatch, such as `--mem=8G`."""
    python: str | None = None
    """The command that runs Python on a node, such as `apptainer exec kdx.sif python`; None: this Python."""
    setup: str | None = None
    """Shell commands before it, such as `module load cuda`."""
    leave: int = 120
    """Seconds before the time limit at which a worker makes checkpoints and leaves."""
    requeues: int = 100
    """How often a job that left in time is queued again."""

    def __post_init__(self) -> None:
        for option in self.more:
            name = option.lstrip("-").partition("=")[0]
            if not option.startswith("-") or "\n" in option:
                raise KdxError(f"`{option}` for --sbatch", allowed="one option of sbatch, such as --sbatch=--mem=8G")
            if name in OURS:
                raise KdxError(f"--sbatch `{option}`: kdx sets {name} itself", hint="leave it out")

    @property
    def flags(self) -> tuple[str, ...]:
        """Options of sbatch."""
        named = {
            "partition": self.partition,
            "gpus-per-node": self.gpus_per_node,
            "time": self.time,
            "account": self.account,
            "qos": self.qos,
        }
        return (*(f"--{name}={value}" for name, value in named.items() if value is not None), *self.more)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"more": list(self.more)}
