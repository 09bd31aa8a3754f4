"""A machine has a name in records that stays the same and gives nothing away."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdx.store.machine import machine


@pytest.fixture(autouse=True)
def uncached():
    """Each test computes the name anew."""
    machine.cache_clear()
    yield
    machine.cache_clear()


@pytest.mark.parametrize("identity", ["0123456789abcdef0123456789abcdef\n", "", None])
def test_neither_its_id_nor_its_name_can_be_read_in_it(monkeypatch, identity):
    def read(path):
        if identity is None:
            raise FileNotFoundError
        return identity

    monkeypatch.setattr(Path, "read_text", read)
    name_in_records, name = machine(), os.uname().nodename
    assert len(name_in_records) == 16 and int(name_in_records, 16) >= 0
    assert name_in_records not in ((identity or "").strip()[:16], name)
    machine.cache_clear()
    assert machine() == name_in_records
    machine.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda path: f"{identity}another")
    assert machine() != name_in_records


def test_machines_of_one_image_differ(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda path: "0123456789abcdef0123456789abcdef\n")
    names = set()
    for node in ("node1", "node2"):
        monkeypatch.setattr(os, "uname", lambda node=node: SimpleNamespace(nodename=node))
        machine.cache_clear()
        names.add(machine())
    assert len(names) == 2
