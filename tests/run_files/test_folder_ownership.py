"""A folder of run files belongs to one database, whatever links and copies there are."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kdx.errors import DatabaseError, StorageError
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import NOTE, refuse_stranger, settled_here, stranger, take
from kdx.store.database import Database, open_database
from kdx.store.place_of_files import FILES


def made(path: Path) -> Database:
    return open_database(path, write=True, create=True)


def note(database: Database) -> dict[str, str]:
    return json.loads((files_beside(database.location) / NOTE).read_text())


def test_the_first_sweep_notes_whose_the_folder_is_and_the_next_finds_it_so(tmp_path):
    with made(tmp_path / "runs.db") as database:
        assert not settled_here(database)
        assert take(database) is None
        assert note(database) == {
            "id": database.id,
            "path": str(tmp_path / "runs.db"),
            "files": str(tmp_path / "runs.files"),
        }
        before = (files_beside(database.location) / NOTE).stat().st_mtime_ns
        assert take(database) is None
        assert (files_beside(database.location) / NOTE).stat().st_mtime_ns == before
        assert settled_here(database)
        assert stranger(database) is None


def test_two_databases_on_one_folder_are_refused(tmp_path, figure):
    with made(tmp_path / "a.db") as first, made(tmp_path / "b.db") as second:
        take(first)
        (tmp_path / "b.files").symlink_to(tmp_path / "a.files")
        with pytest.raises(DatabaseError) as caught:
            take(second)
        assert str(tmp_path / "a.db") in caught.value.problem
        with pytest.raises(DatabaseError):
            refuse_stranger(second)
        refuse_stranger(first)
        figure(f"two databases on one folder: exit {caught.value.exit_code}")


def test_a_copy_on_the_folder_of_the_first_is_refused_while_both_are_there(tmp_path):
    with made(tmp_path / "a.db") as first:
        take(first)
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    (tmp_path / "b.files").symlink_to(tmp_path / "a.files")
    with open_database(tmp_path / "b.db", write=True) as copy:
        with pytest.raises(DatabaseError):
            take(copy)
        (tmp_path / "a.db").unlink()
        assert take(copy) is None
        assert note(copy)["path"] == str(tmp_path / "b.db")


def test_a_folder_of_results_may_be_copied_and_moved_as_a_whole(tmp_path):
    there, copy, moved = (tmp_path / name for name in ("there", "copy", "moved"))
    there.mkdir()
    with made(there / "runs.db") as database:
        take(database)
    shutil.copytree(there, copy)
    for folder in (there, copy):
        with open_database(folder / "runs.db", write=True) as database:
            assert stranger(database) is None
            assert take(database) is None
            assert note(database)["path"] == str(folder / "runs.db")
    there.rename(moved)
    with open_database(moved / "runs.db", write=True) as database:
        assert not settled_here(database)
        assert take(database) is None
        assert settled_here(database)


def test_files_of_a_database_that_was_here_before_are_moved_aside_whole(tmp_path, figure):
    for number in range(3):
        with made(tmp_path / "runs.db") as database:
            said = take(database)
            (files_beside(database.location) / "weights").write_text(str(number))
            assert bool(said) == bool(number)
        (tmp_path / "runs.db").unlink()
    kept = sorted(path.name for path in tmp_path.glob("*/weights"))
    assert len(kept) == 3
    figure("a new database beside the files of an old one: 0 files lost")


def test_a_folder_of_an_older_kdx_has_no_note_and_is_taken(tmp_path):
    with made(tmp_path / "runs.db") as database:
        folder = files_beside(database.location)
        (folder / "x").mkdir(parents=True)
        assert stranger(database) is None
        assert take(database) is None
        assert (folder / "x").is_dir()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": 3}', '{"id": "x/../y", "path": "/"}', "[" * 60_000, "\xff"])
def test_a_note_that_is_none_says_nothing(tmp_path, text):
    with made(tmp_path / "runs.db") as database:
        take(database)
        (files_beside(database.location) / NOTE).write_text(text)
        assert stranger(database) is None
        assert take(database) is None
        assert note(database)["id"] == database.id


@pytest.mark.parametrize("path", ["/proc/self/mem", "/dev/zero", "\0", "x" * 5000, "/", "fifo"])
def test_a_note_leads_nowhere(tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with made(tmp_path / "runs.db") as database:
        take(database)
        (files_beside(database.location) / NOTE).write_text(json.dumps({"id": "f" * 32, "path": path, "files": path}))
        assert stranger(database) is not None
        assert take(database) is not None


def test_a_note_is_not_written_through_a_link(tmp_path):
    with made(tmp_path / "runs.db") as database:
        folder = files_beside(database.location)
        folder.mkdir()
        (tmp_path / "precious").write_text("precious")
        (folder / NOTE).symlink_to(tmp_path / "precious")
        take(database)
        assert (tmp_path / "precious").read_text() == "precious"
        assert not (folder / NOTE).is_symlink()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    with made(tmp_path / "runs.db") as database:
        files_beside(database.location).write_text("a file")
        with pytest.raises(StorageError):
            take(database)


def test_a_database_behind_a_link_has_its_files_beside_itself(tmp_path):
    (tmp_path / "el").mkdir()
    with made(tmp_path / "s.db") as database:
        take(database)
    (tmp_path / "el" / "s.db").symlink_to(tmp_path / "s.db")
    assert files_beside(tmp_path / "el" / "s.db") == tmp_path / "s.files"
    with open_database(tmp_path / "el" / "s.db", write=True) as database:
        assert settled_here(database)
        assert take(database) is None
    assert not (tmp_path / "el" / "s.files").exists()


def test_a_copy_has_not_the_folder_of_the_first_under_the_same_name_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    with made(tmp_path / "a.db") as first:
        take(first)
        assert files_beside(first.location) == tmp_path / "shared" / f"{first.id}.files"
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with open_database(tmp_path / "b.db", write=True) as copy:
        with pytest.raises(DatabaseError, match=r"another database keeps the files of its runs here: .*a\.db"):
            take(copy)
        assert stranger(copy) is not None
        # Also where the folder was copied, whose note is still that of the first.
        shutil.copytree(tmp_path / "shared", tmp_path / "other")
        monkeypatch.setenv(FILES, str(tmp_path / "other"))
        assert take(copy) is None
        assert note(copy)["path"] == str(tmp_path / "b.db")
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    with open_database(tmp_path / "a.db", write=True) as first:
        assert stranger(first) is None
        assert take(first) is None


def test_files_beside_a_database_are_not_left_behind_for_a_named_folder(tmp_path, monkeypatch, figure):
    with made(tmp_path / "runs.db") as database:
        take(database)
        (files_beside(database.location) / "weights").write_text("1")
        monkeypatch.setenv(FILES, str(tmp_path / "my shared"))
        with pytest.raises(DatabaseError) as caught:
            take(database)
        assert not (tmp_path / "my shared").exists()
        figure("files beside a database, and KDX_FILES names another folder: refused, nothing left behind")
        assert caught.value.hint is not None
        subprocess.run(caught.value.hint.partition(": ")[2], shell=True, check=True)
        assert take(database) is None
        assert (files_beside(database.location) / "weights").read_text() == "1"
        assert settled_here(database)


def test_a_folder_that_was_moved_stays_with_its_database(tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    with made(tmp_path / "runs.db") as database:
        take(database)
        (tmp_path / "shared").rename(tmp_path / "moved")
        monkeypatch.setenv(FILES, str(tmp_path / "moved"))
        assert take(database) is None
        assert note(database)["files"] == str(tmp_path / "moved" / f"{database.id}.files")
