"""Folders follow their cells, whoever is killed when; a note that kdx did not write moves nothing."""

import json

import pytest
from sqlalchemy import insert

from kdx.errors import StorageError
from kdx.run_files import moves
from kdx.run_files.files import files_beside
from kdx.store.database import Database, open_database
from kdx.store.schema import cell, cell_migration, now

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        files_beside(opened.location).mkdir()
        yield opened


def folder(database: Database, name: str, text: str) -> None:
    path = files_beside(database.location) / name
    path.mkdir()
    (path / "log.txt").write_text(text)


def found(database: Database) -> dict[str, str]:
    files = files_beside(database.location)
    return {path.name: (path / "log.txt").read_text() for path in sorted(files.iterdir()) if path.is_dir()}


def committed(database: Database, former: str = A, new: str = B) -> None:
    with database.write() as connection:
        connection.execute(insert(cell).values(id=new, spec="{}"))
        values = {"former_id": former, "cell_id": new, "former_spec": "{}", "change": "x → y", "made": now()}
        connection.execute(insert(cell_migration).values(**values))


# One folder takes the place of another.
FOLDERS = [(f"{A}-0-0", f"{B}-0-0"), (f"{B}-0-0", f"{B}-0-1")]


def test_a_folder_may_take_the_place_of_another(database):
    folder(database, f"{A}-0-0", "former")
    folder(database, f"{B}-0-0", "present")
    moves.intend(database, [A], 0, FOLDERS)
    committed(database)
    assert moves.finish(database) == 2
    assert found(database) == {f"{B}-0-0": "former", f"{B}-0-1": "present"}
    assert moves.finish(database) is None


@pytest.mark.parametrize("killed_at", range(4))
def test_a_kill_at_any_rename_is_finished_by_the_next_call(database, monkeypatch, killed_at):
    folder(database, f"{A}-0-0", "former")
    folder(database, f"{B}-0-0", "present")
    moves.intend(database, [A], 0, FOLDERS)
    committed(database)
    rename, done = moves._rename, []

    def killed(*given):
        if len(done) == killed_at:
            raise RuntimeError("killed")
        done.append(given)
        rename(*given)

    monkeypatch.setattr(moves, "_rename", killed)
    with pytest.raises(RuntimeError):
        moves.finish(database)
    monkeypatch.undo()
    moves.finish(database)
    assert found(database) == {f"{B}-0-0": "former", f"{B}-0-1": "present"}


def test_without_the_commit_nothing_moves_and_the_note_goes(database):
    folder(database, f"{A}-0-0", "former")
    moves.intend(database, [A], 0, FOLDERS)
    moves.refuse_unfinished(database)
    assert moves.finish(database) is None
    assert found(database) == {f"{A}-0-0": "former"}
    assert not (files_beside(database.location) / moves.NOTE).exists()


def test_folders_that_wait_are_counted_where_they_move_and_refused_before(database):
    folder(database, f"{A}-0-0", "former")
    folder(database, f"{B}-0-0", "present")
    moves.intend(database, [A], 0, FOLDERS)
    committed(database)
    (files_beside(database.location) / f"{B}-0-0").rename(files_beside(database.location) / "elsewhere")
    with pytest.raises(StorageError, match="do not have their new names yet"):
        moves.refuse_unfinished(database)
    assert moves.finish(database) == 1
    moves.refuse_unfinished(database)


def test_an_earlier_change_of_the_same_cell_is_no_commit_of_this_one(database):
    committed(database)
    folder(database, f"{A}-0-0", "former")
    moves.intend(database, [A], 1, FOLDERS)
    moves.finish(database)
    assert found(database) == {f"{A}-0-0": "former"}


def test_files_that_are_in_the_way_are_kept_and_told(database):
    folder(database, f"{A}-0-0", "former")
    folder(database, f"{B}-0-0", "of somebody")
    moves.intend(database, [A], 0, FOLDERS[:1])
    committed(database)
    with pytest.raises(StorageError, match="there are others"):
        moves.finish(database)
    assert "of somebody" in found(database).values() and "former" in found(database).values()


def test_nothing_to_move_needs_no_note(database):
    moves.intend(database, [A], 0, FOLDERS)
    assert not (files_beside(database.location) / moves.NOTE).exists()


@pytest.mark.parametrize(
    "change",
    [
        {"folders": [["../../etc", f"{B}-0-0"]]},
        {"folders": [[f"{A}-0-0", "/tmp/x"]]},
        {"folders": [[f"{A}-0-0"]]},
        {"cells": ["x"]},
        {"after": "0"},
        {"apart": 1},
        {"folders": None},
    ],
)
def test_a_note_of_another_form_moves_nothing(database, change):
    folder(database, f"{A}-0-0", "former")
    committed(database)
    note = {"cells": [A], "after": 0, "folders": [list(FOLDERS[0])], "apart": False}
    (files_beside(database.location) / moves.NOTE).write_text(json.dumps(note | change))
    assert moves.finish(database) is None and not moves.is_unfinished(database)
    assert found(database) == {f"{A}-0-0": "former"}
