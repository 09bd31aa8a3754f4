"""Submits workers of a sweep to Slurm, with a copy of the source, and records the jobs next to the runs' files.

Every job runs the script `job.sh`.
"""

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from kdx.files import write_whole
from kdx.run_files.files import RunFile, translate_errors
from kdx.slurm import cluster
from kdx.slurm.job_options import JobOptions

MOST_JOBS = 10
"""Default number of workers."""
SCRIPT = Path("kdx", "slurm", "job.sh")
"""Path of the script, in the folder with the package that the workers use."""
FOLDER = "slurm"
"""Name of the folder of submissions, in the folder of the runs' files."""
_SOURCE, _COMPONENTS = "source", "components"
_NOTE = "submission.json"


@dataclass(frozen=True)
class Submission:
    """Workers that were submitted together, as one job array."""

    sweep: str
    """Name of the sweep; an id may be that of another sweep, once this one is removed."""
    array: int
    """Slurm's id of the array."""
    jobs: int
    """Number of jobs in the array."""
    submitted: float
    """When it was submitted, in seconds since 1970."""
    folder: Path
    """The folder with the source that its workers use, and the logs."""

    def has(self, job: cluster.Job) -> bool:
        """Return whether a job is in this array; an array of another cluster, or of a copied folder, is another one."""
        return job.array == self.array and job.folder == str(self.folder.resolve())

    def log(self, job: str) -> Path:
        """Return the path of the log of a job, such as `123_0`."""
        return self.folder / f"{job}.log"


def submit(
    run_files: Path,
    sweep: str,
    options: JobOptions,
    jobs: int,
    words: Callable[[Path], list[str]],
    environment: Mapping[str, str],
    again: str,
    components: Mapping[str, str],
) -> Submission:
    """Submit workers as one job array. Every worker is the same, and takes whatever runs are left to do.

    Args:
        run_files: the folder of the runs' files.
        sweep: name of the sweep.
        jobs: number of workers.
        words: folder of the components' sources → the command line after `kdx`.
        environment: environment of the jobs; it has the address of the database, which thus shows in no list of
            processes.
        again: command that submits workers again.
        components: path → text of each source outside kdx.

    Raises:
        KdxError: Slurm refuses them; nothing is queued.
        StorageError: the source cannot be copied.
    """
    with translate_errors(run_files):
        folder = run_files.resolve() / FOLDER / f"{time.time_ns()}"
        folder.mkdir(parents=True)
    source = folder / _SOURCE
    try:
        with translate_errors(folder):
            # A copy of the package, so that later edits do not reach waiting jobs.
            with as_file(files("kdx")) as package:
                shutil.copytree(package, source / "kdx", ignore=shutil.ignore_patterns("__pycache__"))
            for path, text in components.items():
                target = folder / _COMPONENTS / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        command = job_command(
            options, sweep=sweep, folder=folder, source=source, jobs=jobs, words=words(folder / _COMPONENTS)
        )
        array = cluster.submit(command, {**environment, **job_environment(options, source=source, again=again)})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    submission = Submission(sweep, array, jobs, time.time(), folder)
    note = {"sweep": submission.sweep, "array": array, "jobs": jobs, "submitted": submission.submitted}
    with translate_errors(folder):
        write_whole(folder / _NOTE, json.dumps(note).encode())
    return submission


def submissions(run_files: Path) -> Iterator[Submission]:
    """Yield the submissions of a database, oldest first; one in progress has no note yet and is skipped."""
    for note in sorted((run_files / FOLDER).glob(f"*/{_NOTE}")):
        yield Submission(**json.loads(note.read_bytes()), folder=note.parent)


def files_of(run_files: Path, submission: Submission) -> Iterator[RunFile]:
    """Yield the files of a submission, by folders in the folder of the runs' files; the note comes last."""
    for folder, _, names in os.walk(submission.folder, topdown=False):
        for name in sorted(names):
            path = Path(folder) / name
            if not path.is_symlink():
                yield RunFile(str(Path(folder).relative_to(run_files)), name, path.stat().st_size)


def remove_empty(submission: Submission) -> None:
    """Remove the empty folders of a submission whose files were removed."""
    for folder, _, _ in os.walk(submission.folder, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()


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
