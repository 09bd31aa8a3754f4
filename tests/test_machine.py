"""A machine is told by a hash that stays the same and gives nothing away."""

from pathlib import Path

import pytest

from kdx import machine as module
from kdx.machine import machine


def test_a_machine_is_the_same_each_time():
    assert machine() == machine()


@pytest.mark.parametrize("identity", ["0123456789abcdef0123456789abcdef\n", ""])
def test_neither_its_id_nor_its_name_can_be_read_in_it(monkeypatch, identity):
    monkeypatch.setattr(Path, "read_text", lambda path: identity)
    told = machine()
    name = module.os.uname().nodename
    assert len(told) == 16 and int(told, 16) >= 0
    assert told not in (identity.strip()[:16], name)
    monkeypatch.setattr(Path, "read_text", lambda path: f"{identity}another")
    assert machine() != told


def test_a_machine_without_an_id_has_its_name(monkeypatch):
    def absent(path):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", lambda path: "")
    without = machine()
    monkeypatch.setattr(Path, "read_text", absent)
    assert machine() == without
