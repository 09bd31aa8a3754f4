"""The fork server as a host: what it does with a real process, which `tests/sweep/test_supervisor.py` has in sweeps."""

import contextlib
import errno
import os
import select
import signal
import socket
import sys
import time

import pytest
from waiting import GIVE_UP

from kdx.errors import ServerEndedError, ServerError
from kdx.sweep import server_process
from kdx.sweep.hosts import HostLost
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.messages import STOPPED, Work


@pytest.fixture
def host():
    host = ForkServer()
    yield host
    host.close(at_once=True)


@pytest.fixture
def claimed(tmp_path):
    """A run whose worker ends as soon as it looks for its database."""
    return Work(7, 1, "me", str(tmp_path / "absent.db"), "{}", 0, str(tmp_path / "files"))


@pytest.mark.slow
def test_a_run_is_started_and_told_of_to_its_end_and_no_process_is_left(host, claimed):
    assert host.start(claimed, GIVE_UP)
    process = host._process
    received = [host.listen(GIVE_UP), host.listen(GIVE_UP)]
    assert [(message["event"], message["run"]) for message in received] == [("trouble", 7), ("exit", 7)]
    assert received[1]["code"] == STOPPED
    host.signal(signal.SIGTERM, 7)  # nobody hears it
    assert host.start(claimed, GIVE_UP) and host._process is process
    host._end_process(GIVE_UP)
    assert process.poll() == 0


@pytest.mark.slow
def test_a_file_where_kdx_is_started_runs_in_the_place_of_no_module(host, claimed, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('not asked for')")
    monkeypatch.chdir(tmp_path)
    assert host.start(claimed, GIVE_UP) and host.listen(GIVE_UP)["event"] == "trouble"


def test_it_waits_as_long_as_it_is_told_or_until_it_is_woken(host):
    begun = time.monotonic()
    assert host.listen(0.2) is None
    assert time.monotonic() - begun >= 0.2
    host.wake()
    host.wake()
    assert host.listen(GIVE_UP) is None
    assert not select.select([host._wake], [], [], 0.0)[0], "woken twice before it listened is woken once"


def test_a_handler_that_wakes_it_never_waits(host):
    for _ in range(2**17):  # more than a pipe holds
        host.wake()


def test_a_signal_that_comes_after_the_end_is_heard_by_nobody():
    host = ForkServer()
    host.close(at_once=False)
    host.wake()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "problem", "final"),
    [
        ("kill -9 $$", "the process that workers are forked from was killed by SIGKILL", None),
        ("exit 3", "the process that workers are forked from ended with code 3", ServerEndedError),
    ],
)
def test_a_process_that_ends_is_told_and_started_again(host, claimed, tmp_path, monkeypatch, script, problem, final):
    dies = tmp_path / "dies"
    dies.write_text(f"#!/bin/sh\n{script}\n")
    dies.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(server_process.sys, "executable", str(dies))
        with pytest.raises(HostLost) as lost:
            host.start(claimed, GIVE_UP)
            host.listen(GIVE_UP)
    assert lost.value.problem == problem
    assert type(lost.value.final) is (final or type(None))
    assert sys.executable and host.start(claimed, GIVE_UP)
    assert host.listen(GIVE_UP)["event"] == "trouble"


def test_a_process_that_cannot_be_started_is_told(host, claimed, monkeypatch):
    def refused(*_, **__):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(server_process.subprocess, "Popen", refused)
    with pytest.raises(HostLost, match="could not be started: Resource temporarily unavailable") as lost:
        host.start(claimed, GIVE_UP)
    assert isinstance(lost.value.final, ServerError)


def test_a_process_that_reads_nothing_is_given_up(host, claimed, tmp_path, monkeypatch):
    """What it has not read is more than a socket holds."""
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nexec sleep 600\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(server_process.sys, "executable", str(deaf))
    assert host.start(claimed, GIVE_UP)
    process = host._process
    with contextlib.suppress(BlockingIOError):
        while True:
            host._channel.send(b"{}", socket.MSG_DONTWAIT)
    host.wake()
    assert not host.start(claimed, GIVE_UP), "it was woken while it waited"
    assert host.listen(GIVE_UP) is None
    with pytest.raises(HostLost, match="was killed by SIGKILL") as lost:
        host.start(claimed, 0.2)
    assert lost.value.final is None and process.poll() == -signal.SIGKILL
    # Nor does such a process keep its host from ending.
    assert host.start(claimed, GIVE_UP)
    process = host._process
    host._end_process(0.0)
    assert process.poll() == -signal.SIGKILL
