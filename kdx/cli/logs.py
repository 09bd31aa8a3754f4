"""`kdx logs`: a run's log."""

import codecs
import os
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_parts, say
from kdx.cli.options import DATABASE, Db, Files, in_database
from kdx.cli.slurm_jobs import log_of_job
from kdx.errors import KdxError, StorageError
from kdx.files import open_file
from kdx.run_files.files import files_beside, log_of
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.sanitize import spelled_out
from kdx.shell import shell_word
from kdx.store.database import Database, open_database
from kdx.store.find import the_run
from kdx.store.records import OVER, RunRecord, RunState

LOOK_AGAIN = 0.5
"""Seconds between two looks at the file, and at the state of the run."""
_PART = 1 << 16  # bytes


def logs(
    run: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.runs, metavar="[RUN]", help="Number of the run, as kdx status SWEEP shows it."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as it grows, until the run ends or Ctrl-C.")
    ] = False,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="JOB", help="In the place of a run: a job of Slurm, such as 123_0."),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
) -> None:
    """Print the log of a run.

    Control characters are spelled out. With -f it goes on across attempts
    until the run is over; a run that is interrupted may go on.

    Example: kdx logs -f 7
    """
    if (run is None) == (job is None):
        raise KdxError("whose log?", allowed="the number of a run, or --job with a job of Slurm")
    if job is not None:
        _write_log_of_job(job, db, follow=follow)
        return
    assert run is not None
    with open_database(db, write=False) as database:
        refuse_stranger(database)
        record = the_run(database, run)
        path = log_of(files_beside(database.location), record)
        if follow:
            try:
                out_parts(_followed(database, record, path, db), at_once=True)
            except KeyboardInterrupt:
                raise typer.Exit(130) from None
            return
    log = Log(path)
    text = log.more()
    if not log.there:
        raise _no_log(record, path, db)
    out_parts(_parts(text, log))


def _write_log_of_job(job: str, db: str, *, follow: bool) -> None:
    if follow:
        raise KdxError("--follow is for runs", hint=f"kdx logs --job {shell_word(job)}, or tail -f")
    with open_database(db, write=False) as database:
        log = Log(log_of_job(database, job))
    text = log.more()
    if not log.there:
        raise KdxError(f"job {job} has no log yet, or never began", hint="kdx status SWEEP shows what Slurm says")
    out_parts(_parts(text, log))


def _parts(text: str, log: "Log") -> Iterator[str]:
    while text:
        yield text
        text = log.more()


class Log:
    """A log that may grow, or be replaced by that of a new beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BufferedReader | None = None
        self._decoder = _decoder()

    @property
    def there(self) -> bool:
        """Whether there is a log, as far as `more` has looked."""
        return self._file is not None

    def more(self) -> str:
        """The next part of what was written since, without control characters; empty if nothing was.

        Raises:
            StorageError: it cannot be read.
        """
        try:
            if self._file is None or (self._ended() and self._replaced()):
                self.close()
                self._file = open_file(self._path, follow=False)
                self._decoder = _decoder()
            part = self._file.read(_PART)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise StorageError(f"this log cannot be read: {error.strerror}", place=str(self._path)) from error
        return spelled_out(self._decoder.decode(part), keep="\n\t")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _ended(self) -> bool:
        assert self._file is not None
        return self._file.tell() >= os.fstat(self._file.fileno()).st_size

    def _replaced(self) -> bool:
        """Whether the path leads to another file, or this one was cut."""
        assert self._file is not None
        held, found = os.fstat(self._file.fileno()), self._path.lstat()
        return (held.st_dev, held.st_ino) != (found.st_dev, found.st_ino) or found.st_size < self._file.tell()


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")


def _followed(database: Database, record: RunRecord, path: Path, db: str) -> Iterator[str]:
    """The log as it grows; ends once the run is over."""
    log, said = Log(path), None
    while True:
        record = the_run(database, str(record.id))  # before the log is read, so that nothing is written after that
        while text := log.more():
            yield text
        if record.state in OVER:
            if not log.there:
                raise _no_log(record, path, db)
            say(f"run {record.id} is over: {record.state}")
            return
        if record.state is not RunState.RUNNING and said is not record.state:
            say(f"run {record.id} is {record.state}; waiting for somebody to run it: kdx resume{in_database(db)}")
        said = record.state
        time.sleep(LOOK_AGAIN)


def _no_log(record: RunRecord, path: Path, db: str) -> KdxError:
    if record.state is RunState.PENDING:
        problem, hint = "has not begun, so it has no log", f"kdx logs -f {record.id}{in_database(db)} waits for it"
    elif record.state is RunState.RUNNING:
        problem, hint = "has just begun, or runs on another machine: there is no log here", "kdx status says where"
    else:
        problem = "has no log here: its files were removed, or lie beside another copy of the database"
        hint = "kdx show says how it ended"
    return KdxError(f"run {record.id} ({record.state}) {problem}", place=str(path), hint=hint)
