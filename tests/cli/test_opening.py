"""A command that records something says so where it brings an old database up to date."""

import shutil
from pathlib import Path

from looked_after import typed

from kdx.cli.opening import open_to_write
from kdx.store.version import REVISION

OLD = Path(__file__).parents[1] / "store" / "sqlite" / "databases" / "0005.db"


def test_an_old_database_is_brought_up_to_date_and_said_to_be(tmp_path, capsys):
    db = tmp_path / "runs.db"
    shutil.copy(OLD, db)
    open_to_write(str(db)).close()
    said = capsys.readouterr().err
    assert said.startswith(f"note: {db} was of schema 0005, and is brought up to date; a copy from before is ")
    assert Path(said.rpartition(" ")[2].strip()).name == f"runs.db.before-{REVISION}.bak"
    open_to_write(str(db)).close()
    assert not capsys.readouterr().err


def test_a_new_one_is_no_old_one(tmp_path, capsys):
    open_to_write(str(tmp_path / "runs.db"), create=True).close()
    assert not capsys.readouterr().err


def test_a_note_on_a_sweep_says_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD, "runs.db")
    assert "is brought up to date" in typed("note", "1", "seen").stderr
