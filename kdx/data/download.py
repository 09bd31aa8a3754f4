"""Fetches a file over HTTP, and resumes where an earlier try was cut off.

The received part lies beside the file as `….part` and takes its name when it is complete and checked. Without support
of the server for ranges, the download starts again.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote
from urllib.request import Request, urlopen

from kdx.data.storage import translate_disk_errors
from kdx.data.text import Progress, no_progress
from kdx.errors import KdxError

_PIECE = 1 << 18  # bytes
# WikiText's host refuses Python's default name.
_WHO = "Mozilla/5.0 (compatible; kdx)"


def is_address(source: object) -> bool:
    """Whether a source is an address to fetch, not a path."""
    return str(source).startswith(("http://", "https://"))


def file_name(address: str) -> str:
    """The name of the file at its address, without characters that a name should not have."""
    path = unquote(re.split("[?#]", address)[0])
    return re.sub(r"[^\w.-]", "_", PurePosixPath(path).name)[-80:]


def download(
    address: str,
    folder: Path,
    *,
    sha256: str | None = None,
    progress: Progress = no_progress,
    timeout: float = 30.0,
    otherwise: str | None = None,
) -> Path:
    """Fetches the file at `address` into `folder`, unless it is already there, and returns its path.

    A lost connection is resumed as long as each try brings more than those before.

    Args:
        address: an address of HTTP or HTTPS.
        folder: created if it does not exist.
        sha256: the expected hash; None if it is not known.
        progress: called with the number of bytes.
        timeout: seconds without an answer or a byte.
        otherwise: the hint in the message that nothing can be fetched.

    Raises:
        KdxError: nothing can be fetched, or another file was fetched.
        StorageError: the disk is full, or the folder cannot be written.
    """
    # The same name at two addresses makes two files.
    path = folder / f"{hashlib.sha256(address.encode()).hexdigest()[:8]}-{file_name(address)}"
    if path.exists():
        return path
    part = path.with_name(f"{path.name}.part")
    with translate_disk_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            _lock(file, part)
            if path.exists():  # another process was there first, and `part` is now its file
                return path
            try:
                _fetch(address, file, progress, timeout)
            except _LostError as error:
                kept = ""
                if file.tell():
                    kept = f"; {file.tell():,} bytes have come, and the same command goes on from there"
                else:
                    part.unlink()
                raise KdxError(f"cannot be fetched: {error}{kept}", place=address, hint=otherwise) from error
            file.flush()
            os.fsync(file.fileno())
            with part.open("rb") as whole:
                found = hashlib.file_digest(whole, "sha256").hexdigest()
            if sha256 and found != sha256:
                part.unlink()
                raise KdxError(
                    f"another file than is known: sha256 {found[:12]}… instead of {sha256[:12]}…; it was removed",
                    place=address,
                    hint=otherwise,
                )
            part.rename(path)
    return path


class _LostError(Exception):
    """The connection was lost, or could not be made."""


def _lock(file: BinaryIO, part: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise KdxError("another process is fetching this file", place=str(part), hint="wait for it") from error


def _fetch(address: str, file: BinaryIO, progress: Progress, timeout: float) -> None:
    most = file.seek(0, os.SEEK_END)
    while True:
        try:
            if _try(address, file, progress, timeout):
                return
        except _LostError:
            if file.tell() <= most:
                raise
            most = file.tell()


def _try(address: str, file: BinaryIO, progress: Progress, timeout: float) -> bool:
    """Fetches the rest of the file; returns whether it is complete, else it has to be fetched again."""
    done = file.seek(0, os.SEEK_END)
    with _answer(address, done, timeout) as answer:
        if answer.status == 416:  # there is no rest: the file was complete already, or has changed
            whole = answer.headers.get("Content-Range") == f"bytes */{done}"
            if not whole:
                file.seek(file.truncate(0))
            return whole
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            done = file.seek(file.truncate(0))
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length and length.isdigit() else None
        for piece in _pieces(answer):
            file.write(piece)
            done += len(piece)
            progress(f"fetching {file_name(address)}", done, total)
    if total is not None and done != total:
        raise _LostError(f"the connection breaks off after {done:,} of {total:,} bytes")
    return True


def _answer(address: str, done: int, timeout: float) -> HTTPResponse | HTTPError:
    headers = {"User-Agent": _WHO, "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    try:
        answer: HTTPResponse = urlopen(Request(address, headers=headers), timeout=timeout)
        return answer
    except HTTPError as error:
        if error.status == 416 and done:
            return error
        raise _LostError(f"the server answers {error.status} {error.reason}") from error
    except URLError as error:
        raise _LostError(str(error.reason)) from error
    except (OSError, HTTPException, ValueError) as error:  # ValueError: an invalid address
        raise _LostError(str(error) or type(error).__name__) from error


def _pieces(answer: HTTPResponse | HTTPError) -> Iterator[bytes]:
    while True:
        try:
            piece = answer.read(_PIECE)
        except (OSError, HTTPException) as error:
            raise _LostError(str(error) or type(error).__name__) from error
        if not piece:
            return
        yield piece
