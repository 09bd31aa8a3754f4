"""`kdx logs`: prints a run's log."""

import codecs
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out_text, say
from kdx.cli.context import InDatabase
from kdx.cli.slurm_jobs import log_of_job
from kdx.errors import KdxError, StorageError
from kdx.files import open_file
from kdx.run_files.files import files_beside, log_of
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.sanitize import spelled_out
from kdx.shell import shell_word
from kdx.store.database import Database, open_database
from kdx.store.find import the_run
from kdx.store.reading import load_run
from kdx.store.records import ENDED, RunRecord, RunState

LOOK_AGAIN = 0.5
"""Seconds between two looks at the file, and at the state of the run."""
_PART = 1 << 16  # bytes


def logs(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.runs,
            metavar="RUN|JOB",
            help="Number of a run, as kdx status SWEEP shows it, or a job of Slurm, such as 123_0.",
        ),
    ],
    context: InDatabase,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the run has ended.")] = False,
) -> None:
    """Print the log of a run.

    Control characters are spelled out. With -f it continues across attempts until the run has ended; a run that is
    interrupted may be resumed.

    Example: kdx logs -f 7
    """
    with open_database(context.db, write=False) as database:
        if "_" in name:
            path = log_of_job(database, name)
            if follow:
                raise KdxError("-f follows a run, not a job", hint=f"tail -f {shell_word(str(path))}")
            missing = KdxError(f"job {name} has no log yet, or never started", hint="kdx status SWEEP shows its state")
            out_text(_text(path, missing, lambda: True))
            return
        refuse_stranger(database)
        run = the_run(database, name)
        path = log_of(files_beside(database.location), run)
        if not follow:
            out_text(_text(path, _no_log(run, path), lambda: True))
            return
        has_ended = _watch(database, run, context.command("resume"))
        try:
            out_text(_text(path, _no_log(run, path), has_ended), at_once=True)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _text(path: Path, missing: KdxError, has_ended: Callable[[], bool]) -> Iterator[str]:
    """Return the parts of a log, without control characters, as it grows or is replaced by that of a new start.

    Args:
        missing: raised if there is no log in the end.
        has_ended: whether nothing more will be written; until then the log is read again and again.

    Raises:
        StorageError: it cannot be read.
    """
    file: BufferedReader | None = None
    try:
        while True:
            # Asked before the log is read, so that nothing is written after that.
            over = has_ended()
            if file is None or _is_replaced(path, file):
                with suppress(FileNotFoundError):
                    file = open_file(path, follow=False)
                    decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
            while file and (part := file.read(_PART)):
                yield spelled_out(decoder.decode(part), keep="\n\t")
            if over:
                break
            time.sleep(LOOK_AGAIN)
    except OSError as error:
        raise StorageError(f"this log cannot be read: {error.strerror}", place=str(path)) from error
    if file is None:
        raise missing


def log_end(database: Database, run_id: int, most: int) -> str:
    """Return the end of a run's log without control characters, or why there is none.

    Args:
        most: bytes that are read.
    """
    run = load_run(database, run_id)
    path = log_of(files_beside(database.location), run)
    try:
        refuse_stranger(database)
        with open_file(path, follow=False) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return spelled_out(file.read(most).decode(errors="backslashreplace"), keep="\n\t")
    except FileNotFoundError:
        return str(_no_log(run, path))
    except OSError as error:
        return f"this log cannot be read: {error.strerror}"
    except KdxError as fault:
        return str(fault)


def _is_replaced(path: Path, file: BufferedReader) -> bool:
    """Whether the path leads to another file now, or the file was cut."""
    try:
        opened, there = os.fstat(file.fileno()), path.lstat()
    except FileNotFoundError:
        return False
    return (opened.st_dev, opened.st_ino) != (there.st_dev, there.st_ino) or there.st_size < file.tell()


def _watch(database: Database, run: RunRecord, resume: str) -> Callable[[], bool]:
    """Return what tells whether a run has ended, and shows each new state of the run."""
    shown: RunState | None = None

    def has_ended() -> bool:
        nonlocal shown
        now = load_run(database, run.id)
        if now.state is not shown:
            shown = now.state
            if now.state in ENDED:
                say(f"run {run.id} has ended: {now.state}")
            elif now.state is not RunState.RUNNING:
                say(f"run {run.id} is {now.state}; waiting for a worker, or for: {resume}")
        return now.state in ENDED

    return has_ended


def _no_log(run: RunRecord, path: Path) -> KdxError:
    problem, hint = {
        RunState.PENDING: ("has not started, so it has no log", f"kdx logs -f {run.id} waits for it"),
        RunState.RUNNING: ("has just started, or runs on another machine: no log is here", "kdx status shows where"),
    }.get(run.state, ("has no log here: its files were removed, or are elsewhere", "kdx show shows how it ended"))
    return KdxError(f"run {run.id} ({run.state}) {problem}", place=str(path), hint=hint)
