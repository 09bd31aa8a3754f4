"""A machine has a name in records that stays the same and gives nothing away."""

import os
from pathlib import Path

import pytest

from kdx.store.machine import machine


@pytest.fixture(autouse=True)
def uncached():
    """Each test computes the name anew."""
    machine.cache_clear()
    yield
    machine.cache_clear()


def test_a_machine_is_the_same_each_time():
    assert machine() == machine()


@pytest.mark.parametrize("identity", ["0123456789abcdef0123456789abcdef\n", ""])
def test_neither_its_id_nor_its_name_can_be_read_in_it(monkeypatch, identity):
    monkeypatch.setattr(Path, "read_text", lambda path: identity)
    name_in_records = machine()
    name = os.uname().nodename
    assert len(name_in_records) == 16 and int(name_in_records, 16) >= 0
    assert name_in_records not in (identity.strip()[:16], name)
    machine.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda path: f"{identity}another")
    assert machine() != name_in_records


def test_a_machine_without_an_id_has_its_name(monkeypatch):
    def absent(path):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", lambda path: "")
    without = machine()
    machine.cache_clear()
    monkeypatch.setattr(Path, "read_text", absent)
    assert machine() == without
