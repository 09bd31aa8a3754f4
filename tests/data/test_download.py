import errno
import hashlib
import http.server
import os
import threading
from dataclasses import dataclass, field

import pytest
from waiting import GIVE_UP

from kdx.data.download import download, file_name, is_address
from kdx.errors import KdxError, StorageError

CONTENTS = os.urandom(300_000)


@dataclass
class Server:
    """The contents of a server, and how it fails."""

    contents: bytes = CONTENTS
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each answer breaks off, one after the other; then none does."""
    length: bool = True
    """Whether it sends the length of the contents."""
    status: int = 200
    stalls: bool = False
    over: threading.Event = field(default_factory=threading.Event)
    """Until then it stalls."""
    requests: int = 0
    who: str = ""
    address: str = ""

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests += 1
        self.who = request.headers["User-Agent"]
        if request.path == "/moved.zip":
            request.send_response(302)
            request.send_header("Location", "/corpus.zip")
            request.end_headers()
            return
        request.send_response(self.status)
        if self.length:
            request.send_header("Content-Length", str(len(self.contents)))
        request.end_headers()
        if self.stalls:
            self.over.wait(GIVE_UP)
            return
        request.wfile.write(self.contents[: self.breaks.pop(0)] if self.breaks else self.contents)


@pytest.fixture
def server():
    corpus_server = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            corpus_server.answer(self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        corpus_server.address = f"http://127.0.0.1:{serving.server_port}/corpus.zip"
        yield corpus_server
        corpus_server.over.set()
        serving.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "downloads"


def sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def refusal(*arguments, **options) -> KdxError:
    with pytest.raises(KdxError) as caught:
        download(*arguments, **options)
    return caught.value


def test_a_file_is_fetched_once(server, folder):
    heard = []
    path = download(server.address, folder, sha256=sha256(CONTENTS), progress=lambda *progress: heard.append(progress))
    assert path.read_bytes() == CONTENTS
    assert list(folder.iterdir()) == [path] and path.name.endswith("-corpus.zip")
    assert heard[-1] == ("fetching corpus.zip", len(CONTENTS), len(CONTENTS))
    assert download(server.address, folder) == path
    assert server.requests == 1
    # Hosts turn away what calls itself Python.
    assert "urllib" not in server.who


def test_a_file_that_moved_is_followed(server, folder):
    assert download(server.address.replace("corpus", "moved"), folder).read_bytes() == CONTENTS


def test_a_broken_connection_leaves_nothing_and_the_same_command_starts_anew(server, folder):
    server.breaks = [100_000]
    assert str(refusal(server.address, folder, otherwise="do it yourself")) == (
        f"{server.address}: cannot be fetched: the connection breaks off after 100,000 of 300,000 bytes\n"
        "  hint: do it yourself"
    )
    assert not list(folder.iterdir())
    assert download(server.address, folder).read_bytes() == CONTENTS


def test_two_processes_may_fetch_one_file(server, folder):
    def meanwhile(*_):
        paths.append(download(server.address, folder))

    paths = []
    path = download(server.address, folder, sha256=sha256(CONTENTS), progress=meanwhile)
    assert path.read_bytes() == CONTENTS and list(folder.iterdir()) == [path] == paths[:1]


def test_another_file_is_not_kept(server, folder):
    error = refusal(server.address, folder, sha256="0" * 64, otherwise="do it yourself")
    assert str(error) == (
        f"{server.address}: not the known file: sha256 {sha256(CONTENTS)[:12]}… instead of 000000000000…;"
        " it was removed\n  hint: do it yourself"
    )
    assert not list(folder.iterdir())


def test_a_server_that_refuses(server, folder):
    server.status = 404
    assert ": cannot be fetched: the server answers 404 " in str(refusal(server.address, folder))
    assert not list(folder.iterdir())


def test_a_server_that_stalls(server, folder):
    server.stalls = True
    assert ": cannot be fetched: timed out" in str(refusal(server.address, folder, timeout=0.2))


def test_full_disk(server, folder, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device(.|\n)*free some space"):
        download(server.address, folder)
    monkeypatch.undo()
    assert download(server.address, folder).read_bytes() == CONTENTS


def test_what_is_an_address():
    assert is_address("https://example.org/a.tgz") and is_address("http://example.org")
    assert not is_address("a.tgz") and not is_address("file:///etc/passwd") and not is_address("httpfolder/a.tgz")
    assert file_name("https://example.org/a/de%20en.tgz?x=/y") == "de_en.tgz"
    assert file_name("https://example.org/..%2f..%2fetc") == "etc"
    assert file_name("https://example.org/") == "example.org"
