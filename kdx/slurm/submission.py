"""Submits workers of a sweep to Slurm, with a copy of the source, and remembers the jobs beside the runs' files."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from kdx.errors import KdxError
from kdx.files import read_file, write_whole
from kdx.run_files.files import RunFile, translate_errors
from kdx.slurm import cluster
from kdx.slurm.job_command import job_command, job_environment
from kdx.slurm.job_options import JobOptions

MOST_JOBS = 10
"""Workers that are submitted where nobody says how many."""
FOLDER = "slurm"
"""In the folder of the runs' files."""
_SOURCE, _COMPONENTS = "source", "components"
_OF_A_LIMIT = "MaxSubmit"
"""In the names of all of Slurm's limits on how many jobs somebody may have queued."""
_NOTE = "submission.json"
_LONGEST = 1 << 20  # bytes


@dataclass(frozen=True)
class Submission:
    """What was submitted at once."""

    sweep: int
    """Id of the sweep."""
    arrays: tuple[int, ...]
    """Ids of job arrays."""
    jobs: int
    """How many jobs they are together."""
    made: float
    """Seconds since 1970."""
    folder: Path
    """With the source that its workers use and the logs."""

    def has(self, job: cluster.Job) -> bool:
        """Whether it is one of these, and not of another cluster's, or of a folder that was copied."""
        return job.array in self.arrays and job.folder == str(self.folder.resolve())

    def log(self, job: str) -> Path:
        """Of a job, such as `123_0`."""
        return self.folder / f"{job}.log"


def submit(
    run_files: Path,
    sweep: tuple[int, str],
    options: JobOptions,
    jobs: int,
    words: Callable[[Path], list[str]],
    environment: Mapping[str, str],
    again: str,
    components: Mapping[str, str],
) -> tuple[Submission, str | None]:
    """Submits so many workers; what was submitted, and why that is not all of it, where it is not.

    Workers are alike, and each takes what is left, so that fewer do all the work as well.

    Args:
        run_files: the folder of the runs' files.
        sweep: its id and name.
        jobs: how many workers.
        words: folder of the components' sources → the command line after `kdx`.
        environment: of the jobs; it has the address of the database, which is in no list of processes.
        again: the command that submits workers anew.
        components: path → text of each source that is not of kdx.

    Raises:
        KdxError: Slurm refuses the first of them; nothing is queued.
        StorageError: the source cannot be copied.
    """
    largest = cluster.largest_array()
    if not largest:
        raise KdxError("this Slurm takes no job arrays: MaxArraySize is 0", place="--slurm")
    folder = _new_folder(run_files)
    source = folder / _SOURCE
    environment = {**environment, **job_environment(options, source=source, again=again)}
    done: Submission | None = None
    try:
        with translate_errors(folder):
            _copy_source(source)
            for path, text in components.items():
                target = folder / _COMPONENTS / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        while (queued := done.jobs if done else 0) < jobs:
            count = min(jobs - queued, largest)
            command = job_command(
                options,
                sweep=sweep[1],
                folder=folder,
                source=source,
                array=f"0-{count - 1}",
                words=words(folder / _COMPONENTS),
            )
            try:
                array = cluster.submit(command, environment)
            except KdxError as error:
                if _OF_A_LIMIT in error.problem and count > 1:
                    largest = count // 2  # so many at once are above what the user may submit
                    continue
                if done is None:
                    raise
                return done, f"{queued} of {jobs} jobs are submitted, and do all the work: {error.problem}"
            done = Submission(sweep[0], (*(done.arrays if done else ()), array), queued + count, time.time(), folder)
            _remember(done)
    finally:
        if done is None:
            shutil.rmtree(folder, ignore_errors=True)
    assert done is not None
    return done, None


def submissions(run_files: Path) -> Iterator[Submission]:
    """Those of a database, the oldest first; notes that are not of kdx are passed over."""
    try:
        names = sorted(entry.name for entry in os.scandir(run_files / FOLDER) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return
    for name in names:
        folder = run_files / FOLDER / name
        try:
            note = json.loads(read_file(folder / _NOTE, _LONGEST, follow=False))
            yield Submission(
                int(note["sweep"]), tuple(map(int, note["arrays"])), int(note["jobs"]), float(note["made"]), folder
            )
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue  # it was being submitted, or is not of kdx


def files_of(run_files: Path, one: Submission) -> Iterator[RunFile]:
    """The files of a submission, by folders in the folder of the runs' files; its note is the last, links are none."""
    for folder, _, names in os.walk(one.folder, topdown=False):
        for name in sorted(names):
            path = Path(folder) / name
            if not path.is_symlink():
                yield RunFile(str(Path(folder).relative_to(run_files)), name, path.stat().st_size)


def remove_empty(one: Submission) -> None:
    """Removes the folders of a submission that are empty once its files were removed."""
    for folder, _, _ in os.walk(one.folder, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()


def _remember(one: Submission) -> None:
    note: dict[str, Any] = {"sweep": one.sweep, "arrays": list(one.arrays), "jobs": one.jobs, "made": one.made}
    with translate_errors(one.folder):
        write_whole(one.folder / _NOTE, json.dumps(note).encode())


def _new_folder(run_files: Path) -> Path:
    with translate_errors(run_files):
        (run_files / FOLDER).mkdir(parents=True, exist_ok=True)
        while True:
            folder = run_files.resolve() / FOLDER / f"{time.time_ns()}"
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder


def _copy_source(target: Path) -> None:
    """The package as it is now, so that later edits do not reach jobs that wait."""
    with as_file(files("kdx")) as package:
        shutil.copytree(package, target / "kdx", ignore=shutil.ignore_patterns("__pycache__"))
