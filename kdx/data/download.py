"""Fetches a file over HTTP; the file is renamed when it is complete and checked."""

import hashlib
import os
import re
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

from kdx.data.storage import translate_disk_errors
from kdx.data.text import Progress, no_progress
from kdx.errors import KdxError
from kdx.files import filling

_PIECE = 1 << 18  # bytes
# WikiText's host refuses Python's default user agent.
_USER_AGENT = "Mozilla/5.0 (compatible; kdx)"


def is_address(source: object) -> bool:
    """Return whether a source is an address to fetch, not a path."""
    return str(source).startswith(("http://", "https://"))


def file_name(address: str) -> str:
    """Return the name of the file at an address, without characters that a file name should not have."""
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
    """Fetch the file at `address` into `folder`, unless it is already there, and return its path.

    Args:
        address: an HTTP or HTTPS address.
        folder: folder of the file, created if it does not exist.
        sha256: the expected hash; None if unknown.
        progress: called with the number of bytes.
        timeout: seconds without an answer or a byte.
        otherwise: hint for the error if nothing can be fetched.

    Raises:
        KdxError: nothing can be fetched, or another file was fetched.
        StorageError: the disk is full, or the folder cannot be written.
    """
    # The same name at two addresses makes two files.
    path = folder / f"{hashlib.sha256(address.encode()).hexdigest()[:8]}-{file_name(address)}"
    if path.exists():
        return path
    digest, done = hashlib.sha256(), 0
    with translate_disk_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        with filling(folder) as unfinished:
            with unfinished.open("wb") as file:
                for piece, total in _pieces(address, timeout, otherwise):
                    file.write(piece)
                    digest.update(piece)
                    done += len(piece)
                    progress(f"fetching {file_name(address)}", done, total)
                file.flush()
                os.fsync(file.fileno())
            if sha256 and digest.hexdigest() != sha256:
                problem = f"not the known file: sha256 {digest.hexdigest()[:12]}… instead of {sha256[:12]}…"
                raise KdxError(f"{problem}; it was removed", place=address, hint=otherwise)
            unfinished.rename(path)
    return path


def _pieces(address: str, timeout: float, hint: str | None) -> Iterator[tuple[bytes, int | None]]:
    """Yield the parts of the file, each with the size of the whole file in bytes, None if unknown."""
    done, total, problem = 0, None, None
    try:
        request = Request(address, headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"})
        with urlopen(request, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            while piece := answer.read(_PIECE):
                done += len(piece)
                yield piece, total
        if total not in (None, done):
            problem = f"the connection breaks off after {done:,} of {total:,} bytes"
    except HTTPError as error:
        problem = f"the server answers {error.code} {error.reason}"
    except (OSError, HTTPException, ValueError) as error:  # ValueError: an invalid address
        problem = str(getattr(error, "reason", error)) or type(error).__name__
    if problem:
        raise KdxError(f"cannot be fetched: {problem}", place=address, hint=hint)
