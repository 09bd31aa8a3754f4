"""What commands show of the jobs that were submitted to Slurm for a database."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.cli.wording import counts_of
from kdx.errors import KdxError
from kdx.run_files.files import files_beside
from kdx.slurm.cluster import Job, queue
from kdx.slurm.submission import Submission, submissions
from kdx.store.database import Database


@dataclass(frozen=True)
class Submitted:
    """Jobs that were submitted together, with their present states in Slurm."""

    submission: Submission
    queued: tuple[Job, ...] | None
    """Those that wait or are at work; None if Slurm does not answer here."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Slurm's word → jobs; those that left its queue have ended, in whatever way."""
        if self.queued is None:
            return {"unknown": self.submission.jobs}
        gone = self.submission.jobs - len(self.queued)
        left = {"left the queue": gone} if gone > 0 else {}
        return {**Counter(job.state for job in self.queued), **left}

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        each = self.submission
        facts = {"array": each.array, "jobs": each.jobs, "submitted": each.submitted, "folder": str(each.folder)}
        return {**facts, "queued": self.queued}


def submitted(database: Database) -> dict[str, list[Submitted]]:
    """Return sweep → what was submitted for it, the oldest first. Slurm is asked once, and only if there is any."""
    every = list(submissions(files_beside(database.location)))
    try:
        queued: tuple[Job, ...] | None = queue([each.array for each in every])
    except KdxError:
        queued = None
    by_sweep: dict[str, list[Submitted]] = {}
    for each in every:
        jobs = None if queued is None else tuple(job for job in queued if each.has(job))
        by_sweep.setdefault(each.sweep, []).append(Submitted(each, jobs))
    return by_sweep


def summary_lines(name: str, every: Sequence[Submitted]) -> Iterator[tuple[str, str, str, str]]:
    """Return (sweep, array, jobs, their states) of each submission that may still be at work."""
    for each in every:
        if each.queued is None or each.queued:
            yield name, str(each.submission.array), str(each.submission.jobs), counts_of(each.counts)


def job_lines(every: Sequence[Submitted]) -> Iterator[tuple[str, str, str, str]]:
    """Return (job, state, node, why it waits) of each job that is in the queue."""
    for job in (job for each in every for job in each.queued or ()):
        yield f"{job.array}_{job.task}", job.state, job.node, "" if job.reason == "None" else job.reason


def log_of_job(database: Database, job: str) -> Path:
    """Return the file with what a job wrote.

    Raises:
        KdxError: no such job was submitted for this database.
    """
    every = list(submissions(files_beside(database.location)))
    for each in every:
        if re.fullmatch(rf"{each.array}_\d+", job, re.ASCII):
            return each.log(job)
    known = tuple(f"{each.array}_0" for each in every)
    raise KdxError(f"no job `{job}` was submitted for this database", allowed=known or None, hint="kdx status SWEEP")
