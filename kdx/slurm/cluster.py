"""Calls Slurm's own programs: sbatch, squeue, scancel and sinfo. Many clusters lack sacct, so kdx does not use it."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdx.errors import KdxError

SECONDS = 60
"""Time limit for an answer of a program."""
_FIELDS = ("%F", "%K", "%A", "%T", "%N", "%r", "%Z")  # array, index in it, id, state, nodes, why it waits, folder
_OF_A_LIMIT = re.compile("MaxSubmit|array specification")
"""Slurm's message if there are more jobs than a user may queue, or than an array may have."""
_LONGEST = 4000  # characters of an answer in a message


@dataclass(frozen=True)
class Job:
    """One job in the queue: a task of an array."""

    array: int
    """The id that sbatch gave for the array."""
    task: str
    """Index in the array."""
    id: str
    """Id of the job for scancel and scontrol."""
    state: str
    """Slurm's name of the state, such as RUNNING; an unknown one is shown as it is."""
    node: str
    reason: str
    """Why the job waits, such as Resources."""
    folder: str
    """Working folder. Another cluster uses the same numbers, so a number alone does not identify a job."""


def submit(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Submit a job, and return its id.

    Args:
        command: sbatch with its options and the script.
        environment: environment of the jobs.

    Raises:
        KdxError: Slurm refuses it; nothing is queued.
    """
    answer = _run(command, environment)
    match = re.fullmatch(r"(\d+)(?:;.*)?", answer.strip().splitlines()[-1] if answer.strip() else "")
    if match is None:
        raise KdxError(f"sbatch answered `{answer.strip()[:200]}`, which names no job", hint="look at: squeue --me")
    return int(match[1])


def queue(arrays: Sequence[int]) -> tuple[Job, ...]:
    """Return the jobs of these arrays that wait or run.

    Any other job has left the queue. How it ended is unknown, so nothing follows for its runs.

    Raises:
        KdxError: Slurm does not answer.
    """
    if not arrays:
        return ()
    # All jobs of the user: asking for a job that Slurm has forgotten would be an error.
    answer = _run(["squeue", "--noheader", "--array", "--me", "--format", "|".join(_FIELDS)])
    wanted = {str(array) for array in arrays}
    lines = [line.split("|") for line in answer.splitlines() if line.count("|") == len(_FIELDS) - 1]
    return tuple(Job(int(array), *others) for array, *others in lines if array in wanted)


def cancel(arrays: Sequence[int]) -> None:
    """Remove arrays from the queue and end their running jobs.

    Raises:
        KdxError: Slurm refuses.
    """
    if arrays:
        _run(["scancel", *map(str, arrays)])


def partitions() -> tuple[str, ...]:
    """Return the names of the partitions; empty if Slurm does not answer."""
    try:
        return tuple(dict.fromkeys(_run(["sinfo", "--noheader", "--format", "%R"]).split()))
    except KdxError:
        return ()


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    program = command[0]
    try:
        done = subprocess.run(
            command, input="", capture_output=True, text=True, timeout=SECONDS, check=False, env=environment
        )
    except FileNotFoundError:
        problem, hint = f"there is no program `{program}` here", "type this on a machine that submits jobs to Slurm"
        raise KdxError(problem, place="--slurm", hint=hint) from None
    except subprocess.TimeoutExpired:
        problem, hint = f"{program} gave no answer within {SECONDS} s", "scontrol ping says if Slurm's controller is up"
        raise KdxError(problem, place="--slurm", hint=hint) from None
    if done.returncode:
        message = " ".join((done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").split())
        allowed = partitions() if "partition" in message and program == "sbatch" else None
        at_limit = _OF_A_LIMIT.search(message)
        fewer = "submit fewer, with --jobs: each worker takes what is left to do" if at_limit else None
        raise KdxError(f"{program} refuses: {message[:_LONGEST]}", allowed=allowed or None, hint=fewer)
    return done.stdout
