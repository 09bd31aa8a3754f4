"""A command that records something says so where it brings a database up to date."""

import pytest
from looked_after import DB, planned, typed

from kdx.cli.opening import open_to_write
from kdx.store.version import REVISION


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_database_of_an_earlier_schema_is_brought_up_to_date_and_said_to_be(later_kdx, capsys):
    planned(1)
    new = later_kdx()
    open_to_write(str(DB)).close()
    copy = f"a copy from before is runs.db.before-{new}.bak"
    assert capsys.readouterr().err == f"note: {DB} was of schema {REVISION}, and is brought up to date; {copy}\n"
    open_to_write(str(DB)).close()
    assert not capsys.readouterr().err


def test_a_new_database_is_not_brought_up_to_date(capsys):
    open_to_write(str(DB), create=True).close()
    assert not capsys.readouterr().err


def test_a_note_on_a_sweep_says_it_too(later_kdx):
    planned(1)
    later_kdx()
    assert "is brought up to date" in typed("note", "1", "seen").stderr
