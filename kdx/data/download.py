"""Fetches a file over HTTP, going on where an earlier try broke off.

What has come lies beside the file as `….part` and takes its name when it is whole and checked. A server that cannot go
on in the middle starts anew.
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

from kdx.data.storage import told_of_disk
from kdx.data.text import Told, untold
from kdx.errors import KdxError

_PIECE = 1 << 18  # bytes
# WikiText's host turns Python's own name away.
_WHO = "Mozilla/5.0 (compatible; kdx)"


def is_address(source: object) -> bool:
    """Whether this is something to fetch, and no path."""
    return str(source).startswith(("http://", "https://"))


def file_name(address: str) -> str:
    """What the file is called at its address, without signs that a name should not have."""
    path = unquote(re.split("[?#]", address)[0])
    return re.sub(r"[^\w.-]", "_", PurePosixPath(path).name)[-80:]


def download(
    address: str,
    folder: Path,
    *,
    sha256: str | None = None,
    told: Told = untold,
    timeout: float = 30.0,
    otherwise: str | None = None,
) -> Path:
    """The file at `address`, which lies in `folder` from then on.

    A connection that breaks off is taken up again as long as each try brings more than those before.

    Args:
        address: of HTTP or HTTPS.
        folder: made where it is not there.
        sha256: what the file must have; None where that is not known.
        told: hears of bytes.
        timeout: seconds without an answer or a byte.
        otherwise: the hint of a message that nothing can be fetched.

    Raises:
        KdxError: nothing can be fetched, or what came is another file.
        StorageError: the disk is full, or the folder cannot be written.
    """
    # The same name at two addresses is two files.
    path = folder / f"{hashlib.sha256(address.encode()).hexdigest()[:8]}-{file_name(address)}"
    if path.exists():
        return path
    part = path.with_name(f"{path.name}.part")
    with told_of_disk(path):
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            _lock(file, part)
            if path.exists():  # another process was there first, and `part` is now its file
                return path
            try:
                _fetch(address, file, told, timeout)
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
    """The connection, or the hope of one."""


def _lock(file: BinaryIO, part: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise KdxError("another process is fetching this file", place=str(part), hint="wait for it") from error


def _fetch(address: str, file: BinaryIO, told: Told, timeout: float) -> None:
    most = file.seek(0, os.SEEK_END)
    while True:
        try:
            if _try(address, file, told, timeout):
                return
        except _LostError:
            if file.tell() <= most:
                raise
            most = file.tell()


def _try(address: str, file: BinaryIO, told: Told, timeout: float) -> bool:
    """Whether the file is whole; if not, it is to be fetched anew."""
    done = file.seek(0, os.SEEK_END)
    with _answer(address, done, timeout) as answer:
        if answer.status == 416:  # there is no more of it: it was whole already, or is another one now
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
            told(f"fetching {file_name(address)}", done, total)
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
    except (OSError, HTTPException, ValueError) as error:  # a ValueError is an address that cannot be one
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
