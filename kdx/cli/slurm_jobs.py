"""What commands show of the jobs that were submitted to Slurm for a database."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.errors import KdxError
from kdx.run_files.files import files_beside
from kdx.slurm.cluster import Job, queue
from kdx.slurm.submission import Submission, submissions
from kdx.store.database import Database

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Submitted:
    """Jobs that were submitted at once, with what Slurm says of them now."""

    submission: Submission
    queued: tuple[Job, ...] | None
    """Those that wait or are at work; None: Slurm does not answer here."""

    @property
    def counts(self) -> dict[str, int]:
        """Slurm's word → jobs; those that it has no more in its queue have ended, in whatever way."""
        if self.queued is None:
            return {UNKNOWN: self.submission.jobs}
        found = Counter(job.state for job in self.queued)
        gone = self.submission.jobs - len(self.queued)
        return dict(found) | ({"left the queue": gone} if gone > 0 else {})

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON."""
        queued = None if self.queued is None else [vars(job) for job in self.queued]
        one = self.submission
        return {
            "array": one.array,
            "jobs": one.jobs,
            "submitted": one.submitted,
            "folder": str(one.folder),
            "queued": queued,
        }


def submitted(database: Database) -> dict[int, list[Submitted]]:
    """Sweep id → what was submitted for it, the oldest first. Slurm is asked once, and only if there is any."""
    every = list(submissions(files_beside(database.location)))
    try:
        queued: tuple[Job, ...] | None = queue([one.array for one in every])
    except KdxError:
        queued = None
    found: dict[int, list[Submitted]] = {}
    for one in every:
        its = None if queued is None else tuple(job for job in queued if one.has(job))
        found.setdefault(one.sweep, []).append(Submitted(one, its))
    return found


def summary_lines(name: str, every: Sequence[Submitted]) -> Iterator[tuple[str, str, str, str]]:
    """(sweep, array, jobs, their states) of each submission that may still be at work."""
    for one in every:
        if one.queued is None or one.queued:
            states = ", ".join(f"{count} {state}" for state, count in one.counts.items())
            yield name, str(one.submission.array), str(one.submission.jobs), states


def job_lines(every: Sequence[Submitted]) -> Iterator[tuple[str, str, str, str]]:
    """(job, state, node, why it waits) of each job that is in the queue."""
    for one in every:
        for job in one.queued or ():
            why = "" if job.reason == "None" else job.reason
            yield f"{job.array}_{job.task}", job.state, job.node, why


def log_of_job(database: Database, job: str) -> Path:
    """The file with what a job wrote.

    Raises:
        KdxError: no such job was submitted for this database.
    """
    found = re.fullmatch(r"(\d+)_\d+", job, re.ASCII)
    every = list(submissions(files_beside(database.location)))
    for one in every:
        if found and int(found[1]) == one.array:
            return one.log(job)
    known = tuple(f"{one.array}_0" for one in every)
    raise KdxError(f"no job `{job}` was submitted for this database", allowed=known or None, hint="kdx status SWEEP")
