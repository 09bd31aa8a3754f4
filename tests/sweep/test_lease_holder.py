"""Leases are claimed and kept under one name; a lease holder is known to be gone only when that is certain."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clock import Clock
from grids import TINY

from kdx.grid.load import load_grid
from kdx.store import reading, recording
from kdx.sweep import lease_holder as module
from kdx.sweep.lease_holder import RENEW_EVERY, LeaseHolder, Liveness, lease_holder, liveness


def test_this_process_is_not_gone_and_names_itself_anew_each_time():
    assert liveness(lease_holder()) is Liveness.HERE
    assert lease_holder() != lease_holder()


def test_a_process_that_ended_is_gone():
    script = "from kdx.sweep.lease_holder import lease_holder; print(lease_holder())"
    name = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert liveness(name) is Liveness.GONE


@pytest.fixture
def waiting():
    """A process that waits, and its name as a lease holder."""
    script = "from kdx.sweep.lease_holder import lease_holder; print(lease_holder(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_killed_process_that_nobody_reaped_yet_is_gone(waiting):
    process, name = waiting
    assert liveness(name) is Liveness.HERE
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert liveness(name) is Liveness.GONE


def changed(part: int, value: str) -> str:
    parts = lease_holder().split("/")
    parts[part] = value
    return "/".join(parts)


def test_a_reused_process_id_is_another_process():
    assert liveness(changed(4, "1")) is Liveness.GONE


def test_a_lease_holder_of_an_earlier_boot_is_gone():
    assert liveness(changed(1, "another-boot")) is Liveness.GONE


def test_of_another_machine_or_container_nothing_is_known():
    assert liveness(changed(0, "another-machine")) is Liveness.UNKNOWN
    assert liveness(changed(2, "[1]")) is Liveness.UNKNOWN
    assert liveness("a name of another kind") is Liveness.UNKNOWN


def test_a_process_that_was_stopped_may_be_so_for_days(waiting):
    process, name = waiting
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert liveness(name) is Liveness.UNKNOWN
    process.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, process.pid, os.WCONTINUED | os.WNOWAIT)
    assert liveness(name) is Liveness.HERE


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
    assert liveness(name) is (Liveness.HERE if unread == "boot_id" else Liveness.UNKNOWN)
    assert liveness(lease_holder()) is (Liveness.HERE if unread == "boot_id" else Liveness.UNKNOWN)
    monkeypatch.setattr(module.os, "kill", lambda pid, signum: (_ for _ in ()).throw(PermissionError))
    assert liveness(name) is not Liveness.GONE
    monkeypatch.undo()
    process.kill()
    process.wait()
    monkeypatch.setattr(Path, "read_text", fails)
    assert liveness(name) is Liveness.GONE


@pytest.fixture
def planned(database, tmp_path):
    """A database with two runs."""
    (tmp_path / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": 2})
    plan = load_grid(tmp_path / "grid.yaml")
    recording.register(database, plan)
    return database


def run(database):
    return reading.load_sweep(database).runs[0]


def test_a_run_of_a_process_that_is_gone_is_to_be_had_before_its_lease_lapses(planned, monkeypatch):
    gone, here = LeaseHolder(planned, "gone"), LeaseHolder(planned)
    gone.claim(run(planned))
    assert here.claim(run(planned)) is None  # nothing is known of a name of another kind
    monkeypatch.setattr(module, "liveness", {"gone": Liveness.GONE}.get)
    assert here.claim(run(planned)) == 2


def test_leases_are_renewed_when_it_is_time_to(planned):
    def lease_until() -> float:
        with planned.read() as connection:
            return connection.exec_driver_sql("SELECT lease_until FROM run WHERE state = 'running'").scalar_one()

    clock = Clock()
    held = LeaseHolder(planned, clock=clock)
    held.claim(run(planned))
    with planned.write() as connection:
        connection.exec_driver_sql("UPDATE run SET lease_until = lease_until - 50")
    before = lease_until()
    clock.now += RENEW_EVERY
    assert held.renew() is None and lease_until() == before
    clock.now += 1
    assert held.renew() == 1, "the number of runs that it still has"
    assert lease_until() >= before + 50
