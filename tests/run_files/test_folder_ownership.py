"""A folder of run files belongs to one database, whatever copies and moves there are."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kdx.errors import DatabaseError, StorageError
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import NOTE, is_strange, owner_of, refuse_stranger, settled_here, take
from kdx.store.database import Database, open_database
from kdx.store.refusals import FILES


def opened(path: Path) -> Database:
    return open_database(path, write=True, create=True)


def test_the_first_sweep_notes_whose_the_folder_is_and_the_next_finds_it_so(tmp_path):
    with opened(tmp_path / "runs.db") as database:
        assert not settled_here(database)
        assert take(database) is None
        assert owner_of(tmp_path / "runs.files") == database.id
        before = (tmp_path / "runs.files" / NOTE).stat().st_mtime_ns
        assert take(database) is None
        assert (tmp_path / "runs.files" / NOTE).stat().st_mtime_ns == before
        assert settled_here(database) and not is_strange(database)


def test_files_of_a_database_that_was_here_before_are_moved_aside_whole(tmp_path, figure):
    for number in range(3):
        with opened(tmp_path / "runs.db") as database:
            assert is_strange(database) == bool(number)
            if number:
                with pytest.raises(DatabaseError, match="the files of another database"):
                    refuse_stranger(database)
            message = take(database)
            refuse_stranger(database)
            (files_beside(database.location) / "weights").write_text(str(number))
            assert bool(message) == bool(number)
        (tmp_path / "runs.db").unlink()
    kept = sorted(path.name for path in tmp_path.glob("*/weights"))
    assert len(kept) == 3
    figure("a new database beside the files of an old one: 0 files lost")


def test_a_folder_of_results_may_be_copied_and_moved_as_a_whole(tmp_path):
    there, copy, moved = (tmp_path / name for name in ("there", "copy", "moved"))
    there.mkdir()
    with opened(there / "runs.db") as database:
        take(database)
    shutil.copytree(there, copy)
    for folder in (there, copy):
        with opened(folder / "runs.db") as database:
            assert not is_strange(database)
            assert take(database) is None
    there.rename(moved)
    with opened(moved / "runs.db") as database:
        assert not settled_here(database)
        assert take(database) is None
        assert settled_here(database)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    with opened(tmp_path / "runs.db") as database:
        files_beside(database.location).write_text("a file")
        with pytest.raises(StorageError):
            take(database)


def test_a_database_behind_a_link_has_its_files_beside_itself(tmp_path):
    (tmp_path / "el").mkdir()
    with opened(tmp_path / "s.db") as database:
        take(database)
    (tmp_path / "el" / "s.db").symlink_to(tmp_path / "s.db")
    assert files_beside(tmp_path / "el" / "s.db") == tmp_path / "s.files"
    with opened(tmp_path / "el" / "s.db") as database:
        assert settled_here(database)
        assert take(database) is None
    assert not (tmp_path / "el" / "s.files").exists()


def test_files_beside_a_database_are_not_left_behind_for_a_named_folder(tmp_path, monkeypatch, figure):
    with opened(tmp_path / "runs.db") as database:
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
        assert files_beside(database.location) == tmp_path / "my shared" / f"{database.id}.files"
        assert (files_beside(database.location) / "weights").read_text() == "1"
        assert settled_here(database)
