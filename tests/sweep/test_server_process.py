"""The process that workers are forked from is there before it is needed, and never longer than its command."""

import os
import signal

import pytest
from waiting import GIVE_UP

from kdx.cli.beside import Beside, training
from kdx.cli.context import Context
from kdx.mirrors.choice import MirrorName
from kdx.sweep import server_process
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.messages import Work


@pytest.fixture
def started(monkeypatch):
    """The processes that are started."""
    processes = []
    start = server_process._started

    def starts():
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(server_process, "_started", starts)
    return processes


def test_a_process_that_nobody_took_is_killed_at_the_end(started):
    with pytest.raises(ZeroDivisionError), server_process.early():
        assert started[0][0].poll() is None
        1 / 0  # noqa: B018
    assert started[0][0].poll() == -signal.SIGKILL


@pytest.mark.slow
def test_a_host_takes_the_process_that_is_there(started, tmp_path):
    with server_process.early():
        host = ForkServer()
        assert host.start(Work(7, 1, "me", str(tmp_path / "absent.db"), "{}", 0, str(tmp_path / "files")), GIVE_UP)
    assert host.listen(GIVE_UP)["event"] == "trouble", "it serves on after the command has let go of it"
    host.close(at_once=True)
    assert len(started) == 1


def test_jobs_of_slurm_need_no_process_here_and_have_their_own_mirrors(started, monkeypatch):
    monkeypatch.setenv("KDX_MIRROR", "")
    with training(Context("runs.db"), Beside(MirrorName.TENSORBOARD), slurm=object()):
        assert started == [] and os.environ["KDX_MIRROR"] == "tensorboard"


def test_a_system_without_a_process_to_give_is_asked_again(monkeypatch):
    def refused(*_, **__):
        raise BlockingIOError

    monkeypatch.setattr(server_process.subprocess, "Popen", refused)
    with server_process.early(), pytest.raises(BlockingIOError):
        server_process.take()
