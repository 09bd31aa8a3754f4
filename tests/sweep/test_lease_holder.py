"""An owner is known to be gone only when that is certain."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kdx.sweep import lease_holder as module
from kdx.sweep.lease_holder import Presence, owner, presence


def test_this_process_is_not_gone_and_names_itself_anew_each_time():
    assert presence(owner()) is Presence.HERE
    assert owner() != owner()


def test_a_process_that_ended_is_gone():
    script = "from kdx.sweep.lease_holder import owner; print(owner())"
    name = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert presence(name) is Presence.GONE


@pytest.fixture
def waiting():
    """A process that waits, and its name as an owner."""
    script = "from kdx.sweep.lease_holder import owner; print(owner(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_killed_process_that_nobody_reaped_yet_is_gone(waiting):
    process, name = waiting
    assert presence(name) is Presence.HERE
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert presence(name) is Presence.GONE


def changed(part: int, value: str) -> str:
    parts = owner().split("/")
    parts[part] = value
    return "/".join(parts)


def test_a_reused_process_id_is_another_process():
    assert presence(changed(4, "1")) is Presence.GONE


def test_an_owner_of_an_earlier_boot_is_gone():
    assert presence(changed(1, "another-boot")) is Presence.GONE


def test_of_another_machine_or_container_nothing_is_known():
    assert presence(changed(0, "another-machine")) is Presence.UNKNOWN
    assert presence(changed(2, "[1]")) is Presence.UNKNOWN
    assert presence("a name of another kind") is Presence.UNKNOWN


def test_a_process_that_was_stopped_may_be_so_for_days(waiting):
    process, name = waiting
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert presence(name) is Presence.UNKNOWN
    process.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, process.pid, os.WCONTINUED | os.WNOWAIT)
    assert presence(name) is Presence.HERE


@pytest.mark.parametrize("unread", ["stat", "boot_id", "all"])
def test_what_cannot_be_read_proves_nothing(waiting, monkeypatch, unread):
    """As with too many open files, the processes of another user, or no /proc at all."""
    process, name = waiting
    read = Path.read_text

    def fails(path, *arguments, **keywords):
        if str(path).startswith("/proc") and unread in (path.name, "all"):
            raise OSError
        return read(path, *arguments, **keywords)

    monkeypatch.setattr(Path, "read_text", fails)
    assert presence(name) is (Presence.HERE if unread == "boot_id" else Presence.UNKNOWN)
    assert presence(owner()) is (Presence.HERE if unread == "boot_id" else Presence.UNKNOWN)
    monkeypatch.setattr(module.os, "kill", lambda pid, signum: (_ for _ in ()).throw(PermissionError))
    assert presence(name) is not Presence.GONE
    monkeypatch.undo()
    process.kill()
    process.wait()
    monkeypatch.setattr(Path, "read_text", fails)
    assert presence(name) is Presence.GONE
