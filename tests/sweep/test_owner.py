"""An owner is known to be gone only when that is certain."""

import os
import subprocess
import sys

from kdx.sweep.owner import is_gone, owner


def test_this_process_is_not_gone_and_names_itself_anew_each_time():
    assert not is_gone(owner())
    assert owner() != owner()


def test_a_process_that_ended_is_gone():
    script = "from kdx.sweep.owner import owner; print(owner())"
    name = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert is_gone(name)


def test_a_killed_process_that_nobody_reaped_yet_is_gone():
    script = "from kdx.sweep.owner import owner; print(owner(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        name = process.stdout.readline().strip()
        assert not is_gone(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(name)


def changed(part: int, value: str) -> str:
    parts = owner().split("/")
    parts[part] = value
    return "/".join(parts)


def test_a_reused_process_id_is_another_process():
    assert is_gone(changed(4, "1"))


def test_an_owner_of_an_earlier_boot_is_gone():
    assert is_gone(changed(1, "another-boot"))


def test_of_another_machine_or_container_nothing_is_known():
    assert not is_gone(changed(0, "another-machine"))
    assert not is_gone(changed(2, "[1]"))
    assert not is_gone("a name of another kind")
